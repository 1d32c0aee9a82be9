"""The tables of the page come out of the command again, and the network that they are measured on is sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.figures import command
from bench.silk.__main__ import SEED, deaths, steady_row, storm

PAGE = Path(__file__).resolve().parents[2] / "docs" / "silk.md"


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


def test_the_seed_alone_decides() -> None:
    assert storm(10, 3, seed=7) == storm(10, 3, seed=7) != storm(10, 3, seed=8)
    assert deaths(10, seed=7) == deaths(10, seed=7)
