"""Subscribers that do not read: nobody else notices, and what they get in the end has no gap."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.helpers import CLOCK, eventually, time_factor
from tests.workers.pubsub_bus import Doors, doors_of
from tests.workers.pubsub_client import PubSubClient, publish
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import TIMED_OUT, call

KIB, MIB = 1024, 1024 * 1024
SMALL_BUFFER = 4096
BUFFER = 512 * KIB


@pytest.fixture
def node() -> Iterator[Node]:
    """A node that keeps but half a megabyte for a subscriber."""
    with simulated(3, subscriber_buffer=BUFFER) as node:
        yield node
        node.assert_unharmed()


@pytest.fixture
def doors(node: Node) -> Iterator[Doors]:
    with doors_of(node.bus) as doors:
        yield doors


def places(node: Node) -> Iterator[tuple[int, int, int]]:
    """Yield telling combinations of the workers of a publisher, of a slow subscriber and of the topic's owner."""
    last = node.workers - 1
    yield from dict.fromkeys([(0, 0, 0), (0, last, 0), (0, 0, last), (0, last, last), (0, min(1, last), last)])


def numbered(number: int, size: int = 8 * KIB) -> bytes:
    return number.to_bytes(4, "big") * (size // 4)


def numbers(payloads: Sequence[bytes]) -> list[int]:
    """Return which ones these are; they must be whole."""
    found = [int.from_bytes(payload[:4], "big") for payload in payloads]
    assert list(payloads) == [numbered(number, len(payload)) for number, payload in zip(found, payloads, strict=True)]
    return found


def publish_to(publisher: PubSubClient, quick: PubSubClient, topic: bytes, count: range) -> float:
    """Publish one by one, and read them at the quick subscriber; return the longest time that one of them took."""
    worst = 0.0
    for number in count:
        began = CLOCK.monotonic()
        publisher.publish(topic, numbered(number))
        assert quick.message() == (topic, numbered(number), b"")
        worst = max(worst, CLOCK.monotonic() - began)
    return worst


def test_a_stalled_subscriber_is_cut_off_and_nobody_else_notices(node: Node, doors: Doors) -> None:
    for here, there, owner in places(node):
        topic = node.bus.topic(owner).encode()
        stalled = doors.pubsub(there, receive_buffer=SMALL_BUFFER)
        publisher, quick = doors.pubsub(here), doors.pubsub(there)
        stalled.subscribe(topic)
        quick.subscribe(topic)
        cut_off = node.log.count("event=subscriber-cut-off")
        before = node.resident()
        count = 300
        assert publish_to(publisher, quick, topic, range(count)) < 0.3 * time_factor()
        assert node.resident() - before < 8 * MIB
        assert node.log.count("event=subscriber-cut-off") == cut_off + 1
        doors.junction(owner).wait_until(topic.decode(), subscribers=1)
        acks, got, rest = stalled.until_end()
        assert acks == 0
        assert numbers([message.payload for message in got]) == [*range(len(got))]
        assert len(got) < count
        assert numbered(len(got)).startswith(rest[4 + len(topic) :]), "the rest is a part of the next one"
        publisher.close()
        quick.close()


class TestAHungWorker:
    """SIGSTOP hangs worker 1 of 4; SIGCONT lets it go on."""

    COUNT = 500

    @pytest.mark.parametrize("owners", [[0], [2], [0, 2, 3]], ids=["publisher's own", "another's", "of all three"])
    def test_holds_up_publishers_but_a_moment_and_its_subscribers_are_cut_off(self, owners: list[int]) -> None:
        with simulated(4) as node, doors_of(node.bus) as doors:
            topics = [node.bus.topic(owner).encode() for owner in owners]
            hung, other, quick, publisher = (doors.pubsub(place) for place in (1, 1, 2, 0))
            for client in (hung, quick):
                client.subscribe(*topics)
            another = node.bus.topic(1).encode()
            other.subscribe(another)
            before = node.resident()
            pid = node.pid_behind(hung)
            with node.hung_process(pid):
                began = CLOCK.monotonic()
                slowest: list[float] = []
                for number in range(self.COUNT):
                    for topic in topics:
                        asked = CLOCK.monotonic()
                        publisher.publish(topic, numbered(number))
                        slowest.append(CLOCK.monotonic() - asked)
                        assert quick.message() == (topic, numbered(number), b"")
                held_up = sum(each for each in slowest if each > 0.2)
                assert held_up < 1.3 * len(owners) * time_factor(), (
                    f"{held_up:.1f} of {CLOCK.monotonic() - began:.1f} s"
                )
                assert held_up > 0.5, "it never fell behind"
                assert node.resident() - before < 20 * MIB
            assert node.log.count("event=worker-behind") == len(topics)
            acks, got, rest = hung.until_end()
            assert acks == 0
            following = []
            for topic in topics:
                payloads = [message.payload for message in got if message.topic == topic]
                assert numbers(payloads) == [*range(len(payloads))]
                assert len(payloads) < self.COUNT
                following.append(publish(topic, numbered(len(payloads))))
            assert got, "of one owner at least: what the others said may come after it is cut off"
            assert any(message.startswith(rest) for message in following), "the rest is a part of the next one"
            # Who missed nothing stays, and the worker is as good as before.
            publisher.publish(another, b"payload")
            assert other.message().payload == b"payload"
            back = doors.pubsub(1)
            back.subscribe(*topics)
            for topic in topics:
                publisher.publish(topic, b"again")
                assert back.message().payload == quick.message().payload == b"again"
            assert not any(client.has_input(0.01) for client in (back, quick, other))
            node.assert_unharmed()

    def test_leaves_what_many_publish_to_its_topics_bounded(self) -> None:
        with simulated(4) as node, doors_of(node.bus) as doors:
            of_hung = node.bus.topic(1).encode()
            publishers, hung = [doors.pubsub(0) for _ in range(30)], doors.pubsub(1)
            before = node.resident()
            data = publish(of_hung, b"p" * 60_000)
            with node.hung_process(node.pid_behind(hung)):
                for publisher in publishers:
                    publisher.socket.setblocking(False)
                deadline = CLOCK.monotonic() + 1.0
                while CLOCK.monotonic() < deadline:
                    for publisher in publishers:
                        write_some(publisher, data)
                    CLOCK.sleep(0.001)
                # Each may have a quarter of a megabyte on its way, and what it was read too far.
                assert node.resident() - before < 30 * MIB
            eventually(lambda: all(publisher.has_input() for publisher in publishers))
            node.assert_unharmed()


def test_what_a_send_costs_that_times_out_behind_an_ack_does_not_depend_on_how_much_waits_there() -> None:
    costs = []
    for messages in (10, 20_000):
        with simulated(2) as node, doors_of(node.bus) as doors:
            topic, elsewhere = node.bus.topic(0), node.bus.topic(1)
            client, other, hung, sender = doors.pubsub(), doors.pubsub(), doors.pubsub(1), doors.junction()
            client.subscribe(topic.encode())
            with node.hung(hung):
                # The ack of the first does not come, and its copy of the second comes after both.
                client.write(publish(elsewhere.encode(), b"1") + publish(topic.encode(), b"2"))
                CLOCK.sleep(0.05)
                other.write(publish(topic.encode(), b"2") * messages)
                other.acks(messages)
                sender.write(b"".join(call(":send!", number, 1_000, topic, "3") for number in range(1_000)))
                gc.disable()  # a collection would look at whatever the tests before have left
                began = time.thread_time()
                replies = sender.replies(1_000)
                costs.append(time.thread_time() - began)
                gc.enable()
                assert {reply[2] for reply in replies} == {TIMED_OUT}
                assert not client.has_input()
    assert costs[1] < 3 * costs[0] + 0.02


def test_nor_does_that_of_one_whose_subscriber_does_not_read() -> None:
    costs = []
    for sends in (1_000, 40_000):
        with simulated(1, max_calls=sends) as node, doors_of(node.bus) as doors:
            topic = node.bus.topic(0)
            slow, publisher, sender = doors.pubsub(receive_buffer=SMALL_BUFFER), doors.pubsub(), doors.junction()
            slow.subscribe(topic.encode())
            for _ in range(60):
                publisher.publish(topic.encode(), b"p" * 65_535)
            sender.write(b"".join(call(":send!", number, 1_000, topic, "3") for number in range(sends)))
            CLOCK.sleep(0.9)
            gc.disable()
            began = time.thread_time()
            replies = sender.replies(sends, within=20.0)
            costs.append((time.thread_time() - began) / sends)
            gc.enable()
            assert {reply[2] for reply in replies} == {TIMED_OUT}
    assert costs[1] < 1.5 * costs[0] + 0.000005


def write_some(publisher: PubSubClient, data: bytes) -> None:
    """Write what the kernel takes."""
    with contextlib.suppress(BlockingIOError):
        publisher.socket.send(data)
