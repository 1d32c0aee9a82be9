"""Calls of one worker for topics of another: nobody can tell them from calls that stay at home."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.workers.staged import Node, simulated
from tests.workers.wire_client import Clients, WireClient, packed, raw_call


@pytest.fixture
def node() -> Iterator[Node]:
    """A node where every place that a call may pass may be a worker of its own."""
    with simulated(workers=3) as node:
        yield node


@pytest.fixture
def at(node: Node, connect: Clients) -> list[WireClient]:
    """A connection to each worker."""
    return [connect(worker=worker) for worker in range(node.workers)]


def places(node: Node) -> Iterator[tuple[int, int, int]]:
    """Yield every combination of the workers of a sender, of a listener and of the owner of a topic."""
    return itertools.product(range(node.workers), repeat=3)


def test_a_call_with_no_time_meets_who_waits_wherever_that_is(
    node: Node, at: list[WireClient], connect: Clients, topic: str
) -> None:
    others = [connect(worker=worker) for worker in range(node.workers)]
    for here, there, owner in places(node):
        passing, waiting, name = at[here], others[there], node.topic_of(owner, f"{topic}{here}{there}")
        waiting.call(":recv!", 1, 60_000, name)
        passing.wait_until(name, receivers=1)
        assert passing.ask(":send!", 2, 0, name, "value") is True
        assert waiting.reply() == [":recv!", 1, "value"]
        waiting.call(":send!", 1, 60_000, name, "another")
        passing.wait_until(name, senders=1)
        assert passing.ask(":recv!", 2, 0, name) == "another"
        assert waiting.reply() == [":send!", 1, True]


def test_a_sender_hears_that_its_value_is_too_long_for_a_listener_elsewhere_who_goes_on_listening(
    node: Node, connect: Clients
) -> None:
    for here, there, owner in places(node):
        topic = node.topic_of(owner, "t")
        overhead = len(raw_call(packed(":send!"), b"\x01", packed(9000), packed(topic), packed(b"x" * 60_000))) - 60_002
        value = b"x" * (65_535 - overhead)
        sender, listener, other = connect(worker=here), connect(worker=there), connect(worker=owner)
        listener.call(":recv!", "i" * 31, 60_000, topic)
        sender.wait_until(topic, receivers=1)
        sender.call(":send!", 1, 9000, topic, value)
        error = sender.refusal()
        assert (error.method, error.id, error.code) == (":send!", 1, "too-large")
        assert error.details == {"size": len(packed(value)), "limit": 65_535 - 8 - 32}
        sender.wait_until(topic, receivers=1, senders=0)
        # Who can take it does, and the sender hears nothing of the other.
        other.call(":recv!", 2, 5000, topic)
        sender.wait_until(topic, receivers=2)
        assert sender.ask(":send!", 3, 9000, topic, value) is True
        assert other.reply() == [":recv!", 2, value]
        sender.wait_until(topic, receivers=1, senders=0)
        # One that waits already is told so, too, when such a listener comes.
        assert sender.ask(":send!", 4, 9000, topic, "short") is True
        assert listener.reply() == [":recv!", "i" * 31, "short"]
        sender.call(":send!", 5, 9000, topic, value)
        other.wait_until(topic, senders=1)
        listener.call(":recv!", "i" * 31, 60_000, topic)
        assert sender.refusal().code == "too-large"
        assert sender.ask(":send!", 6, 9000, topic, "next") is True
        assert listener.reply() == [":recv!", "i" * 31, "next"]


def test_a_census_names_the_first_groups_and_counts_those_of_all_others_wherever_it_is_taken(
    node: Node, at: list[WireClient], topic: str
) -> None:
    for owner in range(node.workers):
        name = node.topic_of(owner, topic)
        for id in range(300):
            at[0].call(":take!", id, 60_000, name, "g" * 200 + str(id))
        first = {"g" * 200 + str(id): 1 for id in range(5)}
        for client in at:
            client.wait_until(name, takers={**first, None: 300 - len(first)})
        at[0].write(b"".join(raw_call(*map(packed, (":cancel", None, id))) for id in range(300)))
        at[0].replies(600)
