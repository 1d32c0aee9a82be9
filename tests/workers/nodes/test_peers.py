"""Calls between nodes, as far as it matters when each hears of another ring; that all pairs meet is simulated."""

from __future__ import annotations

from tests.workers.several_nodes import several
from tests.workers.wire_client import TIMED_OUT

NAMES = ("a", "b", "c")


def test_is_anyone_there_is_asked_of_a_node_that_was_never_asked_before() -> None:
    with several("a", "b") as nodes:
        nodes.follow("ab")
        topic = nodes.topic_of("b", "ab")
        there, asks = nodes.client("b"), nodes.client("a")
        there.call(":recv!", 1, 5000, topic)
        nodes.turn()
        asks.call(":send!", 2, 0, topic, "anyone?")
        assert nodes.until_reply(asks) == [":send!", 2, True]
        assert nodes.until_reply(there) == [":recv!", 1, "anyone?"]
        asks.call(":send!", 3, 0, topic, "more?")
        assert nodes.until_reply(asks) == [":send!", 3, TIMED_OUT]


def test_two_nodes_with_different_rings_do_not_forward_in_a_circle() -> None:
    with several("a", "b") as nodes:
        # Each thinks that the other owns everything.
        nodes.follow("b", by="a")
        nodes.follow("a", by="b")
        at_a, at_b = nodes.client("a"), nodes.client("b")
        at_a.call(":recv!", 1, 5000, "topic")
        at_b.call(":send!", 2, 5000, "topic", "hi")
        nodes.turn()
        held = {name: node.holds() for name, node in nodes.nodes.items()}
        assert held["a"]["topics"] == held["b"]["topics"] == 1, "each waits at the other's junction"
        nodes.follow("ab")
        assert nodes.until_reply(at_a) == [":recv!", 1, "hi"]
        assert nodes.until_reply(at_b) == [":send!", 2, True]


def test_senders_are_served_in_the_order_they_came_whatever_node_they_came_through() -> None:
    with several(*NAMES) as nodes:
        nodes.follow("ab")
        topic = nodes.topic_of("b", "ab", then=("c", NAMES))
        senders = [nodes.client("ab"[number % 2]) for number in range(6)]
        for number, sender in enumerate(senders):
            sender.call(":send!", number, 5000, topic, number)
            nodes.turn()
        nodes.follow(NAMES, by="b")
        nodes.turn()
        nodes.follow(NAMES, by="ac")
        nodes.turn()
        receiver = nodes.client("a")
        for number in range(6):
            receiver.call(":recv!", number, 5000, topic)
            assert nodes.until_reply(receiver) == [":recv!", number, number]
