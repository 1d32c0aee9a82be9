"""Each error has its place in docs/errors; the classes, statuses and limits that are told there are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skywalker import errors
from skywalker.cli import exits
from skywalker.errors import BY_CODE, RequestError, SkywalkerError
from tests.docs.pages import DOCS, ROOT

PAGES = DOCS / "errors"
INDEX = (PAGES / "README.md").read_text()


def page(code: str) -> str:
    return (PAGES / f"{code}.md").read_text()


def rows(table: str) -> list[list[str]]:
    """Return the cells of each row of the tables in a text, without their headings."""
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        for row in re.findall(r"^\|.*\|$", table, re.MULTILINE)
        if not row.startswith("|---")
    ]


def without_code() -> list[type[SkywalkerError]]:
    every = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, SkywalkerError)]
    return [each for each in every if not issubclass(each, RequestError) and each is not SkywalkerError]


def test_each_code_has_a_page_and_each_page_a_code() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {"README", *BY_CODE}


@pytest.mark.parametrize("code", BY_CODE)
def test_a_page_says_what_every_page_says(code: str) -> None:
    text = page(code)
    assert text.startswith(f"# `{code}`\n")
    assert f"`skywalker.{BY_CODE[code].__name__}`" in text
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[:3] == ["When you get it", "What the client libraries do", "What to do"]
    if code != "internal":  # a node that answers it is not there to be shown
        assert headings[3] == "Example"
    if not BY_CODE[code].retryable:
        assert f"exit status {exits.of(BY_CODE[code]())}" in " ".join(text.split())


def test_the_index_has_each_code_with_its_class_and_exit_status() -> None:
    listed = {row[0]: row for row in rows(INDEX) if row[0].startswith("[")}
    assert listed.keys() == {f"[`{code}`]({code}.md)" for code in BY_CODE}
    for code, cls in BY_CODE.items():
        _, name, _, status = listed[f"[`{code}`]({code}.md)"]
        assert name == f"`{cls.__name__}`"
        assert status.startswith("none" if cls.retryable else str(exits.of(cls())))


def test_the_index_has_each_error_without_a_code_with_its_exit_status() -> None:
    second = rows(INDEX.partition("## Errors without a code")[2])[1:]
    listed = {row[0]: int(row[3]) for row in second}
    assert listed == {f"`{cls.__name__}`": exits.of(cls()) for cls in without_code()}


def test_the_page_of_busy_has_each_limit_that_a_node_names() -> None:
    source = "\n".join(path.read_text() for path in Path(ROOT / "workers").rglob("*.py"))
    raised = set(re.findall(r'Busy\([^{}]*(?:\{[^{}"]*\}[^{}]*)*\{"limit": "([\w.]+)"', source))
    raised |= {"max_rate", "access.rate"}  # whichever it is that says so
    listed = {row[0].strip("`") for row in rows(page("busy"))[1:]}
    assert listed == raised
