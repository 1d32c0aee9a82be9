"""Who owns a topic, as the core finds it, against skywalker.ring; and calls wait for one who is not there."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.limits import Limits
from skywalker.members import Place, PlaceRing, Share
from skywalker.ring import token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.workers.core import _parts
from tests.workers.core.worlds import MemoryWorker, Settings, Wire
from workers.calls.owner import Owner

LEAST, MOST = -(2**63), 2**63 - 1
tokens = st.integers(LEAST, MOST) | st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST])


@pytest.mark.parametrize("size", [*range(70), 4096])
def test_tokens_are_the_same(size: int) -> None:
    topic = random.Random(size).randbytes(size)
    assert _parts.token(topic) == token_of(topic)


@given(
    st.dictionaries(tokens, st.tuples(st.integers(0, 999), st.integers(1, 1024)), min_size=1, max_size=20),
    st.lists(tokens, max_size=10),
)
def test_owners_are_the_same(shares: dict[int, tuple[int, int]], wanted: list[int]) -> None:
    ring = PlaceRing({token: Share("n", *share) for token, share in shares.items()})
    order = sorted(shares)
    numbers = [7 * worker for worker in range(2_023)]
    for token in (*wanted, *order, *(max(LEAST, each - 1) for each in order), *(min(MOST, each + 1) for each in order)):
        found = _parts.owner_of(order, [shares[each] for each in order], numbers, token)
        assert found == 7 * ring.owner(token).worker


@pytest.mark.parametrize("others", [0, 70_000])
def test_calls_on_topics_of_an_owner_who_is_not_there_wait_for_it(others: int) -> None:
    worker, wire_ = MemoryWorker(settings=Settings(Limits())), Wire(1)
    worker.world.wires[1] = wire_
    worker.connect(1)
    topics = [values.pack(f"topic {number}") for number in range(50)]
    order = sorted(token_of(topic) for topic in topics)[::5]
    ours, other = worker.hub.siblings.owners[0], Owner(worker.core, Place("other", 0))
    ring = PlaceRing({token: Share(*(ours.place, other.place)[at % 2], 1) for at, token in enumerate(order)})
    beside = {Place("many", number): None for number in range(others)}
    worker.hub.owners.follow(ring, {ours.place: ours, **beside, other.place: other})
    for topic in topics:
        assert worker.hub.owners.of(topic).place == ring.owner(token_of(topic))
    here = [topic for topic in topics if ring.owner(token_of(topic)) == ours.place]
    for number, topic in enumerate(topics):
        wire_.coming += wire.frame(wire.RECV, values.pack(number), values.pack(60_000), topic)
    worker.settle()
    assert not wire_.taken
    assert [topic for topic in topics if worker.core.census(topic).receivers] == here
    assert 0 < len(here) < len(topics)
    assert other.is_awaited
    worker.hub.owners.follow(PlaceRing({0: Share(*ours.place, 1)}), {ours.place: ours})
    worker.core.reroute(worker.hub.clients.handles()[0])
    worker.settle()
    assert all(worker.core.census(topic).receivers for topic in topics)
    worker.core.shut()
