"""The plan: how even clusters of several sizes are, what moves in them, and what hot topics do to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skywalker.errors import ConfigError
from skywalker.pipeline.planner.balance import Balance
from skywalker.pipeline.planner.fleet import Fleet
from skywalker.pipeline.planner.heat import Heat, heat
from skywalker.pipeline.planner.load import Load, measured
from skywalker.pipeline.planner.moves import Move, move
from skywalker.pipeline.planner.ring import TokenRing, workers_of
from skywalker.pipeline.planner.topics import Source


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be planned. Rates are in calls/s, None if not given."""

    nodes: tuple[int, ...]  # ascending
    tokens: tuple[int, ...]  # of each node; ascending
    workers: int  # of each node
    seed: int
    remove: int | None  # which node goes; None is the one that owns the most
    rate: float | None
    worker_rate: float | None


@dataclass(frozen=True, slots=True)
class Shares:
    """How even the shares of nodes are, and those of workers."""

    nodes: Balance
    workers: Balance


@dataclass(frozen=True, slots=True)
class Cluster:
    """One size of cluster."""

    nodes: int
    tokens: int
    ring: Shares  # of the ring itself: exact, and what any topics come to if they are many and alike
    topics: Shares | None  # of the topics given, as they fall
    calls: Shares | None  # of their calls
    bears: float | None  # calls/s of the whole cluster at which its busiest worker has all that it can do
    comes: Move
    goes: Move | None  # None if it is the only one


@dataclass(frozen=True, slots=True)
class Plan:
    """All sizes, by nodes and then by tokens."""

    topics: int | None  # how many there were
    clusters: tuple[Cluster, ...]
    heat: Heat | None


def plan(wanted: Wanted, source: Source | None, threads: int, tell: Callable[[int], None]) -> Plan:
    """Make a plan; without a source, of the rings alone. tell() hears how much of the source is counted.

    All sizes are counted at once, since every ring is part of the largest. Raises what the source raises, and
    ConfigError if it has no topics, or no calls.
    """
    fleet = Fleet(wanted.nodes[-1] + 1, wanted.tokens[-1], wanted.seed)
    load, hot = None, None
    if source is not None:
        load = measured(fleet.ring(wanted.nodes[-1] + 1, wanted.tokens[-1]), source, threads, tell)
        if not load.calls.sum():
            raise ConfigError("there are no topics, or none of them has calls")
        hot = heat(load, source.skew, wanted.rate, wanted.worker_rate)
    return Plan(
        topics=None if load is None else int(load.topics.sum()),
        clusters=tuple(_cluster(wanted, fleet, load, nodes, each) for nodes in wanted.nodes for each in wanted.tokens),
        heat=hot,
    )


def _cluster(wanted: Wanted, fleet: Fleet, load: Load | None, nodes: int, tokens: int) -> Cluster:
    ring, bigger = fleet.ring(nodes, tokens), fleet.ring(nodes + 1, tokens)
    topics, calls = (None, None) if load is None else load.on(ring)
    counts = nodes, wanted.workers
    by_ring = _shares(ring, *counts, ring.parts())
    by_calls = None if calls is None else _shares(ring, *counts, calls)
    goes = _biggest(ring) if wanted.remove is None else wanted.remove
    busiest = (by_calls or by_ring).workers.busiest / (nodes * wanted.workers)
    return Cluster(
        nodes=nodes,
        tokens=tokens,
        ring=by_ring,
        topics=None if topics is None else _shares(ring, *counts, topics),
        calls=by_calls,
        bears=None if wanted.worker_rate is None else wanted.worker_rate / busiest,
        comes=move(ring, bigger, nodes, None if load is None else load.on(bigger)[1], comes=True),
        goes=None if nodes == 1 else move(ring.without(goes), ring, goes, calls, comes=False),
    )


def _shares(ring: TokenRing, nodes: int, workers: int, arcs: NDArray[np.float64] | NDArray[np.int64]) -> Shares:
    """Return how even a ring's arcs are shared, by what each has."""
    places = np.bincount(workers_of(ring, workers), weights=arcs, minlength=nodes * workers)
    return Shares(Balance.of(places.reshape(nodes, workers).sum(axis=1)), Balance.of(places))


def _biggest(ring: TokenRing) -> int:
    return int(np.bincount(ring.owners, weights=ring.parts()).argmax())
