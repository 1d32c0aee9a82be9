"""The answer to :nodes, in pages."""

from __future__ import annotations

from typing import Any

import pytest

import skywalker
from skywalker.clients.survey import Pages


def page(version: str, ids: str, more: bool) -> dict[str, Any]:
    return {"version": version, "nodes": [{"id": id} for id in ids], "more": more}


def ids(pages: Pages) -> str:
    return "".join(node["id"] for node in pages.nodes)


def test_pages_of_two_versions_are_no_answer_so_it_is_asked_again() -> None:
    pages = Pages()
    pages.add(page("v", "ab", True))
    pages.add(page("w", "d", False))
    assert pages.question == ()
    pages.add(page("w", "bd", False))
    assert pages.question is None
    assert (ids(pages), pages.version) == ("bd", "w")


@pytest.mark.parametrize(
    "answer",
    [
        None, True, [], {}, {"version": 1, "nodes": [], "more": False}, {"version": "v", "nodes": {}, "more": False},
        {"version": "v", "nodes": [1], "more": False}, {"version": "v", "nodes": [{"id": 1}], "more": False},
        page("v", "", True),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_page_is_said_to_be_none(answer: Any) -> None:
    with pytest.raises(skywalker.RemoteProtocolError):
        Pages().add(answer)
