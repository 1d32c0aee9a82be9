"""What a worker counts is what its clients did: every call once, every byte, every close with its reason."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from skywalker.access.access import Access
from skywalker.limits import KIB, MAX_UNREADABLE, Limits
from tests.workers import pubsub_client as bus
from tests.workers.one_worker import OneWorker
from tests.workers.pubsub_client import publish, subscribe
from tests.workers.wire_client import WireClient, call, framed
from workers.calls.own_node import VERSION
from workers.doors.pubsub_client import PubSubClient
from workers.stats import metrics
from workers.stats.close_reasons import Close

LIMITS = Limits(max_connections=3, max_calls=50, half_frame_s=10.0, unread_output_s=30.0, subscriber_buffer=64 * KIB)


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    worker = OneWorker(LIMITS)
    yield worker
    worker.close()


def pubsub(worker: OneWorker) -> bus.PubSubClient:
    """Return a client of that dialect."""
    return bus.PubSubClient(worker.connected(PubSubClient)[0])


# Calls.


def test_each_call_is_counted_once_as_what_became_of_it(worker: OneWorker) -> None:
    with worker.connect() as one, worker.connect() as other:
        for n in range(3):
            one.call(":recv!", n, 60_000, "met")
        one.call(":take!", 3, 60_000, "met", "group")
        other.call(":recv!", 4, 60_000, "nobody")
        other.call(":recv!", 5, 60_000, "taken back")
        other.call(":take!", 6, 60_000, "gone", "group")
        other.call(":send!", 7, 60_000, "waits", "value")
        worker.turn()
        one.call(":send!", 8, 60_000, "met", "value")  # for four at once
        one.call(":recv!", 9, 60_000, "waits")
        one.call(":send!", 10, 0, "nobody is there", "value")
        one.call(":recv!", 11, 0, "nobody is there")
        other.call(":cancel", 12, 5)
        worker.turn()
        worker.turn(later=30.0)
        assert len(one.replies(8)) == 8
        other.close()
        worker.turn()
        worker.hub.drain()
        one.call(":send!", 13, 60_000, "too late", "value")
        worker.turn()
        assert one.refusal().code == "draining"
    assert worker.counted(metrics.CALLS) == {
        "recv met": 3,
        "take met": 1,
        "send prompt": 1,
        "send met": 1,
        "recv prompt": 1,
        "send timed-out": 1,
        "recv timed-out": 1,
        "recv cancelled": 1,
        "recv gone": 1,
        "take gone": 1,
        "send draining": 1,
    }
    assert worker.counted(metrics.ROUTED) == {"here": 13}
    assert worker.times(metrics.WAIT) == {"recv": 3, "take": 1, "send": 1}
    assert worker.times(metrics.HAND_OFF) == {"": 2}
    assert worker.counted(metrics.REFUSED) == {"cancelled": 1, "draining": 1}
    assert worker.counted(metrics.LIMITED) == {}


def test_what_is_published_is_a_call_that_nobody_waits_for(worker: OneWorker) -> None:
    with pubsub(worker) as one, worker.connect() as other:
        one.socket.sendall(subscribe(b"topic") + publish(b"topic", b"payload") * 5 + publish(b"nobody", b""))
        other.call(":take!", 1, 60_000, "met", "group")
        worker.turn()
        one.socket.sendall(publish(b"met", b"payload"))
        worker.turn()
    assert worker.counted(metrics.CALLS) == {"publish prompt": 7, "take met": 1}
    assert worker.counted(metrics.ROUTED) == {"here": 8}
    assert worker.times(metrics.HAND_OFF) == {}
    assert worker.times(metrics.WAIT) == {"take": 1}


# Bytes and turns.


def test_every_byte_is_counted_at_the_door_where_it_came_or_went(worker: OneWorker) -> None:
    with worker.connect() as one, pubsub(worker) as other:
        asked = call(":ping", 1) * 100 + call(":send!", 2, 0, "nobody is there", b"v" * 50_000)
        one.write(asked)
        published = subscribe(b"topic") + publish(b"topic", b"p" * 10_000)
        other.socket.sendall(published)
        worker.turn()
        read = [len(one.read_frame()) for _ in range(101)]
        messages = 1 + len(publish(b"topic", b"p" * 10_000)) + 1  # acks around it
        assert len(other.socket.recv(100_000, socket.MSG_WAITALL | socket.MSG_DONTWAIT)) == messages
        assert worker.counted(metrics.RECEIVED) == {"junction": len(asked), "pubsub": len(published)}
        assert worker.counted(metrics.SENT) == {"junction": sum(read), "pubsub": messages}


# Closes.

Client = WireClient | bus.PubSubClient


class Case:
    """A worker, and clients of it that stay until all is looked at."""

    def __init__(self, worker: OneWorker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.worker = worker
        self.monkeypatch = monkeypatch
        self.clients: list[Client] = []

    def client(self, door: bool = False) -> WireClient:
        """Return one; it comes in at the door itself if it is to."""
        address = self.worker.member.address
        client = WireClient.open((address.host, address.port)) if door else self.worker.connect()
        self.clients.append(client)
        return client

    def pubsub(self, data: bytes) -> bus.PubSubClient:
        """Return one that has written this."""
        client = pubsub(self.worker)
        self.clients.append(client)
        client.socket.sendall(data)
        self.worker.turn()
        return client


def by_peer(case: Case) -> None:
    case.client().close()


def by_peer_that_published(case: Case) -> None:
    client = case.pubsub(publish(b"topic", b"payload"))
    assert client.socket.recv(10) == b"\x04"
    client.close()


def unknown_code(case: Case) -> None:
    case.pubsub(b"\xee")


def silent(case: Case) -> None:
    client = case.client()
    client.call(":hello", 1, {})
    client.call(":recv!", 2, 600_000, "topic")
    case.worker.turn()
    case.worker.turn(later=61.0)
    case.worker.turn(later=122.0)


def too_many_connections(case: Case) -> None:
    for _ in range(LIMITS.max_connections + 1):
        case.client(door=True)
    case.worker.turn()


def too_many_subscriptions(case: Case) -> None:
    case.pubsub(b"".join(subscribe(bytes([n])) for n in range(LIMITS.max_calls + 1)))


def draining(case: Case) -> None:
    case.client().call(":recv!", 1, 60_000, "topic")
    case.worker.turn()
    case.worker.hub.stop()


def became_link(case: Case) -> None:
    options = {"from": "guest", "by": 0, "node": case.worker.hub.node.id, "worker": 0, "version": VERSION}
    case.client().call(":peer", 0, options)


def bug(case: Case) -> None:
    def fails(_: bytes) -> bytes:
        raise ZeroDivisionError

    case.monkeypatch.setattr("workers.doors.pubsub_client.bus_topic", fails)
    case.pubsub(subscribe(b"topic"))


def stranger(case: Case) -> None:
    case.worker.hub.admission.access = Access.parse({"web": {"network": "10.0.0.0/8"}}, "access")
    case.client(door=True)
    case.worker.turn()
    case.worker.turn(later=LIMITS.greeting_s + 1.0)


def forbidden(case: Case) -> None:
    admission = case.worker.hub.admission
    admission.access = Access.parse({"anyone": {"publish": ["mine/*"]}}, "access")
    client = case.pubsub(b"")
    (connection,) = case.worker.hub.clients
    admission.greet(connection, (), "", None)
    client.socket.sendall(publish(b"mine/topic", b"payload") + publish(b"yours/topic", b"payload"))


ENDS: list[tuple[Callable[[Case], None], Close, str | None]] = [
    (by_peer, Close.PEER, None),
    (by_peer_that_published, Close.PEER, None),
    (unknown_code, Close.UNREADABLE, None),
    (silent, Close.SILENT, "idle_probe_s"),
    (too_many_connections, Close.REFUSED, "max_connections"),
    (too_many_subscriptions, Close.REFUSED, "max_calls"),
    (draining, Close.DRAINING, None),
    (became_link, Close.BECAME_LINK, None),
    (bug, Close.BUG, None),
    (stranger, Close.UNAUTHORIZED, "greeting_s"),
    (forbidden, Close.FORBIDDEN, None),
]


@pytest.mark.parametrize(("end", "reason", "limit"), ENDS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_close_is_counted_and_told_with_its_reason(
    worker: OneWorker,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[Case], None],
    reason: Close,
    limit: str | None,
) -> None:
    case = Case(worker, monkeypatch)
    before = time.monotonic()
    end(case)
    for later in (0.0, 20.0):  # who has had its last words has two seconds to read them
        worker.turn(later)
    assert worker.counted(metrics.CLOSED) == {reason.label: 1}
    assert worker.counted(metrics.LIMITED) == ({limit: 1} if limit else {})
    [(at, peer, told, text)] = worker.hub.turn.counters.recent.closed
    assert before <= at <= time.monotonic()
    assert told == reason.label
    assert peer
    assert text
    opened = sum(worker.counted(metrics.OPENED).values())
    assert opened == len(case.clients)
    assert sum(worker.counted(metrics.CONNECTIONS).values()) == opened - 1 == len(worker.hub.clients)
    for client in case.clients:
        client.close()
    worker.turn()
    assert worker.counted(metrics.CONNECTIONS) == {}
    assert sum(worker.counted(metrics.CLOSED).values()) == opened


def test_one_that_leaves_before_its_last_words_is_still_closed_for_the_reason_that_they_gave(worker: OneWorker) -> None:
    with worker.connect() as client:
        client.write(framed(b"\xc1") * MAX_UNREADABLE)
        worker.turn()
        assert worker.counted(metrics.CLOSED) == {}
    worker.turn()
    assert worker.counted(metrics.CLOSED) == {"unreadable": 1}
