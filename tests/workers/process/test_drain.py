"""How a node, or one of its workers, ends in good order: who is still served, and who is told to go elsewhere."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import pytest

from tests.helpers import CLOCK, eventually, time_factor
from tests.workers.operated import node
from tests.workers.pubsub_client import PubSubClient, subscribe
from tests.workers.wire_client import TIMED_OUT, ConnectionEnded, WireClient, code_of
from workers.ipc import exits
from workers.worker import worker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_node_that_is_told_to_end_ends_at_once_if_nothing_waits(number: signal.Signals) -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect() as client:
        client.answer(":ping")
        running.signal(number)
        assert running.wait(within=1.0) == exits.OK
        assert all(map(running.is_gone, running.first_workers))


def test_a_draining_node_refuses_connections_and_calls_and_gives_those_that_wait_their_time() -> None:
    with node(workers=2, drain_timeout_s=1.5) as running, running.connect_to(0) as client:
        topic = client.topic_owned_by(1)
        short, long = client.begin(":recv!", 700, topic), client.begin(":recv!", 60_000, topic)
        client.wait_until(topic, receivers=2)
        running.signal(signal.SIGTERM)
        told_at = CLOCK.monotonic()
        eventually(lambda: not running.lets_in(), within=1.0)
        for arguments in ((":recv!", 0, "other"), (":send!", 0, topic, "value"), (":take!", 0, topic, "group")):
            assert code_of(client.answer, *arguments) == "draining"
        assert client.result(short) == TIMED_OUT
        assert code_of(client.result, long) == "draining"
        assert 1.5 <= CLOCK.monotonic() - told_at < 1.5 + 0.3 * time_factor()
        with pytest.raises(ConnectionEnded):
            client.answer(":ping")
        assert running.wait(within=1.0) == exits.OK


def test_who_has_just_connected_to_a_draining_node_is_answered_once_it_says_something() -> None:
    with node(workers=1, drain_timeout_s=60) as running:
        clients = [WireClient.open(running.node.address) for _ in range(5)]
        CLOCK.sleep(0.02)
        running.signal(signal.SIGTERM)
        CLOCK.sleep(worker.FIRST_WORD_S / 2)
        for client in clients[:4]:
            client.answer(":ping")
        assert code_of(clients[4].say_hello().answer, ":recv!", 0, "topic") == "draining"
        assert running.wait(within=1.0) == exits.OK


def test_who_says_nothing_holds_up_a_draining_node_for_half_a_second() -> None:
    with node(workers=1, drain_timeout_s=60) as running, WireClient.open(running.node.address):
        running.signal(signal.SIGTERM)
        CLOCK.sleep(worker.FIRST_WORD_S * 0.9)
        assert not running.is_gone(running.first_workers[0])
        assert running.wait(within=1.0) == exits.OK


def test_connections_in_the_accept_queue_are_answered_when_the_node_drains() -> None:
    with node(workers=1, drain_timeout_s=1) as running:
        [only] = running.first_workers
        running.kill(only, signal.SIGSTOP)
        clients = [running.connect() for _ in range(50)]
        receives = [client.begin(":recv!", 0, "topic") for client in clients]
        running.signal(signal.SIGTERM)
        eventually(lambda: running.events("draining"))
        CLOCK.sleep(0.02)  # what they say is there, too
        running.kill(only, signal.SIGCONT)
        codes = {code_of(client.result, receive) for client, receive in zip(clients, receives, strict=True)}
        assert codes == {"draining"}
        assert running.wait(within=1.0) == exits.OK


def test_a_second_signal_ends_a_draining_node_at_once_with_an_answer_to_every_call() -> None:
    with node(workers=2, drain_timeout_s=60) as running:
        clients = [running.connect_to(slot) for slot in (0, 1)]
        waiting = [(client, client.begin(":recv!", 60_000, client.topic_owned_by(1))) for client in clients]
        for client in clients:
            client.answer(":ping")
        running.signal(signal.SIGTERM)
        eventually(lambda: running.events("draining"))
        running.signal(signal.SIGTERM)
        assert [code_of(client.result, call) for client, call in waiting] == ["draining"] * 2
        assert running.wait(within=1.0) == exits.OK


def test_a_hung_worker_is_killed_four_seconds_after_it_was_told_to_stop() -> None:
    with node(workers=2, drain_timeout_s=0.3) as running, running.connect_to(0) as client:
        hung = running.first_workers[1]
        waiting = client.begin(":recv!", 60_000, client.topic_owned_by(0))
        client.answer(":ping")
        running.kill(hung, signal.SIGSTOP)
        running.signal(signal.SIGTERM)
        told_at = CLOCK.monotonic()
        assert code_of(client.result, waiting) == "draining"
        assert CLOCK.monotonic() - told_at < 0.3 + 0.3 * time_factor()
        assert running.wait(within=5.0) == exits.OK
        assert CLOCK.monotonic() - told_at >= 4.3
        assert running.is_gone(hung)
        assert [event["pid"] for event in running.events("killing-worker")] == [str(hung)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("order", [1, -1])
def test_a_node_that_is_told_to_end_while_its_workers_end_by_themselves_ends_in_good_order(
    number: signal.Signals, order: int
) -> None:
    with node(workers=3, drain_timeout_s=60) as running:
        first, *others = running.first_workers[::order]
        running.kill(first, number)
        running.signal(signal.SIGTERM)
        for pid in others:
            running.kill(pid, number)
        assert running.wait(within=5.0) == exits.OK
        assert "Traceback" not in running.log()


# One worker alone.


def test_a_worker_that_is_told_to_end_drains_alone_and_is_replaced_at_once() -> None:
    with node(workers=2, drain_timeout_s=1) as running, running.connect_to(0) as client, running.connect_to(1) as other:
        told, stays = running.first_workers
        waiting = client.begin(":recv!", 60_000, client.topic_owned_by(1))
        untouched = other.begin(":recv!", 60_000, topic := other.topic_owned_by(0))
        client.wait_until(topic, receivers=1)
        running.kill(told, signal.SIGTERM)
        assert eventually(lambda: code_of(client.answer, ":recv!", 0, "other")) == "draining"
        assert code_of(client.result, waiting) == "draining"
        assert stays in running.wait_for_workers(2, without=[told], within=1.0)
        with running.connect_to(0) as sender:
            assert sender.answer(":send!", 5_000, topic, "value") is True
        assert other.result(untouched) == "value"
        assert not running.events("draining")
        assert [event["restart_s"] for event in running.events("worker-ended")] == ["0.0"]


def test_a_node_may_be_told_to_end_while_one_of_its_workers_drains_alone() -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as client:
        waiting = client.begin(":recv!", 500, client.topic_owned_by(1))
        client.answer(":ping")
        running.kill(running.first_workers[0], signal.SIGTERM)
        eventually(lambda: running.events("worker-draining"))
        running.signal(signal.SIGTERM)
        assert client.result(waiting) == TIMED_OUT
        assert running.wait(within=1.0) == exits.OK


def test_a_worker_that_drains_alone_stays_until_a_value_that_it_gave_to_a_sibling_has_its_outcome() -> None:
    with (
        node(workers=3, drain_timeout_s=60) as running,
        running.connect_to(1) as receiver,
        running.connect_to(2) as sender,
        ExitStack() as stack,
    ):
        topic = sender.topic_owned_by(0)
        listening = receiver.begin(":recv!", 60_000, topic)
        sender.wait_until(topic, receivers=1)
        owner, hung, _ = running.first_workers
        running.kill(hung, signal.SIGSTOP)
        try:
            sending = sender.begin(":send!", 5_000, topic, "value")
            sender.wait_until(topic, receivers=0)
            running.kill(owner, signal.SIGTERM)
            eventually(lambda: running.events("worker-draining"))
            # A call that comes meanwhile meets nobody there; its time is for the successor.
            late = sender.begin(":recv!", 60_000, topic)
            # Nor is anybody let in, only to be closed with nothing acked.
            subscriber = stack.enter_context(PubSubClient.open(running.node.pubsub, steer=(0, 3)))
            subscriber.write(subscribe(b"topic"))
            CLOCK.sleep(0.1)
        finally:
            running.kill(hung, signal.SIGCONT)
        assert receiver.result(listening) == "value"
        assert sender.result(sending) is True
        running.wait_for_workers(3, without=[owner], within=1.0)
        subscriber.acks(1)
        assert receiver.answer(":send!", 5_000, topic, "later") is True
        assert sender.result(late) == "later"


def test_nor_does_it_end_before_that_when_its_time_is_over() -> None:
    with (
        node(workers=3, drain_timeout_s=1) as running,
        running.connect_to(0) as staying,
        running.connect_to(1) as receiver,
        running.connect_to(2) as sender,
    ):
        topic = sender.topic_owned_by(0)
        listening = receiver.begin(":recv!", 60_000, topic)
        kept = staying.begin(":recv!", 60_000, staying.topic_owned_by(2))  # drains it for as long as it may
        sender.wait_until(topic, receivers=1)
        owner, hung, _ = running.first_workers
        running.kill(owner, signal.SIGTERM)
        eventually(lambda: running.events("worker-draining"))
        over = CLOCK.monotonic() + 1.0
        running.kill(hung, signal.SIGSTOP)
        try:
            sending = sender.begin(":send!", 5_000, topic, "value")
            sender.wait_until(topic, receivers=0)
            CLOCK.sleep(max(0.0, over + 0.3 - CLOCK.monotonic()))
        finally:
            running.kill(hung, signal.SIGCONT)
        assert receiver.result(listening) == "value"
        assert sender.result(sending) is True
        assert code_of(staying.result, kept) == "draining"
