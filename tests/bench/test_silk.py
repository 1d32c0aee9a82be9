"""The tables of the page come out of the command again, and the network that they are measured on is sound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import command
from bench.silk.__main__ import SEED, deaths, steady_row, storm

COMMAND = [sys.executable, "-m", "bench.silk"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "silk.md"
MARKS = "# ours\n<!-- begin traffic -->\nold\n<!-- end traffic -->\nmore\n"


def lines_of(page: Path) -> list[str]:
    before, after = command.split_page(page, "traffic")
    text = page.read_text()
    return text[len(before) : len(text) - len(after)].splitlines()[1:-1]


@pytest.mark.parametrize("nodes", [3, 10])
def test_the_page_has_what_the_command_measures(nodes: int) -> None:
    lines = lines_of(PAGE)
    assert steady_row(nodes, SEED) in lines
    # The others change with the order in which anything is said, and only their places have to be there.
    assert sum(line.startswith(f"| {nodes} |") for line in lines) == 3


def test_the_command_writes_the_tables_of_the_page_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(MARKS)
    ran = subprocess.run(
        [*COMMAND, "--nodes=3,5", f"--markdown={page}"], check=False, capture_output=True, text=True, timeout=100
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert lines_of(page) == ran.stdout.splitlines()
    assert page.read_text().startswith("# ours\n")
    assert page.read_text().endswith("more\n")
    for table in ran.stdout.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1
        assert len(rows) in (0, 4)


def test_the_seed_alone_decides() -> None:
    assert storm(10, 3, seed=7) == storm(10, 3, seed=7) != storm(10, 3, seed=8)
    assert deaths(10, seed=7) == deaths(10, seed=7)
