"""What becomes of a value that its client has, and has not acknowledged, when that client or a worker is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.workers.staged import Node, simulated
from tests.workers.wire_client import TIMED_OUT, Clients, WireClient, call, clients_of, refusal

Lost = Callable[[Node, WireClient], None]


def connection(node: Node, listener: WireClient) -> None:
    """The listener's connection ends."""
    listener.close()


def worker(node: Node, listener: WireClient) -> None:
    """The listener's worker dies, once all that it had to say is said."""
    listener.ask(":ping", "p")
    node.kill(node.pid_behind(listener))


def acknowledging(connect: Clients, slot: int) -> WireClient:
    client = connect(worker=slot)
    client.ask(":hello", "h", {"ack": True})
    return client


@pytest.mark.parametrize(
    ("lost", "slots"),
    [
        *itertools.product([connection], itertools.product(range(3), repeat=3)),
        *((worker, (home, owner, at)) for home, owner, at in itertools.product(range(3), repeat=3) if at != home),
    ],
)
def test_whoever_is_lost_with_a_value_that_it_has_not_acknowledged_leaves_a_doubt(
    lost: Lost, slots: tuple[int, int, int]
) -> None:
    """Wherever the sender, the topic and the listener are."""
    home, owner, at = slots
    with simulated(3, harmed=True) as node, clients_of(node.address) as connect:
        sender, listener = connect(worker=home), acknowledging(connect, at)
        sender.ask(":hello", "h", {})
        topic = node.topic_of(owner, "acks")
        listener.call(":recv!", 1, 60_000, topic)
        sender.wait_until(topic, receivers=1)
        sender.call(":send!", 1, 2000, topic, "value")
        assert listener.reply() == [":recv!", 1, "value"]
        lost(node, listener)
        assert refusal(sender.reply()).code == "unknown-outcome"


@pytest.mark.parametrize("owner", range(2))
def test_a_value_that_is_given_back_leaves_none(node: Node, connect: Clients, owner: int) -> None:
    sender, listener = connect(worker=0), acknowledging(connect, 1)
    topic = node.topic_of(owner, "acks")
    listener.call(":recv!", 1, 60_000, topic)
    sender.wait_until(topic, receivers=1)
    sender.call(":send!", 1, 2000, topic, "value")
    assert listener.reply() == [":recv!", 1, "value"]
    assert listener.ask(":cancel", 2, 1) is False
    assert sender.reply() == [":send!", 1, TIMED_OUT]


def given_by_one_id(node: Node, owner: int, sender: WireClient, listener: WireClient, values: list[int]) -> None:
    """Have a listener be given values, each for another call of its with the same id."""
    for value in values:
        topic = node.topic_of(owner, f"acks{value}")
        listener.call(":recv!", "id", 60_000, topic)
        sender.wait_until(topic, receivers=1)
        sender.call(":send!", value, 2000, topic, value)
        assert listener.reply() == [":recv!", "id", value]


@pytest.mark.parametrize("owner", range(2))
def test_an_ack_is_for_the_first_value_of_its_id_and_a_cancel_for_the_last(
    node: Node, connect: Clients, owner: int
) -> None:
    sender, listener = connect(worker=0), acknowledging(connect, 1)
    given_by_one_id(node, owner, sender, listener, [1, 2, 3])
    listener.call(":ack", "id")
    assert sender.reply() == [":send!", 1, True]
    assert listener.ask(":cancel", "c", "id") is False
    listener.call(":ack", "id")
    assert sender.reply() == [":send!", 2, True]
    listener.call(":ack", "id")
    assert sender.reply() == [":send!", 3, TIMED_OUT]


@pytest.mark.parametrize("owner", range(2))
def test_an_ack_confirms_no_other_value_of_its_id(node: Node, connect: Clients, owner: int) -> None:
    sender, listener = connect(worker=0), acknowledging(connect, 1)
    sender.ask(":hello", "h", {})
    given_by_one_id(node, owner, sender, listener, [1, 2])
    listener.call(":ack", "id")
    assert sender.reply() == [":send!", 1, True]
    listener.close()
    assert refusal(sender.reply()).code == "unknown-outcome"


@pytest.mark.parametrize("has_first", [False, True])
def test_a_cancel_is_for_a_value_that_is_still_to_be_written_before_one_that_is_there(
    node: Node, connect: Clients, has_first: bool
) -> None:
    """All have one id, and are given values in the turn that reads the :cancel."""
    sender, listener = connect(worker=0), acknowledging(connect, 1)
    topics = [node.topic_of(1, f"acks{value}") for value in (1, 2, 3)]
    for value, topic in enumerate(topics, start=1):
        sender.call(":send!", value, 2000, topic, value)
        sender.wait_until(topic, senders=1)
    calls = [call(":recv!", "id", 60_000, topic) for topic in topics]
    if has_first:
        listener.write(calls.pop(0))
        assert listener.reply() == [":recv!", "id", 1]
    listener.write(b"".join(calls) + call(":cancel", "c", "id"))
    answers = listener.replies(len(calls) + 1)
    assert [":cancel", "c", False] in answers
    assert [":recv!", "id", 2] in answers
    for value in (1, 2):
        listener.call(":ack", "id")
        assert sender.reply() == [":send!", value, True]
    assert sender.reply() == [":send!", 3, TIMED_OUT], "it went back"


@pytest.mark.parametrize("owner", range(2))
def test_a_cancel_that_comes_before_the_value_is_written_gives_it_back(
    node: Node, connect: Clients, owner: int
) -> None:
    """The call has met somebody in the very turn that reads the :cancel of it."""
    sender, listener, other = connect(worker=0), acknowledging(connect, 1), connect(worker=0)
    topic = node.topic_of(owner, "acks")
    sender.call(":send!", 1, 2000, topic, "value")
    other.wait_until(topic, senders=1)
    listener.write(call(":take!", 1, 1000, topic, "group") + call(":cancel", 2, 1))
    answers = {method: result for method, _, result in listener.replies(2)}
    assert answers[":cancel"] is (answers[":take!"] != "value")
    listener.call(":ack", 1)
    assert other.ask(":take!", 1, 500, topic, "group") == "value"
    assert sender.reply() == [":send!", 1, True]
