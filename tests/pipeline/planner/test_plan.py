"""Plans against the same figures worked out one topic at a time, with the library's own ring."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from skywalker.errors import ConfigError
from skywalker.pipeline.planner.load import measured
from skywalker.pipeline.planner.plan import Plan, Wanted, plan
from skywalker.pipeline.planner.ring import Fleet, TokenRing
from skywalker.pipeline.planner.skew import Zipf, steepest
from skywalker.pipeline.planner.topics import Batch, Numbered, Piece
from skywalker.ring import Ring, token_of, worker_of
from skywalker.wire import values

TOPICS = 3_000
WANTED = Wanted(nodes=(2, 7), tokens=(4, 16), workers=3, seed=11, remove=1, rate=None, worker_rate=None)


@dataclass
class InPieces:
    """Numbered topics, a few at a time: they end in the middle of nothing in particular."""

    size: int
    skew: Zipf | None
    step: int
    unit: str = "topics"

    def pieces(self) -> Iterator[Piece]:
        for first in range(0, self.size, self.step):
            yield from (
                Numbered(min(self.step, self.size - first), Zipf(0)).pieces() if not first else [self.piece(first)]
            )

    def piece(self, first: int) -> Piece:
        count = min(self.step, self.size - first)
        (whole,) = Numbered(first + count, self.skew or Zipf(0)).pieces()
        tokens, calls = whole.make()
        return Piece(count, lambda: Batch(tokens[first:], None if calls is None else calls[first:]))


def heard(wanted: Wanted, source: Numbered | None) -> Plan:
    return plan(wanted, source, 2, lambda done: None)


def library_ring(ring: TokenRing) -> Ring[int]:
    return Ring.of_tokens(dict(zip(ring.tokens.tolist(), ring.owners.tolist(), strict=True)))


def tokens(count: int) -> list[int]:
    return [token_of(values.canonical(values.pack(number))) for number in range(count)]


def busiest(shares: Counter[int] | Counter[tuple[int, int]], places: int) -> float:
    return max(shares.values()) / (shares.total() / places)


def test_shares_are_those_of_the_library_s_ring_and_of_every_topic_looked_up_alone() -> None:
    made = heard(WANTED, Numbered(TOPICS, Zipf(1.1)))
    assert made.topics == TOPICS
    assert [(each.nodes, each.tokens) for each in made.clusters] == [(2, 4), (2, 16), (7, 4), (7, 16)]
    for each in made.clusters:
        flat = Fleet(7, 16, WANTED.seed).ring(each.nodes, each.tokens)
        ring = library_ring(flat)
        shares = ring.shares()
        assert each.ring.nodes.busiest == pytest.approx(max(shares.values()) * each.nodes)
        assert each.ring.nodes.least == pytest.approx(min(shares.values()) * each.nodes)
        assert each.ring.workers.busiest == pytest.approx(each.ring.nodes.busiest)
        topics: Counter[int] = Counter()
        calls: Counter[int] = Counter()
        worker_calls: Counter[tuple[int, int]] = Counter()
        for number, token in enumerate(tokens(TOPICS)):
            topics[ring.owner(token)] += 1
            calls[ring.owner(token)] += (number + 1) ** -1.1
            worker_calls[ring.owner(token), worker_of(token, 3)] += (number + 1) ** -1.1
        assert each.topics is not None
        assert each.calls is not None
        assert each.topics.nodes.busiest == pytest.approx(busiest(topics, each.nodes))
        assert each.calls.nodes.busiest == pytest.approx(busiest(calls, each.nodes))
        assert each.calls.workers.busiest == pytest.approx(busiest(worker_calls, each.nodes * 3))


def moved(before: Ring[int], after: Ring[int], node: int, other: int) -> tuple[float, set[int]]:
    """Return the part of 3,000 topics' calls that get another owner, and whom they leave or go to.

    `other` says which of the two owners that is.
    """
    calls, total, others = 0.0, 0.0, set()
    for number, token in enumerate(tokens(TOPICS)):
        owners = before.owner(token), after.owner(token)
        total += 1 / (number + 1)
        if owners[0] != owners[1]:
            assert owners[1 - other] == node, "a topic of nobody's concern changed its owner"
            calls += 1 / (number + 1)
            others.add(owners[other])
    return calls / total, others


def test_what_moves_is_what_changes_its_owner_and_nothing_else() -> None:
    for each in heard(WANTED, Numbered(TOPICS, Zipf(1))).clusters:
        fleet = Fleet(8, 16, WANTED.seed)
        ring = library_ring(fleet.ring(each.nodes, each.tokens))
        more = library_ring(fleet.ring(each.nodes + 1, each.tokens))
        less = library_ring(fleet.ring(each.nodes, each.tokens).without(1))
        came, sources = moved(ring, more, each.nodes, other=0)
        assert each.comes.node == each.nodes
        assert each.comes.calls == pytest.approx(came)
        assert each.comes.part == pytest.approx(more.shares()[each.nodes])
        lost = {node: share - more.shares()[node] for node, share in ring.shares().items()}
        assert each.comes.most == pytest.approx(max(lost.values()))
        assert each.comes.others == sum(part > 1e-15 for part in lost.values())
        assert each.comes.others >= len(sources)  # that some arc has no topic is possible
        assert each.comes.afterwards == pytest.approx(max(more.shares().values()) * (each.nodes + 1))
        assert each.goes is not None
        went, heirs = moved(ring, less, 1, other=1)
        assert each.goes.calls == pytest.approx(went)
        assert each.goes.part == pytest.approx(ring.shares()[1])
        gained = {node: share - ring.shares()[node] for node, share in less.shares().items()}
        assert each.goes.most == pytest.approx(max(gained.values()))
        assert each.goes.others == sum(part > 1e-15 for part in gained.values())
        assert each.goes.others >= len(heirs)
        assert each.goes.afterwards == pytest.approx(max(less.shares().values()) * (each.nodes - 1))


def test_the_busiest_node_goes_unless_another_is_named_and_of_one_none_can() -> None:
    wanted = Wanted((1, 5), (8,), 1, 3, None, None, None)
    one, five = heard(wanted, None).clusters
    shares = library_ring(Fleet(6, 8, 3).ring(5, 8)).shares()
    assert one.goes is None
    assert one.comes.others == 1
    assert five.goes is not None
    assert five.goes.node == max(shares, key=lambda node: shares[node])
    assert (five.topics, five.calls, five.comes.calls, five.goes.calls) == (None, None, None, None)


@pytest.mark.parametrize("step", [1, 17, 1_000, 5_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_do_not_depend_on_how_topics_are_cut_and_by_how_many_they_are_counted(step: int, threads: int) -> None:
    ring = Fleet(5, 9, 2).ring(5, 9)
    size = 100 if step == 1 else 2_500
    done: list[int] = []
    load = measured(ring, 1, InPieces(size, None, step), threads, done.append)
    expected = Counter(ring.arcs(np.array(tokens(size))).tolist())
    assert load.topics[:, 0].tolist() == [expected[arc] for arc in range(45)]
    assert load.calls.tolist() == load.topics.tolist()
    assert done == sorted(done)
    assert done[-1] == size


def test_the_hottest_topics_and_what_a_worker_bears() -> None:
    wanted = Wanted((4,), (16,), 2, 1, None, rate=100_000, worker_rate=9_000)
    made = heard(wanted, Numbered(50_000, Zipf(0.95)))
    heat, (each,) = made.heat, made.clusters
    calls = [rank**-0.95 for rank in range(1, 50_001)]
    total = math.fsum(calls)
    assert heat is not None
    assert heat.shares == {top: pytest.approx(math.fsum(calls[:top]) / total) for top in (1, 10, 100, 1000)}
    assert heat.hottest_rate == pytest.approx(100_000 / total)
    assert heat.bears == pytest.approx(9_000 * total)
    assert heat.too_hot == sum(call * 100_000 / total > 9_000 for call in calls) == 0
    assert each.calls is not None
    assert each.bears == pytest.approx(9_000 / (each.calls.workers.busiest / 8))
    hotter = heard(Wanted((4,), (16,), 2, 1, None, 100_000, 500), Numbered(50_000, Zipf(0.95))).heat
    assert hotter is not None
    assert hotter.too_hot is not None
    assert hotter.too_hot == sum(call * 100_000 / total > 500 for call in calls)
    assert hotter.too_hot > 5


def test_topics_none_of_which_is_called_make_no_plan() -> None:
    with pytest.raises(ConfigError, match="no topics, or none of them has calls"):
        plan(WANTED, InPieces(0, None, 5), 1, lambda done: None)


@pytest.mark.parametrize("exponent", [0, 0.5, 0.99, 1, 1.1, 2, 5])
@pytest.mark.parametrize("topics", [1, 2, 9_999, 10_000, 10_001, 300_000])
def test_the_sum_of_all_calls_is_that_of_each_added_up(exponent: float, topics: int) -> None:
    added = math.fsum(rank**-exponent for rank in range(1, topics + 1))
    assert Zipf(exponent).total(topics) == pytest.approx(added, rel=1e-13)


@pytest.mark.parametrize("exponent", [0.5, 0.95, 1, 1.2])
@pytest.mark.parametrize("share", [0.2, 0.01, 1e-5])
def test_limits_are_where_the_hottest_topic_just_fits(exponent: float, share: float) -> None:
    law = Zipf(exponent)
    fewest = law.fewest(share)
    if fewest is None:  # the sum of all ranks there are is no more than this
        assert 1 / law.total(10**15) > share
    else:
        assert 1 / law.total(fewest) <= share < 1 / law.total(fewest - 1)
    limit = steepest(1_000_000, share)
    assert limit is not None
    assert 1 / Zipf(limit).total(1_000_000) <= share < 1 / Zipf(limit + 1e-6).total(1_000_000)
    assert steepest(4, 0.2) is None


@pytest.mark.parametrize("text", ["zipf", "zipf:", "zipf:-1", "zipf:nan", "zipf:11", "zipf:1e3", "ZIPF:1", "", "1.1"])
def test_a_skew_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is neither 'uniform' nor 'zipf:S'"):
        Zipf.parse(text)
