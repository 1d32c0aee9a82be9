"""Calls of one worker for topics of another: nobody can tell them from calls that stay at home."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.helpers import eventually
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import TIMED_OUT, Clients, WireClient, packed, raw_call
from workers.calls.doubt import SILENT_LISTENER, SILENT_OWNER


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


def test_senders_are_served_first_come_first_served_through_whatever_worker_they_came(
    node: Node, connect: Clients, topic: str
) -> None:
    for owner in range(node.workers):
        name = node.topic_of(owner, topic)
        watcher = connect(worker=(owner + 1) % node.workers)
        senders = [connect(worker=number % node.workers) for number in range(3 * node.workers)]
        for number, sender in enumerate(senders):
            sender.call(":send!", 1, 60_000, name, number)
            watcher.wait_until(name, senders=number + 1)
        receivers = [connect(worker=worker) for worker in range(node.workers)]
        got = [receivers[n % node.workers].ask(":recv!", n, 5000, name) for n in range(len(senders))]
        assert got == list(range(len(senders)))
        assert [sender.reply() for sender in senders] == [[":send!", 1, True]] * len(senders)


def test_one_send_reaches_the_listeners_of_every_worker_and_one_taker_of_each_group(
    node: Node, connect: Clients, topic: str
) -> None:
    for owner in range(node.workers):
        name = node.topic_of(owner, topic)
        receivers = [connect(worker=n % node.workers) for n in range(2 * node.workers)]
        groups = {g: [connect(worker=n % node.workers) for n in range(2 * node.workers)] for g in ("red", "blue")}
        for receiver in receivers:
            receiver.call(":recv!", 1, 60_000, name)
        for group, takers in groups.items():
            for taker in takers:
                taker.call(":take!", 1, 60_000, name, group)
        sender = connect()
        sender.wait_until(name, receivers=len(receivers), takers={group: len(receivers) for group in groups})
        assert sender.ask(":send!", 1, 5000, name, "news") is True
        assert [receiver.reply() for receiver in receivers] == [[":recv!", 1, "news"]] * len(receivers)
        for takers in groups.values():
            eventually(lambda takers=takers: sum(taker.has_input() for taker in takers) == 1)
        sender.wait_until(name, receivers=0, takers={group: len(receivers) - 1 for group in groups})
        for client in itertools.chain(receivers, *groups.values()):
            client.close()
        sender.wait_until(name, takers={})


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


def test_a_connection_that_is_lost_takes_its_forwarded_calls_with_it(node: Node, connect: Clients, topic: str) -> None:
    name = node.topic_of(1, topic)
    watcher = connect(worker=1)
    for leave in (WireClient.close, WireClient.reset):
        leaving = connect(worker=0)
        for id in range(50):
            leaving.call(":recv!", id, 60_000, name)
            leaving.call(":take!", id, 60_000, name, id % 5)
        watcher.wait_until(name, receivers=50, takers=dict.fromkeys(range(5), 10))
        leave(leaving)
        eventually(lambda: watcher.info(name) == NOBODY)
        leaving = connect(worker=0)
        for id in range(50):
            leaving.call(":send!", id, 60_000, name, "value")
        watcher.wait_until(name, senders=50)
        leave(leaving)
        eventually(lambda: watcher.info(name) == NOBODY)


class TestAHungWorker:
    """SIGSTOP hangs a worker; SIGCONT lets it go on."""

    def test_callers_of_its_topics_are_answered_in_time_and_leave_nothing_behind(
        self, node: Node, at: list[WireClient], topic: str
    ) -> None:
        name, elsewhere = node.topic_of(1, topic), node.topic_of(0, topic)
        with node.hung(at[1]):
            at[0].call(":send!", 1, 150, name, "stale")
            at[0].call(":recv!", 2, 150, name)
            at[0].call(":send!", 3, 0, name, "stale too")
            assert {at[0].reply(within=1.0)[1] for _ in range(3)} == {1, 2, 3}
            assert at[0].ask(":send!", 4, 0, elsewhere, "value", within=0.5) == TIMED_OUT
        assert at[1].ask(":recv!", 5, 50, name) == TIMED_OUT
        at[1].wait_until(name, senders=0, receivers=0)

    def test_a_value_of_which_nothing_is_heard_in_time_is_taken_back_though_its_sender_hears_that_it_is_unknown(
        self, node: Node, at: list[WireClient], topic: str
    ) -> None:
        for sender, owner in itertools.product((at[0], at[-1]), range(node.workers)):
            if sender is at[1] or owner == 1:
                continue
            name = node.topic_of(owner, topic)
            at[1].call(":recv!", 1, 60_000, name)
            sender.wait_until(name, receivers=1)
            with node.hung(at[1]):
                sender.call(":send!", 2, 50, name, "late")
                error = sender.refusal(within=0.5)
                assert error.code == "unknown-outcome"
                assert error.details == {"why": SILENT_LISTENER if sender is at[owner] else SILENT_OWNER}
                # The answer comes just before the word to the worker that hangs; what the owner says next, after it.
                assert sender.info(name)["senders"] == 0
            sender.wait_until(name, receivers=1)
            assert sender.ask(":send!", 3, 5000, name, "in time") is True
            assert at[1].reply() == [":recv!", 1, "in time"]


NOBODY = {"receivers": 0, "takers": {}, "senders": 0, "subscribers": 0, "age": 0}
