"""What `true` is worth: a listener whose connection breaks before it has the value does not count."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.helpers import CLOCK
from tests.workers.staged import Node
from tests.workers.wire_client import TIMED_OUT, Clients, ConnectionEnded, WireClient

LEAVING = {"closes": WireClient.close, "resets": WireClient.reset}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize("method", [":recv!", ":take!"])
def test_a_send_goes_on_waiting_if_its_only_listener_left_just_before(
    node: Node, connect: Clients, topic: str, leave: Callable[[WireClient], None], method: str
) -> None:
    group = ["pool"] if method == ":take!" else []
    sender, heir = connect(), connect()
    for round in range(5):
        name = [topic, round]
        leaving = connect()
        leaving.call(method, 1, 60_000, name, *group)
        waiting = {"takers": {"pool": 1}} if group else {"receivers": 1}
        sender.wait_until(name, **waiting)
        with node.hung(sender):
            leave(leaving)
            sender.call(":send!", round, 60_000, name, round)
            CLOCK.sleep(0.02)  # both are there when the worker looks
        assert heir.ask(":recv!", round, 5000, name) == round
        assert sender.reply() == [":send!", round, True]


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_a_value_whose_sender_is_gone_is_delivered_to_nobody(
    connect: Clients, topic: str, leave: Callable[[WireClient], None]
) -> None:
    receiver, watcher = connect(), connect()
    for round in range(5):
        name = [topic, round]
        leaving = connect()
        leaving.call(":send!", 1, 60_000, name, "ghost")
        watcher.wait_until(name, senders=1)
        leave(leaving)
        watcher.wait_until(name, senders=0)
        assert receiver.ask(":recv!", 1, 0, name) == TIMED_OUT


def test_a_client_that_shuts_its_sending_side_has_left(connect: Clients, topic: str) -> None:
    client, watcher = connect(), connect()
    client.call(":recv!", 1, 60_000, topic)
    watcher.wait_until(topic, receivers=1)
    client.socket.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionEnded):
        client.read_frame()
    watcher.wait_until(topic, receivers=0)


class TestAcknowledged:
    """`ack` agreed in :hello: a send is told true only when its receiver has said :ack."""

    @pytest.fixture
    def receiver(self, connect: Clients) -> WireClient:
        client = connect()
        client.ask(":hello", "h", {"ack": True})
        return client

    @pytest.mark.parametrize("receiver_first", [True, False])
    def test_the_sender_hears_true_when_the_receiver_has_said_so(
        self, connect: Clients, receiver: WireClient, topic: str, receiver_first: bool
    ) -> None:
        sender = connect()
        calls = [(sender, (":send!", 1, 60_000, topic, "value")), (receiver, (":recv!", "r", 60_000, topic))]
        first, second = reversed(calls) if receiver_first else calls
        first[0].call(*first[1])
        sender_waits = {"receivers": 1} if receiver_first else {"senders": 1}
        connect().wait_until(topic, **sender_waits)
        second[0].call(*second[1])
        assert receiver.reply() == [":recv!", "r", "value"]
        assert sender.ask(":ping", 2) is True
        assert not sender.has_input()
        receiver.call(":ack", "r")
        assert sender.reply() == [":send!", 1, True]
        # An :ack is not answered, and saying it again means nothing.
        receiver.call(":ack", "r")
        assert receiver.ask(":ping", 3) is True

    @pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
    def test_a_value_that_was_not_acknowledged_goes_to_the_next(
        self, connect: Clients, receiver: WireClient, topic: str, leave: Callable[[WireClient], None]
    ) -> None:
        sender, heir = connect(), connect()
        receiver.call(":recv!", 1, 60_000, topic)
        sender.wait_until(topic, receivers=1)
        sender.call(":send!", 1, 60_000, topic, "value")
        assert receiver.reply() == [":recv!", 1, "value"]
        leave(receiver)
        heir.wait_until(topic, senders=1)
        assert heir.ask(":recv!", 2, 5000, topic) == "value"
        assert sender.reply() == [":send!", 1, True]

    def test_it_comes_back_to_its_place_in_the_line(self, connect: Clients, receiver: WireClient, topic: str) -> None:
        senders, heir = [connect() for _ in range(4)], connect()
        for number, sender in enumerate(senders):
            sender.call(":send!", 1, 60_000, topic, number)
            heir.wait_until(topic, senders=number + 1)
        assert [receiver.ask(":recv!", n, 5000, topic) for n in range(2)] == [0, 1]
        receiver.reset()
        heir.wait_until(topic, senders=4)
        assert [heir.ask(":recv!", n, 5000, topic) for n in range(4)] == [0, 1, 2, 3]
        assert [sender.reply() for sender in senders] == [[":send!", 1, True]] * 4

    def test_a_send_that_is_not_acknowledged_in_its_time_is_told_so(
        self, connect: Clients, receiver: WireClient, topic: str
    ) -> None:
        sender = connect()
        receiver.call(":recv!", 1, 60_000, topic)
        sender.wait_until(topic, receivers=1)
        assert sender.ask(":send!", 1, 60, topic, "value") == TIMED_OUT
        assert receiver.reply() == [":recv!", 1, "value"]
        receiver.call(":ack", 1)
        assert sender.ask(":ping", 2) is True
        assert not sender.has_input()
        sender.wait_until(topic, senders=0, receivers=0)

    def test_of_several_receivers_one_acknowledgement_is_enough(self, connect: Clients, topic: str) -> None:
        receivers = [connect() for _ in range(5)]
        for receiver in receivers:
            receiver.ask(":hello", "h", {"ack": True})
            receiver.call(":recv!", 1, 60_000, topic)
        sender = connect()
        sender.wait_until(topic, receivers=5)
        sender.call(":send!", 1, 60_000, topic, "value")
        assert [receiver.reply() for receiver in receivers] == [[":recv!", 1, "value"]] * 5
        for receiver in receivers[:3]:
            receiver.reset()
        assert sender.ask(":ping", 2) is True
        receivers[3].call(":ack", 1)
        assert sender.reply() == [":send!", 1, True]
        receivers[4].call(":ack", 1)
        receivers[4].reset()
        sender.wait_until(topic, senders=0)

    def test_an_acknowledgement_of_another_connection_means_nothing(
        self, connect: Clients, receiver: WireClient, topic: str
    ) -> None:
        sender, stranger = connect(), connect()
        receiver.call(":recv!", 1, 60_000, topic)
        sender.wait_until(topic, receivers=1)
        sender.call(":send!", 1, 60_000, topic, "value")
        receiver.reply()
        stranger.call(":ack", 1)
        assert stranger.ask(":ping", 1) is True
        assert sender.ask(":ping", 2) is True
        assert not sender.has_input()
        receiver.call(":ack", 1)
        assert sender.reply() == [":send!", 1, True]
