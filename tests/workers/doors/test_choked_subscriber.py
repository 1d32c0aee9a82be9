"""A subscriber that reads nothing for a while: what it costs, and that it gets all or is cut off."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import psutil
import pytest

from skywalker.limits import MIB, Limits
from tests.workers.one_worker import OneWorker
from workers.doors.pubsub import PubSub

BUFFER = 2 * MIB
SMALL_BUFFER = 16 * 1024

SMALL = b"\x01\x00\x01\x00x"
"""The publish of one byte to the topic without a name: five bytes."""

MAX_IN_KERNEL = 256 * 1024
"""Bytes that the subscriber's socket takes at most, unread."""

SUBSCRIBE = b"\x02\x00"
ACK = b"\x04"


class Slow:
    """A worker, a client of it that publishes, and a subscriber whose buffers are small."""

    def __init__(self, worker: OneWorker) -> None:
        self.worker = worker
        self.ours, self.subscriber = worker.connected(PubSub, SMALL_BUFFER)
        self.publishers, self.publisher = worker.connected(PubSub, SMALL_BUFFER)
        for sock in (self.ours, self.publishers):
            sock.setblocking(False)
        self.subscriber.received(SUBSCRIBE)
        worker.turn()
        assert self.ours.recv(10) == ACK

    def publish(self, count: int, at_once: int = 10_000) -> None:
        """Publish so many, without a look at what the subscriber does; the acks are read."""
        acks = 0
        for done in range(0, count, at_once):
            some = min(at_once, count - done)
            self.publisher.received(SMALL * some)
            # Nothing more is read of it before all of that is done.
            while acks < done + some and not self.publisher.gone:
                self.worker.turn()
                acks += len(read_all(self.publishers))
        assert acks == count

    def close(self) -> None:
        self.ours.close()
        self.publishers.close()


def read_all(sock: socket.socket) -> bytes:
    """Return what is there."""
    found = b""
    try:
        while data := sock.recv(1 << 20):
            found += data
    except BlockingIOError:
        pass
    return found


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    worker = OneWorker(Limits(subscriber_buffer=BUFFER))
    yield worker
    worker.close()


@pytest.fixture
def slow(worker: OneWorker) -> Iterator[Slow]:
    slow = Slow(worker)
    yield slow
    slow.close()


def test_a_buffer_full_of_small_messages_takes_little_more_and_all_arrive(slow: Slow) -> None:
    slow.publish(1000)  # what is needed once is there
    read = len(read_all(slow.ours))
    slow.worker.turn()
    assert read + len(read_all(slow.ours)) == 1000 * len(SMALL)
    slow.worker.turn()
    held = slow.worker.holds()
    process = psutil.Process()
    before = process.memory_info().rss
    count = BUFFER // len(SMALL)
    slow.publish(count)
    taken = process.memory_info().rss - before
    print(f"{taken / MIB:.1f} MiB for {BUFFER // MIB} MiB of messages")
    assert taken < 3 * BUFFER
    assert not slow.subscriber.gone
    # It reads in small pieces: each of them makes room for some more.
    got = 0
    while got < count * len(SMALL):
        try:
            data = slow.ours.recv(5001)
        except BlockingIOError:
            slow.worker.turn()
            continue
        assert data == (SMALL * 1002)[got % len(SMALL) :][: len(data)]
        got += len(data)
    slow.worker.turn()
    assert read_all(slow.ours) == b""
    assert slow.worker.holds() == held


def test_past_its_buffer_it_is_cut_off_and_what_it_has_read_has_no_gap(slow: Slow) -> None:
    chunks = [b"\x01\x00\x04\x00" + number.to_bytes(4, "big") for number in range((BUFFER + MAX_IN_KERNEL) // 7)]
    for at in range(0, len(chunks), 10_000):
        slow.publisher.received(b"".join(chunks[at : at + 10_000]))
        slow.worker.turn()
        while read_all(slow.publishers):  # there is room for more acks, if there are more
            slow.worker.turn()
        if slow.subscriber.gone:
            break
    assert slow.subscriber.gone, "more than its buffer holds was published"
    assert slow.worker.core.connections.subscribers_cut_off == 1
    got = read_all(slow.ours)
    assert b"".join(chunks).startswith(got)
    assert slow.worker.core.junction.subscribers(b"\xa0") == []
    slow.publisher.received(SMALL)
    slow.worker.turn()
    assert read_all(slow.publishers).endswith(ACK), "publishers do not notice"


def test_it_is_cut_off_within_the_turn_in_which_too_much_came(slow: Slow) -> None:
    # One read of a publisher is far less than a buffer, but many publishers may be read in one turn.
    before = psutil.Process().memory_info().rss
    for _ in range(100):
        slow.publisher.received(b"\x01\x00\xff\xff" + bytes(65_535))
        slow.worker.core.turn.attend()
    assert slow.subscriber.gone
    assert psutil.Process().memory_info().rss - before < 5 * BUFFER
    slow.worker.turn()
