"""The tables of the page come out of the command again, and the figures are those that theory has."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import numpy as np
import pytest

from bench.balance import (
    NODES,
    RINGS,
    SEED,
    busiest_row,
    move,
    move_row,
    shares,
    workers_of,
    workers_row,
)
from bench.figures import command
from skywalker.ring import TOKENS_PER_NODE, Ring, worker_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"


def lines_of(page: Path, name: str) -> list[str]:
    before, after = command.split_page(page, name)
    text = page.read_text()
    return text[len(before) : len(text) - len(after)].splitlines()[1:-1]


@pytest.mark.parametrize("nodes", NODES[:2])
def test_the_page_has_what_the_command_measures(nodes: int) -> None:
    assert busiest_row(nodes, RINGS, SEED) in lines_of(PAGE, "balance")
    assert move_row(nodes, RINGS, SEED) in lines_of(PAGE, "moves")
    assert workers_row(10_000, RINGS, SEED) in lines_of(PAGE, "workers")


@pytest.mark.parametrize("workers", [1, 3, 16, 64])
def test_workers_are_those_that_own(workers: int) -> None:
    tokens = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 1000)
    assert workers_of(tokens, workers).tolist() == [worker_of(token, workers) for token in tokens.tolist()]


@pytest.mark.parametrize(("nodes", "tokens"), [(1, 2), (2, 1), (3, 32), (20, 7)])
def test_shares_are_those_of_the_ring_that_routes(nodes: int, tokens: int) -> None:
    numbers = random.Random("a seed").randbytes(8 * nodes * tokens)
    each = [int.from_bytes(numbers[at : at + 8], "little", signed=True) for at in range(0, len(numbers), 8)]
    owned = {node: each[node * tokens : (node + 1) * tokens] for node in range(nodes)}
    expected = Ring(owned).shares()
    assert list(shares(nodes, tokens, "a seed")) == pytest.approx([expected[node] for node in range(nodes)])


def test_a_newcomer_takes_a_fair_share_and_moves_nothing_else() -> None:
    moves = [move(10, TOKENS_PER_NODE, f"moves {ring}") for ring in range(60)]
    assert all(each.others == 0 for each in moves)
    assert statistics.mean(each.newcomers for each in moves) == pytest.approx(1 / 11, rel=0.1)
    assert all(each.newcomers / 10 <= each.heaviest < each.newcomers for each in moves)
