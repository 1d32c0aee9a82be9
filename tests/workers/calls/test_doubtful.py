"""Sends that may have been taken, and are to end: what becomes of them is waited for and heard first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.workers.several_nodes import SeveralNodes, several
from tests.workers.wire_client import WireClient, refusal

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


@pytest.fixture
def nodes() -> Iterator[SeveralNodes]:
    with several(*NAMES) as nodes:
        nodes.follow(NAMES)
        nodes.turn()
        yield nodes


def handed_over(nodes: SeveralNodes, at: tuple[str, str, str]) -> tuple[WireClient, WireClient]:
    """Return a sender and a listener that has its value, and has yet to say so."""
    sender_at, owner, listener_at = at
    sender, listener = nodes.client(sender_at), nodes.client(listener_at)
    topic = nodes.topic_of(owner, NAMES)
    listener.call(":hello", 0, {"ack": True})
    nodes.until_reply(listener)
    listener.call(":recv!", 0, 10 * TIMEOUT_S * 1000, topic)
    nodes.turn()
    sender.call(":send!", SEND, TIMEOUT_S * 1000, topic, "value")
    assert nodes.until_reply(listener) == [":recv!", 0, "value"]
    return sender, listener


def told(nodes: SeveralNodes, sender: WireClient) -> dict[int, Any]:
    """Return what the sender is told of its two calls, by their ids, errors as their codes."""
    replies = [nodes.until_reply(sender) for _ in range(2)]
    return {reply[1]: reply[2] if isinstance(reply[2], bool) else refusal(reply).code for reply in replies}


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
def test_a_cancelled_send_that_turns_out_to_be_taken_is_taken(nodes: SeveralNodes, at: tuple[str, str, str]) -> None:
    sender, listener = cancelled(nodes, at)
    listener.call(":ack", 0)
    assert told(nodes, sender) == TAKEN


@pytest.mark.parametrize("at", PLACES)
def test_a_cancelled_send_whose_listener_is_lost_is_cancelled(nodes: SeveralNodes, at: tuple[str, str, str]) -> None:
    sender, listener = cancelled(nodes, at)
    listener.close()
    assert told(nodes, sender) == CANCELLED


@pytest.mark.parametrize("at", PLACES)
def test_a_cancelled_send_of_which_nothing_is_heard_ends_in_its_own_time(
    nodes: SeveralNodes, at: tuple[str, str, str]
) -> None:
    sender, _ = cancelled(nodes, at)
    nodes.nodes[at[0]].turn(OVER_S)
    assert told(nodes, sender) == CANCELLED


@pytest.mark.parametrize("at", PLACES)
def test_a_cancelled_send_whose_worker_ends_is_cancelled(nodes: SeveralNodes, at: tuple[str, str, str]) -> None:
    sender, _ = cancelled(nodes, at)
    nodes.nodes[at[0]].core.stop()
    assert told(nodes, sender) == CANCELLED


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
    for _ in range(20):
        for name in {"a", "b", "c"} - {at[0]}:
            nodes.nodes[name].turn()
        time.sleep(0.001)
    assert not sender.has_input(), "its node has not heard of it"
    home.turn(LAST_WORD_S)
    assert nodes.until_reply(sender) == [":send!", SEND, True]
    assert not is_cancelled or nodes.until_reply(sender) == [":cancel", CANCEL, False]
