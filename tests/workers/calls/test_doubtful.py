"""Sends that may have been taken, and are to end: what becomes of them is waited for and heard first.

One of which nothing is heard is told to be unknown, and neither taken nor not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from skywalker.limits import Limits
from tests.workers.one_worker import OneWorker
from tests.workers.several_nodes import SeveralNodes, several
from tests.workers.wire_client import TIMED_OUT, WireClient, call, refusal
from workers.calls.doubt import LOST_OWNER, SILENT_LISTENER, SILENT_OWNER
from workers.doors.junction.session import Session
from workers.stats.metrics import CALLS, REFUSED

NAMES = ("a", "b", "c")

ELSEWHERE = [
    pytest.param(("a", "b", "c"), id="everybody elsewhere"),
    pytest.param(("a", "a", "b"), id="sender at the owner"),
    pytest.param(("a", "b", "b"), id="listener at the owner"),
    pytest.param(("a", "b", "a"), id="listener with the sender"),
]

PLACES = [*ELSEWHERE, pytest.param(("a", "a", "a"), id="everybody at the owner")]
"""Of a sender, of the owner of its topic, and of a listener."""

TIMEOUT_S = 60
LATER_S = 30.0
OVER_S = 61.0
LAST_WORD_S = 70.0
"""Later than that, nobody is waited for."""

SEND = 1
CANCEL = 2

TAKEN = {SEND: True, CANCEL: False}
CANCELLED = {SEND: "cancelled", CANCEL: True}
UNKNOWN = {SEND: "unknown-outcome", CANCEL: False}


@pytest.fixture
def nodes() -> Iterator[SeveralNodes]:
    with several(*NAMES) as nodes:
        nodes.follow(NAMES)
        nodes.turn()
        yield nodes


def handed_over(
    nodes: SeveralNodes, at: tuple[str, str, str], *timed_out: str, says_hello: bool = True
) -> tuple[WireClient, WireClient]:
    """Return a sender and a listener that has its value, and has yet to say so."""
    sender_at, owner, listener_at = at
    sender = nodes.client(sender_at)
    [session] = nodes.nodes[sender_at].core.connections
    assert isinstance(session, Session)
    session.knows_errors = says_hello
    listener = nodes.client(listener_at)
    topic = nodes.topic_of(owner, NAMES)
    listener.call(":hello", 0, {"ack": True})
    nodes.until_reply(listener)
    listener.call(":recv!", 0, 10 * TIMEOUT_S * 1000, topic)
    nodes.turn()
    sender.call(":send!", SEND, TIMEOUT_S * 1000, *timed_out, topic, "value")
    assert nodes.until_reply(listener) == [":recv!", 0, "value"]
    return sender, listener


def told(nodes: SeveralNodes, sender: WireClient) -> dict[int, Any]:
    """Return what the sender is told of its two calls, by their ids, errors as their codes."""
    replies = [nodes.until_reply(sender) for _ in range(2)]
    return {reply[1]: reply[2] if isinstance(reply[2], bool) else refusal(reply).code for reply in replies}


def unknown(nodes: SeveralNodes, sender: WireClient) -> str:
    """Return why the sender is told that the outcome of its send is unknown."""
    said = refusal(nodes.until_reply(sender))
    assert said[:3] == (":send!", SEND, "unknown-outcome")
    assert said.message.startswith("it is not known whether somebody took the value: ")
    why: str = said.details["why"]
    return why


def cancelled(nodes: SeveralNodes, at: tuple[str, str, str]) -> tuple[WireClient, WireClient]:
    """Return the same once the sender has asked for its call to be cancelled, some time ago."""
    sender, listener = handed_over(nodes, at)
    sender.call(":cancel", CANCEL, SEND)
    nodes.turn()
    nodes.nodes[at[0]].turn(LATER_S)
    nodes.turn()
    assert not sender.has_input(), "it cannot be known yet"
    return sender, listener


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("outcome", [TAKEN, CANCELLED, UNKNOWN], ids=["taken", "lost", "nothing is heard"])
def test_who_cancels_a_send_that_somebody_has_is_told_what_becomes_of_it(
    nodes: SeveralNodes, at: tuple[str, str, str], outcome: dict[int, Any]
) -> None:
    sender, listener = cancelled(nodes, at)
    if outcome is TAKEN:
        listener.call(":ack", 0)
    elif outcome is CANCELLED:
        listener.close()
    else:
        nodes.nodes[at[0]].turn(OVER_S)
    assert told(nodes, sender) == outcome


@pytest.mark.parametrize("at", PLACES)
def test_a_send_of_which_nothing_is_heard_ends_as_unknown_and_why(
    nodes: SeveralNodes, at: tuple[str, str, str]
) -> None:
    sender, listener = handed_over(nodes, at)
    home = nodes.nodes[at[0]]
    home.turn(OVER_S)
    nodes.turn()
    assert not sender.has_input(), "there is some time for a last word"
    home.turn(LAST_WORD_S)
    is_owner = at[0] == at[1]
    assert unknown(nodes, sender) == (SILENT_LISTENER if is_owner else SILENT_OWNER)
    assert home.counted(CALLS) == {"send unknown-outcome": 1}
    assert home.counted(REFUSED) == {"unknown-outcome": 1}
    listener.call(":ack", 0)
    nodes.turn()
    assert not sender.has_input(), "it has its answer"


@pytest.mark.parametrize("at", ELSEWHERE[:1] + ELSEWHERE[2:])
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_send_that_is_asked_back_from_an_owner_which_is_lost_then_is_unknown(
    nodes: SeveralNodes, at: tuple[str, str, str], is_cancelled: bool
) -> None:
    sender, _ = cancelled(nodes, at) if is_cancelled else handed_over(nodes, at)
    if not is_cancelled:
        nodes.nodes[at[0]].turn(OVER_S)
    nodes.kill(at[1])
    assert unknown(nodes, sender) == LOST_OWNER
    assert not is_cancelled or nodes.until_reply(sender) == [":cancel", CANCEL, False]


def test_a_send_that_waits_at_another_node_which_is_lost_is_in_doubt(nodes: SeveralNodes) -> None:
    sender = nodes.client("a")
    sender.call(":send!", SEND, TIMEOUT_S * 1000, nodes.topic_of("b", NAMES), "value")
    nodes.turn()
    nodes.kill("b")
    nodes.turn()
    assert not sender.has_input(), "it goes on"
    nodes.nodes["a"].turn(OVER_S)
    assert unknown(nodes, sender) == LOST_OWNER, "a client of that node may have it, and the word of that was lost"


def test_a_send_that_waits_at_another_node_which_goes_as_planned_is_not_in_doubt(nodes: SeveralNodes) -> None:
    sender = nodes.client("a")
    sender.call(":send!", SEND, TIMEOUT_S * 1000, nodes.topic_of("b", NAMES), "value")
    nodes.turn()
    nodes.nodes["b"].core.stop()
    nodes.turn()
    assert not sender.has_input(), "it goes on"
    nodes.nodes["a"].turn(OVER_S)
    assert nodes.until_reply(sender) == [":send!", SEND, TIMED_OUT]


def test_a_send_that_meets_somebody_as_the_last_words_on_another_are_heard_is_taken(nodes: SeveralNodes) -> None:
    handed_over(nodes, ("a", "a", "b"))
    home, topic = nodes.nodes["a"], nodes.topic_of("a", NAMES)
    lost = nodes.client("b")
    lost.call(":recv!", 0, 10 * TIMEOUT_S * 1000, topic)
    nodes.turn()
    sender, listener = nodes.client("a"), nodes.client("a")
    sender.call(":send!", SEND, 2 * TIMEOUT_S * 1000, topic, "another value")
    home.turn()
    listener.call(":recv!", 0, 10 * TIMEOUT_S * 1000, topic)
    home.turn(OVER_S)
    assert not listener.has_input(), "who is gone may have the value"
    lost.close()
    nodes.nodes["b"].turn()
    home.turn(2 * OVER_S)  # that it is lost is heard as the time for a last word on the first is over
    assert nodes.until_reply(listener) == [":recv!", 0, "another value"]
    assert nodes.until_reply(sender) == [":send!", SEND, True]


@pytest.mark.parametrize("at", PLACES)
def test_a_send_that_somebody_has_when_its_worker_ends_is_unknown(
    nodes: SeveralNodes, at: tuple[str, str, str]
) -> None:
    sender, _ = handed_over(nodes, at)
    nodes.nodes[at[0]].core.stop()
    assert unknown(nodes, sender) in (SILENT_OWNER, SILENT_LISTENER)


@pytest.mark.parametrize("at", PLACES)
def test_a_cancelled_send_that_somebody_has_when_its_worker_ends_is_unknown(
    nodes: SeveralNodes, at: tuple[str, str, str]
) -> None:
    sender, _ = cancelled(nodes, at)
    nodes.nodes[at[0]].core.stop()
    assert told(nodes, sender) == UNKNOWN


@pytest.mark.parametrize("timed_out", [None, "nobody"])
@pytest.mark.parametrize("at", PLACES)
def test_who_never_said_hello_hears_that_its_time_is_over(
    nodes: SeveralNodes, at: tuple[str, str, str], timed_out: str | None
) -> None:
    nobody = [] if timed_out is None else [timed_out]
    sender, _ = handed_over(nodes, at, *nobody, says_hello=False)
    home = nodes.nodes[at[0]]
    home.turn(OVER_S)
    home.turn(LAST_WORD_S)
    assert nodes.until_reply(sender) == [":send!", SEND, timed_out or TIMED_OUT]
    assert home.counted(CALLS) == {"send unknown-outcome": 1}


def test_a_value_that_is_half_written_when_its_time_is_over_is_unknown_and_those_behind_it_are_not() -> None:
    worker = OneWorker(Limits(unread_output_s=1000.0))
    count, size = 16, 4000
    with contextlib.closing(worker), worker.connect() as sender, worker.connect(send_buffer=8 * 1024) as slow:
        slow.write(b"".join(call(":take!", n, 10 * TIMEOUT_S * 1000, "topic", "group") for n in range(count)))
        worker.turn()
        values = [n.to_bytes(4, "big") + bytes(size) for n in range(count)]
        sender.write(b"".join(call(":send!", n, TIMEOUT_S * 1000, "topic", value) for n, value in enumerate(values)))
        worker.turn()
        worker.turn(OVER_S)
        worker.turn(LAST_WORD_S)
        results = {id: result for _, id, result in sender.replies(count)}
        met = [id for id, result in results.items() if result is True]
        missed = [id for id, result in results.items() if result == TIMED_OUT]
        [half] = results.keys() - {*met, *missed}
        assert refusal([":send!", half, results[half]]).details == {"why": SILENT_LISTENER}
        assert (met, missed) == ([*range(half)], [*range(half + 1, count)])
        got = []
        while len(got) <= half:
            got.append(int.from_bytes(slow.reply()[2][:4], "big"))
            worker.turn(LAST_WORD_S)
        assert got == [*met, half]
        assert not slow.has_input(), "what was said to be missed is"


@pytest.mark.parametrize("at", PLACES)
def test_a_send_that_nobody_was_given_is_cancelled_at_once(nodes: SeveralNodes, at: tuple[str, str, str]) -> None:
    sender = nodes.client(at[0])
    sender.call(":send!", SEND, TIMEOUT_S * 1000, nodes.topic_of(at[1], NAMES), "value")
    nodes.turn()
    sender.call(":cancel", CANCEL, SEND)
    assert told(nodes, sender) == CANCELLED


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("at", ELSEWHERE)
def test_what_has_come_is_heard_before_it_is_decided(
    nodes: SeveralNodes, at: tuple[str, str, str], is_cancelled: bool
) -> None:
    sender, listener = cancelled(nodes, at) if is_cancelled else handed_over(nodes, at)
    home = nodes.nodes[at[0]]
    if not is_cancelled:
        home.turn(OVER_S)
        nodes.turn()
        assert not sender.has_input(), "there is some time for a last word"
    listener.call(":ack", 0)
    nodes.nodes[at[2]].turn()
    for name in 2 * (*NAMES,):
        if name != at[0]:
            nodes.nodes[name].turn()
    assert not sender.has_input(), "its node has not heard of it"
    home.turn(LAST_WORD_S)
    assert nodes.until_reply(sender) == [":send!", SEND, True]
    assert not is_cancelled or nodes.until_reply(sender) == [":cancel", CANCEL, False]
