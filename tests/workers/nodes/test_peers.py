"""Calls between nodes: every pair meets, whatever node each side is at, and whenever the ring changes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.workers.several_nodes import several
from tests.workers.wire_client import TIMED_OUT

NAMES = ("a", "b", "c")


@pytest.mark.parametrize("sender", NAMES)
@pytest.mark.parametrize("receiver", NAMES)
@pytest.mark.parametrize("first", ["send", "recv"])
def test_a_pair_meets_through_any_two_nodes(sender: str, receiver: str, first: str) -> None:
    with several(*NAMES) as nodes:
        nodes.follow(NAMES)
        topic = nodes.topic_of("b", NAMES)
        sends, recvs = nodes.client(sender), nodes.client(receiver)
        calls = [lambda: sends.call(":send!", 1, 5000, topic, "hi"), lambda: recvs.call(":recv!", 2, 5000, topic)]
        for call in calls if first == "send" else reversed(calls):
            call()
            nodes.turn()
        assert nodes.until_reply(recvs) == [":recv!", 2, "hi"]
        assert nodes.until_reply(sends) == [":send!", 1, True]


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


@pytest.mark.parametrize("first", ["send", "recv"])
def test_a_call_that_waits_moves_to_the_new_owner_of_its_topic(first: str) -> None:
    with several(*NAMES) as nodes:
        nodes.follow("ab")
        topic = nodes.topic_of("b", "ab", then=("c", NAMES))
        waits, comes = nodes.client("a"), nodes.client("a")
        calls = [(":send!", 1, 5000, topic, "hi"), (":recv!", 2, 5000, topic)]
        early, late = calls if first == "send" else reversed(calls)
        waits.call(*early)
        nodes.turn()
        nodes.follow(NAMES)
        nodes.turn()
        comes.call(*late)
        assert nodes.until_reply(comes)[2] in (True, "hi")
        assert nodes.until_reply(waits)[2] in (True, "hi")
        assert all(node.core.ledger.calls_held == 0 for node in nodes.nodes.values())


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


def test_a_node_that_dies_gives_its_calls_back() -> None:
    with several(*NAMES) as nodes:
        nodes.follow(NAMES)
        topic = nodes.topic_of("c", NAMES)
        sends, recvs = nodes.client("a"), nodes.client("b")
        sends.call(":send!", 1, 5000, topic, "hi")
        nodes.turn()
        nodes.kill("c")
        nodes.turn()
        recvs.call(":recv!", 2, 5000, topic)
        nodes.turn()
        assert not recvs.has_input(), "the ring still names the dead node"
        nodes.follow("ab")
        assert nodes.until_reply(recvs) == [":recv!", 2, "hi"]
        assert nodes.until_reply(sends) == [":send!", 1, True]


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


@pytest.mark.parametrize("seed", range(40))
def test_once_the_ring_has_settled_no_pair_has_missed_each_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nodes have their turns when the test says so, which on a busy machine may be too late for one that is doubted.
    monkeypatch.setattr("workers.nodes.probe.ANSWER_S", 60.0)
    luck = random.Random(seed)
    with several("a", "b", "c", "d") as nodes:
        rings = ["ab", "abc", "abcd", "bcd", "cd", "d", "acd"]
        clients = {name: [nodes.client(name) for _ in range(2)] for name in nodes.nodes}
        topics = [f"topic-{number}" for number in range(5)]
        waiting: dict[Any, tuple[str, str]] = {}
        asked = 0
        answers: list[list[Any]] = []
        for _ in range(120):
            match luck.randrange(4):
                case 0:
                    nodes.follow(luck.choice(rings), by=luck.choice("abcd"))
                case 1:
                    nodes.turn(luck.choice([0, 0.001, 0.005]))
                case _:
                    asked += 1
                    client = luck.choice(clients[luck.choice("abcd")])
                    kind, topic = luck.choice([":send!", ":recv!"]), luck.choice(topics)
                    waiting[asked] = (kind, topic)
                    client.call(kind, asked, 60_000, topic, *([asked] if kind == ":send!" else []))
            if luck.random() < 0.3:
                luck.choice(list(nodes.nodes.values())).turn()
        nodes.follow("abcd")
        for _ in range(40):  # until the last answers are here, on a machine that has other things to do
            nodes.turn(0.05)
            for client in (client for of_one in clients.values() for client in of_one):
                while client.has_input():
                    answers.append(client.reply())
            sent = {id for method, id, _ in answers if method == ":send!"}
            got = [result for method, _, result in answers if method == ":recv!"]
            answered = {id for _, id, _ in answers}
            still: dict[str, set[str]] = {topic: set() for topic in topics}
            for id, (kind, topic) in waiting.items():
                if id not in answered:
                    still[topic].add(kind)
            if sent == set(got) and all(len(kinds) < 2 for kinds in still.values()):
                break
        assert len({id for _, id, _ in answers}) == len(answers), "no call is answered twice"
        for method, id, result in answers:
            del waiting[id]
            if method == ":recv!":
                assert result in sent, "a value is true for its sender, and was sent"
            else:
                assert result is True
        assert sent <= set(got), "true means that somebody has it"
        for topic, kinds in still.items():
            assert len(kinds) < 2, f"on {topic} both sides wait"
        assert len(got) == len(answers) - len(sent)
