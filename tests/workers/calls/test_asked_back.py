"""Values that are asked back when their senders' time is over: what those are told is what becomes of the values.

The nodes are moved by hand, so that the listener always makes room at the worst moment: when a sender was told, and
before anybody else hears of that.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from skywalker.limits import Limits
from tests.workers.several_nodes import SeveralNodes, several
from tests.workers.wire_client import TIMED_OUT, WireClient, call, refusal

NAMES = ("a", "b", "c")

PLACES = [
    pytest.param(("a", "b", "c"), id="everybody elsewhere"),
    pytest.param(("a", "a", "b"), id="sender at the owner"),
    pytest.param(("a", "b", "b"), id="listener at the owner"),
    pytest.param(("a", "b", "a"), id="listener with the sender"),
    pytest.param(("a", "a", "a"), id="everybody at the owner"),
]

TIMEOUT_S = 60
OVER_S = 61.0
LAST_WORD_S = 70.0
"""Later than that, no owner is waited for."""

COUNT = 16
SIZE = 4000
"""Bytes of a value: all of them are one read of the sender, and far more than the listener's socket takes."""

SMALL_BUFFER = 8 * 1024


@dataclasses.dataclass
class Meeting:
    """A sender, a listener that does not read, and COUNT values that the one has sent to the other."""

    nodes: SeveralNodes
    sender: WireClient
    listener: WireClient
    at: tuple[str, str, str]
    told: dict[int, Any] = dataclasses.field(default_factory=dict)
    got: list[int] = dataclasses.field(default_factory=list)

    def go_on(self) -> None:
        """Let everybody hear everything, until no more than one value has no outcome, or for quite a while."""
        for _ in range(50):
            self.nodes.turn()
            self.hear()
            if len(self.told) >= COUNT - 1:
                break

    def hear(self) -> None:
        """Take in what the sender was told."""
        while self.sender.has_input():
            reply = self.sender.reply()
            _, id, result = reply
            assert id not in self.told, "told twice"
            self.told[id] = result if result in (True, TIMED_OUT) else refusal(reply).code

    def make_room(self) -> None:
        """Have the listener read what was written to it, which its node sees in its next turn, and first in that."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.got.append(int.from_bytes(self.listener.reply(0.005)[2][:4], "big"))

    def read(self) -> None:
        """Have the listener read all that comes, and nobody but its node know."""
        for _ in range(COUNT):
            self.make_room()
            self.nodes.nodes[self.at[2]].turn()

    @property
    def met(self) -> list[int]:
        """Which values the sender was told true for."""
        return sorted(number for number, result in self.told.items() if result is True)

    @property
    def unknown(self) -> list[int]:
        """Of which it was told that they may have been taken."""
        return sorted(number for number, result in self.told.items() if result == "unknown-outcome")


@pytest.fixture
def nodes() -> Iterator[SeveralNodes]:
    with several(*NAMES, limits=Limits(unread_output_s=1000.0)) as nodes:
        nodes.follow(NAMES)
        nodes.turn()
        yield nodes


@pytest.fixture(params=["subscriber", "takers"])
def listens(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def meeting(nodes: SeveralNodes, at: tuple[str, str, str], listens: str) -> Meeting:
    """Return one whose listener could not be given all values that came."""
    sender_at, owner, listener_at = at
    topic = nodes.topic_of(owner, NAMES)
    sender, listener = nodes.client(sender_at), nodes.client(listener_at, send_buffer=SMALL_BUFFER)
    meeting = Meeting(nodes, sender, listener, at)
    if listens == "subscriber":
        listener.call(":subscribe", "s", topic)
        assert nodes.until_reply(listener) == [":subscribe", "s", True]
    else:
        for id in range(COUNT):
            listener.call(":take!", id, 10 * TIMEOUT_S * 1000, topic, "group")
        nodes.turn()
    values = [number.to_bytes(4, "big") + bytes(SIZE) for number in range(COUNT)]
    sender.write(b"".join(call(":send!", n, TIMEOUT_S * 1000, topic, value) for n, value in enumerate(values)))
    nodes.turn()
    meeting.hear()
    assert 0 < len(meeting.told) < COUNT - 2, "the listener reads"
    assert meeting.met == [*range(len(meeting.told))]
    return meeting


@pytest.mark.parametrize("at", PLACES)
def test_who_was_told_that_nobody_came_has_sent_nothing(
    nodes: SeveralNodes, at: tuple[str, str, str], listens: str
) -> None:
    story = meeting(nodes, at, listens)
    home = nodes.nodes[at[0]]
    home.turn(OVER_S)
    story.hear()
    story.go_on()
    story.make_room()
    home.turn(LAST_WORD_S)
    story.hear()
    assert len(story.told) == COUNT
    assert list(story.told.values()).count(TIMED_OUT) >= 2
    assert {*story.told.values()} <= {True, TIMED_OUT, "unknown-outcome"}
    story.read()
    assert story.unknown in ([], [len(story.met)]), "only one can be half written"
    assert story.got in (story.met, [*story.met, *story.unknown])


@pytest.mark.parametrize("at", PLACES[:2])
def test_what_is_written_before_it_is_asked_back_is_the_listeners_and_its_sender_hears_so(
    nodes: SeveralNodes, at: tuple[str, str, str], listens: str
) -> None:
    story = meeting(nodes, at, listens)
    home = nodes.nodes[at[0]]
    before = len(story.met)
    story.make_room()
    home.turn(OVER_S)
    story.read()
    story.go_on()
    home.turn(LAST_WORD_S)
    story.hear()
    assert story.got == story.met
    assert len(story.met) > before


def test_a_value_that_is_half_written_is_its_listeners_and_its_sender_hears_so_if_that_is_soon(
    nodes: SeveralNodes, listens: str
) -> None:
    story = meeting(nodes, ("a", "b", "c"), listens)
    nodes.nodes["a"].turn(OVER_S)
    story.go_on()
    half_written = len(story.met)
    assert half_written not in story.told
    assert [number for number, result in story.told.items() if result == TIMED_OUT] == [*range(half_written + 1, COUNT)]
    story.read()
    while len(story.told) < COUNT:
        story.go_on()
    assert story.got == story.met == [*range(half_written + 1)]


def test_a_value_that_its_client_must_acknowledge_is_not_taken_from_it(nodes: SeveralNodes) -> None:
    sender, listener = nodes.client("a"), nodes.client("c")
    topic = nodes.topic_of("b", NAMES)
    listener.call(":hello", 0, {"ack": True})
    nodes.until_reply(listener)
    listener.call(":recv!", 1, 10 * TIMEOUT_S * 1000, topic)
    nodes.turn()
    sender.call(":send!", 2, TIMEOUT_S * 1000, topic, "value")
    assert nodes.until_reply(listener) == [":recv!", 1, "value"]
    nodes.nodes["a"].turn(OVER_S)
    nodes.turn()
    assert not sender.has_input()
    listener.call(":ack", 1)
    assert nodes.until_reply(sender) == [":send!", 2, True]
