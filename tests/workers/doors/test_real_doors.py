"""Each door of real workers, over TCP and over TLS: what passes, however it is cut, and what a broken one costs.

What is said at doors is tested in virtual time; here it is that real sockets, and records of TLS, carry it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.helpers import eventually
from tests.workers.pubsub_client import Message, PubSubClient, publish
from tests.workers.running_nodes import TLS, Node, running_by
from tests.workers.wire_client import TIMED_OUT, Clients, ConnectionEnded, WireClient, call, clients_of

LONG_MS = 60_000
SMALL_BUFFER = 4096
VALUE = random.Random(1).randbytes(60_000)


@pytest.fixture(scope="module", params=[2, TLS], ids=["tcp", "tls"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running_by(request.param, tmp_path_factory, pubsub=True, unread_output_s=1.0, half_frame_s=1.0) as node:
        yield node


@pytest.fixture
def connect(node: Node) -> Iterator[Clients]:
    with clients_of(node.address) as clients:
        yield clients


def test_calls_meet_through_any_workers(node: Node, connect: Clients, topic: str) -> None:
    for owner, here, there in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1)]:
        name = node.topic_of(owner, f"{topic}{here}{there}")
        sender, receiver = connect(worker=here), connect(worker=there)
        receiver.call(":recv!", 1, LONG_MS, name)
        sender.wait_until(name, receivers=1)
        assert sender.ask(":send!", 1, 5000, name, VALUE) is True
        assert receiver.reply() == [":recv!", 1, VALUE]


def test_calls_that_meet_nobody_are_answered_in_time(connect: Clients, topic: str) -> None:
    client = connect()
    client.write(b"".join(call(":recv!", n, n, [topic, n]) for n in range(200)))
    assert sorted(reply[1:] for reply in client.replies(200)) == [[n, TIMED_OUT] for n in range(200)]


def test_a_stream_may_come_byte_by_byte(connect: Clients, topic: str) -> None:
    client = connect()
    for byte in call(":send!", 1, LONG_MS, topic, "value" * 100) + call(":recv!", 2, LONG_MS, topic):
        client.write(bytes((byte,)))
    assert sorted(client.replies(2)) == [[":recv!", 2, "value" * 100], [":send!", 1, True]]


def test_much_passes_both_ways_at_once(connect: Clients, topic: str) -> None:
    one, other = connect(worker=0), connect(worker=1)
    count = 12
    for name, sender, receiver in (("there", one, other), ("back", other, one)):
        receiver.write(b"".join(call(":take!", f"{name}{n}", LONG_MS, [topic, name], "pool") for n in range(count)))
        sender.write(b"".join(call(":send!", n, LONG_MS, [topic, name], VALUE[n:]) for n in range(count)))
    got: dict[WireClient, list[list[Any]]] = {one: [], other: []}
    eventually(lambda: sum(len(taken_in(*each)) for each in got.items()) == 4 * count, 10.0)
    for replies in got.values():
        assert sum(result is True for _, _, result in replies) == count
        assert {result for _, _, result in replies if result is not True} == {VALUE[n:] for n in range(count)}


def taken_in(client: WireClient, replies: list[list[Any]]) -> list[list[Any]]:
    """Add what has come, and return all."""
    while client.has_input():
        replies.append(client.reply())
    return replies


def test_who_reads_nothing_for_a_while_gets_all_then(connect: Clients, topic: str) -> None:
    slow, sender = connect(receive_buffer=SMALL_BUFFER), connect()
    count = 60
    slow.write(b"".join(call(":take!", n, LONG_MS, topic, "pool") for n in range(count)))
    sender.wait_until(topic, takers={"pool": count})
    sender.write(b"".join(call(":send!", n, LONG_MS, topic, VALUE[n:]) for n in range(count)))
    eventually(sender.has_input)
    assert {slow.reply()[2] for _ in range(count)} == {VALUE[n:] for n in range(count)}
    assert len(sender.replies(count)) == count


def test_who_reads_nothing_at_all_is_closed_and_what_it_did_not_get_waits(
    node: Node, connect: Clients, topic: str
) -> None:
    slow, sender, heir = connect(receive_buffer=SMALL_BUFFER), connect(), connect()
    slow.write(b"".join(call(":take!", n, LONG_MS, topic, "pool") for n in range(100)))
    sender.wait_until(topic, takers={"pool": 100})
    sender.write(b"".join(call(":send!", n, LONG_MS, topic, VALUE) for n in range(100)))
    eventually(lambda: "does not read its replies" in node.log)
    heir.write(b"".join(call(":take!", n, LONG_MS, topic, "pool") for n in range(100)))
    told: list[list[Any]] = []
    got: list[list[Any]] = []
    eventually(lambda: taken_in(heir, got) and len(taken_in(sender, told)) == 100, 10.0)
    assert {result for _, _, result in told} == {True}
    assert {result for _, _, result in got} == {VALUE}


def test_who_is_closed_since_it_reads_nothing_still_gets_what_was_written_to_it(connect: Clients, topic: str) -> None:
    slow, sender = connect(receive_buffer=SMALL_BUFFER), connect()
    slow.write(b"".join(call(":take!", n, LONG_MS, topic, "pool") for n in range(100)))
    sender.wait_until(topic, takers={"pool": 100})
    sender.write(b"".join(call(":send!", n, 3000, topic, VALUE) for n in range(100)))
    slow.call(":ping", "this stays unread")
    taken = [result for _, _, result in sender.replies(100, within=15.0)].count(True)
    assert taken
    assert [slow.reply()[2] for _ in range(taken)] == [VALUE] * taken


@pytest.mark.parametrize("leave", [WireClient.close, WireClient.reset], ids=["closes", "resets"])
def test_what_waits_goes_with_its_connection(connect: Clients, topic: str, leave: Callable[[WireClient], None]) -> None:
    leaving, watcher = connect(), connect()
    leaving.call(":send!", 1, LONG_MS, topic, "ghost")
    watcher.wait_until(topic, senders=1)
    leave(leaving)
    watcher.wait_until(topic, senders=0)


def test_half_a_frame_is_waited_for_but_a_while(connect: Clients) -> None:
    client = connect().greet()
    client.write(call(":ping", 1)[:-1])
    assert client.refusal().code == "bad-frame"
    with pytest.raises(ConnectionEnded):
        client.read_frame()


def test_pubsub_passes_through_any_workers(node: Node, topic: str) -> None:
    clients = [PubSubClient.open(node.pubsub, steer=(worker, 2)) for worker in (0, 1)]
    try:
        for owner in (0, 1):
            name = node.topic_of(owner, topic[-100:]).encode()
            for client in clients:
                client.subscribe(name)
            for publisher in clients:
                publisher.write(b"".join(publish(name, VALUE[n:]) for n in range(20)))
                publisher.acks(20)
                for client in clients:
                    assert client.messages(20) == [Message(name, VALUE[n:]) for n in range(20)]
        for byte in publish(b"t", b"byte by byte"):
            clients[0].write(bytes((byte,)))
        clients[0].acks(1)
    finally:
        for client in clients:
            client.reset()
