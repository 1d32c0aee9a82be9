"""Who owns a topic, as the core finds it, against skywalker.ring; and what becomes of calls that are for others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.workers.core import _parts
from tests.workers.core.worlds import New, Wire

LEAST, MOST = -(2**63), 2**63 - 1
tokens = st.integers(LEAST, MOST) | st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST])


@pytest.mark.parametrize("size", [*range(70), 4096])
def test_tokens_are_the_same(size: int) -> None:
    topic = random.Random(size).randbytes(size)
    assert _parts.token(topic) == token_of(topic)


@given(st.dictionaries(tokens, st.integers(0, 65_535), min_size=1, max_size=20), st.lists(tokens, max_size=10))
def test_owners_are_the_same(owners: dict[int, int], wanted: list[int]) -> None:
    ring = Ring.of_tokens(owners)
    order = sorted(owners)
    for token in (*wanted, *order, *(max(LEAST, each - 1) for each in order), *(min(MOST, each + 1) for each in order)):
        assert _parts.owner_of(order, [owners[each] for each in order], token) == ring.owner(token)


class Noting(New):
    """A world whose core leaves to others what it does not own."""

    def __init__(self) -> None:
        super().__init__(1)
        self.left: list[bytes] = []
        self.world.wires[1] = Wire(1)
        self.connect(1)

    def say(self, *frames: bytes) -> bytes:
        self.world.wires[1].coming += b"".join(frames)
        self.settle()
        heard = bytes(self.world.wires[1].taken)
        self.world.wires[1].taken.clear()
        return heard


def test_a_call_on_a_topic_of_another_owner_is_left_to_who_knows_that(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Noting()
    topics = [values.pack(f"topic {number}") for number in range(50)]
    order = sorted(token_of(topic) for topic in topics)[::5]
    owners = [at % 2 for at in range(len(order))]
    ring = Ring.of_tokens(dict(zip(order, owners, strict=True)))
    left: list[bytes] = []
    rare = world.core.rare
    monkeypatch.setattr(type(rare), "unusual", lambda self, handle, body: left.append(body))
    asked = [wire.frame(wire.RECV, values.pack(at), values.pack(0), topic) for at, topic in enumerate(topics)]
    for here in (0, 1, 0):
        world.core.follow(order, owners, here)
        left.clear()
        heard = world.say(*asked)
        others = [frame[2:] for frame, topic in zip(asked, topics, strict=True) if ring.owner(token_of(topic)) != here]
        assert left == others
        assert 0 < len(others) < len(asked)
        assert heard == b"".join(
            wire.reply(wire.RECV, values.pack(at), wire.TIMED_OUT)
            for at, topic in enumerate(topics)
            if ring.owner(token_of(topic)) == here
        )
    world.core.follow([], [], 0)
    left.clear()
    world.say(*asked)
    assert not left
    world.core.shut()
