"""How evenly topics are shared out, and what moves when a node comes or goes: `python -m bench.balance`.

Nothing is started and nothing is timed: rings are made of random tokens and measured exactly, arc by arc. What is
random depends on the seed alone, so that the same figures come out again, on any machine.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import click
import numpy as np

from bench.errors import BenchError
from bench.figures.command import Findings, command, show_progress
from skywalker.ring import SLICED, TOKENS, TOKENS_PER_NODE, Ring

NODES: Final = (3, 10, 100, 1000)
TOKENS_OF_A_NODE: Final = (32, 64, 128, 256, 512)
WORKERS: Final = (2, 4, 16, 64)
TOPICS: Final = (1_000, 10_000, 100_000)
RINGS: Final = 100
SEED: Final = 1

_Tokens: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """What is different between a ring and the same with one node more; parts of all topics."""

    newcomers: float  # what the newcomer owns that others owned before
    others: float  # what moved between nodes that are in both
    heaviest: float  # the most that one of the others owns less


def shares(nodes: int, tokens: int, seed: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return which part of all topics each node of a random ring owns: what Ring.shares() would, only quicker."""
    numbers = _numbers(nodes * tokens, seed)
    order = np.argsort(numbers)
    ascending = numbers[order].astype(np.uint64)
    # Unsigned differences wrap as the ring does: the last arc goes around the end.
    lengths = np.diff(ascending, append=ascending[:1]).astype(np.float64)
    return np.bincount(order // tokens, weights=lengths, minlength=nodes) / TOKENS


def busiest(nodes: int, tokens: int, rings: int, seed: int) -> list[float]:
    """Return the biggest share of each of many random rings, as multiples of a fair one, in ascending order."""
    return sorted(
        float(shares(nodes, tokens, f"{seed} {nodes} {tokens} {ring}").max()) * nodes for ring in range(rings)
    )


def workers_of(tokens: _Tokens, workers: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return which of a node's workers owns a topic of each token: what worker_of() would, only quicker."""
    return tokens.view(np.uint64) % SLICED * workers // SLICED


def busiest_worker(workers: int, topics: int, sets: int, seed: int) -> list[float]:
    """Return the most topics that a worker has of random ones of its node, as busiest() does of nodes."""
    tokens = (_numbers(topics, f"{seed} {topics} {number}") for number in range(sets))
    return sorted(float(np.bincount(workers_of(each, workers)).max()) * workers / topics for each in tokens)


def move(nodes: int, tokens: int, seed: str) -> Move:
    """Return what moves when one node joins a random ring of `nodes`; the same moves back when it leaves."""
    numbers = [int(number) for number in _numbers((nodes + 1) * tokens, seed)]
    owned = {node: numbers[node * tokens : (node + 1) * tokens] for node in range(nodes + 1)}
    after = Ring(owned)
    before = Ring({node: own for node, own in owned.items() if node != nodes})
    numbers.sort()
    lost: Counter[int] = Counter()
    newcomers = others = 0
    for at, end in enumerate(numbers):
        length = (end - numbers[at - 1]) % TOKENS
        old, new = before.owner(end), after.owner(end)
        if old != new:
            lost[old] += length
            if new == nodes:
                newcomers += length
            else:
                others += length
    return Move(newcomers / TOKENS, others / TOKENS, max(lost.values()) / TOKENS)


def _numbers(count: int, seed: str) -> _Tokens:
    return np.frombuffer(random.Random(seed).randbytes(8 * count), dtype="<i8")


def busiest_row(nodes: int, rings: int, seed: int) -> str:
    """Return the row of the first table for so many nodes."""
    return _row(f"{nodes:,} nodes", [busiest(nodes, tokens, rings, seed) for tokens in TOKENS_OF_A_NODE])


def workers_row(topics: int, sets: int, seed: int) -> str:
    """Return the row of the table of workers for so many topics of a node."""
    return _row(f"{topics:,} topics", [busiest_worker(workers, topics, sets, seed) for workers in WORKERS])


def _row(name: str, found: Iterable[Sequence[float]]) -> str:
    cells = (f"{statistics.median(ascending):.2f} / {ascending[-1]:.2f}" for ascending in found)
    return f"| {name} | {' | '.join(cells)} |"


def move_row(nodes: int, rings: int, seed: int) -> str:
    """Return the row of the second table for so many nodes and one more. Raises BenchError if others move."""
    moves = [move(nodes, TOKENS_PER_NODE, f"{seed} {nodes} {ring}") for ring in range(rings)]
    if any(each.others for each in moves):
        raise BenchError(f"topics moved between nodes that stay, on a ring of {nodes} nodes")
    moved = [each.newcomers for each in moves]
    heaviest = statistics.median(each.heaviest / each.newcomers for each in moves)
    return (
        f"| {nodes:,} and one more | {_percent(1 / (nodes + 1))} | {_percent(statistics.median(moved))} "
        f"| {_percent(max(moved))} | {_percent(heaviest)} |"
    )


def _head(names: Iterable[str]) -> Iterator[str]:
    columns = [*names]
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"


def balance_table(rings: int, seed: int, progress: Callable[[str], None]) -> Iterator[str]:
    """Yield the lines of the first table."""
    yield from _head(f"{tokens} tokens" for tokens in TOKENS_OF_A_NODE)
    for nodes in NODES:
        progress(f"shares of {nodes} nodes")
        yield busiest_row(nodes, rings, seed)
    yield ""
    yield f"Median / worst of {rings} random rings (seed {seed}), in fair shares."


def workers_table(sets: int, seed: int, progress: Callable[[str], None]) -> Iterator[str]:
    """Yield the lines of the table of workers."""
    yield from _head(f"{workers} workers" for workers in WORKERS)
    for topics in TOPICS:
        progress(f"{topics:,} topics of a node")
        yield workers_row(topics, sets, seed)
    yield ""
    yield f"Median / worst of {sets} sets of random topics (seed {seed}), in fair shares."


def move_table(rings: int, seed: int, progress: Callable[[str], None]) -> Iterator[str]:
    """Yield the lines of the second table."""
    yield "| | a fair share | moves, median | moves, worst | of that, the largest part of one other node |"
    yield "|---|---:|---:|---:|---:|"
    for nodes in NODES:
        progress(f"{nodes} nodes and one more")
        yield move_row(nodes, rings, seed)
    yield ""
    yield f"{TOKENS_PER_NODE} tokens a node, {rings} random rings (seed {seed})."


def _percent(part: float) -> str:
    return f"{part:.2%}" if part < 0.1 else f"{part:.1%}"


TABLES: Final[dict[str, Callable[[int, int, Callable[[str], None]], Iterator[str]]]] = {
    "balance": balance_table,
    "workers": workers_table,
    "moves": move_table,
}
"""By the name of their place in a page."""


@command(markdown=tuple(TABLES))
@click.option("--rings", type=click.IntRange(1, 100_000), default=RINGS, help="Random rings of each kind.")
@click.option("--seed", type=click.IntRange(0), default=SEED, help="What all randomness is made of.")
def main(rings: int, seed: int) -> Findings:
    """Measure how much the busiest node of random rings owns, its busiest worker, and what moves when a node joins."""
    tables = {name: [*table(rings, seed, show_progress)] for name, table in TABLES.items()}
    return Findings([line for lines in tables.values() for line in (*lines, "")], pages=tables)


if __name__ == "__main__":
    main()
