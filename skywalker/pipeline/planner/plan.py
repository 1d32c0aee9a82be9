"""The plan: how even clusters of several sizes are, what moves in them, and what hot topics do to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from skywalker.errors import ConfigError
from skywalker.pipeline.planner.load import Load, measured
from skywalker.pipeline.planner.ring import Fleet, TokenRing
from skywalker.pipeline.planner.skew import Zipf, steepest
from skywalker.pipeline.planner.topics import Source


@dataclass(frozen=True, slots=True)
class Balance:
    """Shares against a fair one, which is 1: the mean of all."""

    busiest: float
    p99: float
    p50: float
    least: float

    @classmethod
    def of(cls, shares: NDArray[Any]) -> Self:
        """Return the balance of shares, in whatever unit they are; at least one is above 0."""
        of_fair = shares / shares.mean()
        p99, p50 = np.percentile(of_fair, [99, 50])
        return cls(float(of_fair.max()), float(p99), float(p50), float(of_fair.min()))


@dataclass(frozen=True, slots=True)
class Move:
    """One node comes or goes."""

    node: int
    part: float  # of all topics, that move
    calls: float | None  # of all calls, that move; None if no calls were given
    others: int  # nodes that they come from, or go to
    most: float  # of all topics, those that one of these nodes loses, or gets
    afterwards: float  # what the busiest node has then, of a fair share


def move(smaller: TokenRing, bigger: TokenRing, node: int, calls: NDArray[np.float64] | None, comes: bool) -> Move:
    """Return what moves when `node`, which the bigger ring has and the smaller one has not, comes or else goes.

    `calls` are those of each arc of the bigger ring.
    """
    its = bigger.owners == node
    parts = bigger.parts()
    # What the node owns above one of its tokens belongs, without it, to who owns that token's own place.
    others = np.bincount(smaller.owner(bigger.tokens[its]), weights=parts[its])
    return Move(
        node=node,
        part=float(parts[its].sum()),
        calls=None if calls is None else float(calls[its].sum() / calls.sum()),
        others=int(np.count_nonzero(others)),
        most=float(others.max()),
        afterwards=Balance.of(shares(bigger if comes else smaller)).busiest,
    )


def shares(ring: TokenRing) -> NDArray[np.float64]:
    """Return which part of the ring each of its nodes owns, in the order of their numbers."""
    owned: NDArray[np.float64] = np.bincount(ring.owners, weights=ring.parts()).astype(np.float64)
    return owned[np.unique(ring.owners)]


TOPS: Final = (1, 10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Heat:
    """The hottest topics; rates are in calls/s, and None where the rate of the cluster or of a worker is not given."""

    shares: dict[int, float]  # of all calls, by how many of the hottest topics have them together
    hottest_rate: float | None
    bears: float | None  # calls/s in all at which a worker just bears the hottest topic
    too_hot: int | None  # topics of which one asks for more than a worker can do; of no more than HOTTEST
    fewest: int | None  # topics of which, with this skew, none is too hot; None also if any number has one
    steepest: float | None  # exponent with which, of so many topics, none is too hot; None also if there is none


def heat(load: Load, skew: Zipf | None, rate: float | None, worker_rate: float | None) -> Heat:
    """Return what the hottest topics of a load ask for.

    `skew` is the law that made it, None if the calls of the topics were given. `rate` are the calls/s of the whole
    cluster, `worker_rate` those that one worker can do.
    """
    parts = load.hottest / load.calls.sum()
    topics = int(load.topics.sum())
    both = None if rate is None or worker_rate is None else worker_rate / rate
    return Heat(
        shares={top: float(parts[:top].sum()) for top in TOPS if top <= topics},
        hottest_rate=None if rate is None else rate * float(parts[0]),
        bears=None if worker_rate is None else worker_rate / float(parts[0]),
        too_hot=None if both is None else int((parts > both).sum()),
        fewest=None if both is None or skew is None else skew.fewest(both),
        steepest=None if both is None or skew is None else steepest(topics, both),
    )


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
        ring = fleet.ring(wanted.nodes[-1] + 1, wanted.tokens[-1])
        load = measured(ring, wanted.workers, source, threads, tell)
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
    even = np.repeat(ring.parts()[:, np.newaxis], wanted.workers, axis=1)  # each has the same part of an arc
    by_ring = _shares(ring, nodes, even)
    by_calls = None if calls is None else _shares(ring, nodes, calls)
    goes = int(np.bincount(ring.owners, weights=ring.parts()).argmax()) if wanted.remove is None else wanted.remove
    busiest = (by_calls or by_ring).workers.busiest / (nodes * wanted.workers)
    its = None if calls is None else calls.sum(axis=1)
    then = None if load is None else load.on(bigger)[1].sum(axis=1)
    return Cluster(
        nodes=nodes,
        tokens=tokens,
        ring=by_ring,
        topics=None if topics is None else _shares(ring, nodes, topics),
        calls=by_calls,
        bears=None if wanted.worker_rate is None else wanted.worker_rate / busiest,
        comes=move(ring, bigger, nodes, then, comes=True),
        goes=None if nodes == 1 else move(ring.without(goes), ring, goes, its, comes=False),
    )


def _shares(ring: TokenRing, nodes: int, cells: NDArray[np.float64] | NDArray[np.int64]) -> Shares:
    """Return how even a ring's arcs are shared, by what each worker has of them."""
    places = np.stack([np.bincount(ring.owners, weights=each, minlength=nodes) for each in cells.T], axis=1)
    return Shares(Balance.of(places.sum(axis=1)), Balance.of(places))
