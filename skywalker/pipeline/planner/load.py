"""All topics of a source, counted by where they fall on a ring."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skywalker.pipeline.planner.ring import Index, TokenRing, workers_of
from skywalker.pipeline.planner.topics import Piece, Source

HOTTEST: Final = 1000
"""Of the hottest topics so many are kept."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Load:
    """What each worker has of each arc of a ring, and the calls of the hottest topics."""

    ring: TokenRing
    topics: NDArray[np.int64]  # a row for each arc, a column for each worker of its node
    calls: NDArray[np.float64]  # likewise
    hottest: NDArray[np.float64]  # descending, in the unit of `calls`

    def on(self, ring: TokenRing) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return topics and calls as above for another ring, all of whose tokens this one has."""
        starts = np.searchsorted(self.ring.tokens, ring.tokens)
        return _added(self.topics, starts), _added(self.calls, starts)


class _Counted(NamedTuple):
    size: int
    topics: NDArray[np.intp]
    calls: NDArray[np.float64] | None
    hottest: NDArray[np.float64]


def measured(ring: TokenRing, workers: int, source: Source, threads: int, tell: Callable[[int], None]) -> Load:
    """Count the topics of a source in so many threads, and tell() how much of it is done. Each node has `workers`.

    Takes some 30 MB for each thread, however many topics there are. Raises what the source raises.
    """
    index = Index(ring)
    cells = index.size * workers
    topics, calls = np.zeros(cells, np.int64), np.zeros(cells)
    hottest = np.zeros(0)
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        for counted in _in_order(pool, 2 * threads, lambda piece: _count(index, workers, piece), source.pieces()):
            topics += counted.topics
            calls += counted.topics if counted.calls is None else counted.calls
            hottest = _highest(np.concatenate([hottest, counted.hottest]))
            done += counted.size
            tell(done)
    shape = (index.size, workers)
    return Load(ring, topics.reshape(shape), calls.reshape(shape), np.sort(hottest)[::-1])


def _count(index: Index, workers: int, piece: Piece) -> _Counted:
    batch = piece.make()
    cells = index.arcs(batch.tokens)
    if workers > 1:
        cells = cells * workers + workers_of(batch.tokens, workers)
    topics = np.bincount(cells, minlength=index.size * workers)
    if batch.calls is None:
        return _Counted(piece.size, topics, None, np.ones(min(len(cells), HOTTEST)))
    calls: NDArray[Any] = np.bincount(cells, weights=batch.calls, minlength=index.size * workers)
    return _Counted(piece.size, topics, calls, _highest(batch.calls))


def _in_order(pool: ThreadPoolExecutor, at_once: int, do: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
    """Yield what became of each piece; those that nobody has asked for yet are `at_once`, not all."""
    running: deque[Future[T]] = deque()
    try:
        for piece in pieces:
            running.append(pool.submit(do, piece))
            if len(running) == at_once:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for each in running:
            each.cancel()


def _highest(calls: NDArray[np.float64]) -> NDArray[np.float64]:
    return calls if len(calls) <= HOTTEST else np.partition(calls, -HOTTEST)[-HOTTEST:]


def _added(arcs: NDArray[Any], starts: NDArray[np.intp]) -> NDArray[Any]:
    """Add up arcs from each start to the next; those before the first one belong to the last, around the end."""
    added: NDArray[Any] = np.add.reduceat(arcs, starts)
    added[-1] += arcs[: starts[0]].sum(axis=0)
    return added
