"""Many subscribers and a few publishers, which go on whatever happens, and what each of them saw."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tests.helpers import CLOCK, time_factor
from tests.workers.pubsub_client import PubSubClient, publish, subscribe
from tests.workers.wire_client import Address, ConnectionEnded

ACK_S: Final = 12.0
"""Seconds for an ack, whatever dies: a node that falls silent is given up by the others within 5."""

Seen = dict[tuple[str, int], list[int]]
"""By topic and publisher, the numbers that came, in the order they came."""


class Subscriber:
    """One that subscribes to some topics, and does so again on a new connection when it loses one."""

    def __init__(self, topics: Sequence[str], doors: Callable[[], Sequence[Address]]) -> None:
        self.topics = topics
        self.lives: list[Seen] = []  # what came on each connection
        self._doors = doors
        self._client: PubSubClient | None = None

    def look(self) -> None:
        """Take in what has come."""
        if self._client is None:
            self._connect()
            return
        seen = self.lives[-1]
        for message in self._client.arrived():
            publisher, number = map(int, message.payload.split())
            seen.setdefault((message.topic.decode(), publisher), []).append(number)
        if self._client.ended:
            self.close()

    def _connect(self) -> None:
        with contextlib.suppress(OSError):
            client = PubSubClient.open(random.choice(self._doors()))
            try:
                client.write(b"".join(subscribe(topic.encode()) for topic in self.topics))
            except OSError:
                client.close()
                raise
            self._client = client
            self.lives.append({})

    def close(self) -> None:
        """Be gone."""
        if self._client is not None:
            self._client.reset()
            self._client = None


class Publisher:
    """One that publishes numbers, each once the one before is acked, on all topics in turn."""

    def __init__(self, number: int, topics: Sequence[str], doors: Callable[[], Sequence[Address]]) -> None:
        self.number = number
        self.next = 0  # what it publishes next
        self._topics = topics
        self._doors = doors
        self._client: PubSubClient | None = None
        self._asked_at: float | None = None  # when it published what is not acked yet

    def topic_of(self, number: int) -> str:
        """Return where it publishes a number."""
        return self._topics[number % len(self._topics)]

    def go_on(self) -> None:
        """Publish one more, if the one before is acked."""
        try:
            if self._client is None:
                self._client = PubSubClient.open(random.choice(self._doors()))
            if self._asked_at is not None and not self._client.has_input():
                assert CLOCK.monotonic() - self._asked_at < ACK_S * time_factor(), "no ack came in time"
                return
            self._hear()
            number, self.next = self.next, self.next + 1
            self._client.write(publish(self.topic_of(number).encode(), b"%d %d" % (self.number, number)))
            self._asked_at = CLOCK.monotonic()
        except (ConnectionEnded, OSError):
            self._leave()  # its worker has died; nobody says so sooner than a new connection

    def stop(self) -> None:
        """Publish nothing more, and wait for the last ack."""
        try:
            self._hear()
        except (ConnectionEnded, ConnectionError):
            pass
        finally:
            self._leave()

    def _hear(self) -> None:
        if self._client is not None and self._asked_at is not None:
            self._client.acks(1, ACK_S)
            self._asked_at = None

    def _leave(self) -> None:
        self._asked_at = None
        if self._client is not None:
            self._client.reset()
            self._client = None


class Crowd:
    """All of them, for a `with` block."""

    def __init__(
        self,
        topics: Sequence[str],
        doors: Callable[[], Sequence[Address]],
        *,
        subscribers: int = 50,
        publishers: int = 3,
    ) -> None:
        self.topics = topics
        # Five topics each, so that every topic has a quarter of them.
        self.subscribers = [
            Subscriber([topics[(n + 4 * step) % len(topics)] for step in range(5)], doors) for n in range(subscribers)
        ]
        self.publishers = [Publisher(number, topics, doors) for number in range(publishers)]
        self._goes_on = True

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for publisher in self.publishers:
            publisher.stop()
        for subscriber in self.subscribers:
            subscriber.close()

    def audience(self, topic: str) -> int:
        """Return how many subscribe to a topic."""
        return sum(topic in subscriber.topics for subscriber in self.subscribers)

    def until(self, check: Callable[[], bool], within: float) -> None:
        """Let it go on until something is true."""
        deadline = CLOCK.monotonic() + within * time_factor()
        while not _holds(check):
            assert CLOCK.monotonic() < deadline, f"not within {within:g} s"
            self._take_turns()

    def _take_turns(self) -> None:
        if self._goes_on:
            for publisher in self.publishers:
                publisher.go_on()
        for subscriber in self.subscribers:
            subscriber.look()

    def go_on(self, count: int, within: float = 20.0) -> None:
        """Let every publisher publish so many more."""
        wanted = [publisher.next + count for publisher in self.publishers]
        self.until(lambda: [publisher.next for publisher in self.publishers] >= wanted, within)

    def assert_nothing_is_missed_from_now_on(self, count: int) -> None:
        """Let them publish so many more, and then no more; each must have come once, in order, to all who listen."""
        lives = [len(subscriber.lives) for subscriber in self.subscribers]
        first = [publisher.next for publisher in self.publishers]  # the one before may still be on its way
        self.go_on(count)
        self._goes_on = False
        for publisher in self.publishers:
            publisher.stop()
        wanted = list(self._wanted(first))
        self.until(lambda: all(self._found(each, first) == seen for each, seen in wanted) or self._is_quiet(), 5)
        for subscriber, seen in wanted:
            assert self._found(subscriber, first) == seen
        assert [len(subscriber.lives) for subscriber in self.subscribers] == lives, "a connection was closed"

    def assert_order(self) -> None:
        """Nothing ever came before what was published before it, though it may have come twice."""
        for subscriber in self.subscribers:
            for seen in subscriber.lives:
                for numbers in seen.values():
                    assert numbers == sorted(numbers)

    def _is_quiet(self) -> bool:
        """Whether nothing more comes for a second; returns as soon as something does."""
        if self._goes_on:
            return False
        before = self._received()
        deadline = CLOCK.monotonic() + time_factor()
        while CLOCK.monotonic() < deadline:
            CLOCK.sleep(0.05)
            self._take_turns()
            if self._received() != before:
                return False
        return True

    def _received(self) -> int:
        return sum(len(numbers) for each in self.subscribers for seen in each.lives for numbers in seen.values())

    def _wanted(self, first: list[int]) -> Iterator[tuple[Subscriber, Seen]]:
        for subscriber in self.subscribers:
            seen: Seen = {}
            for publisher, start in zip(self.publishers, first, strict=True):
                for number in range(start, publisher.next):
                    topic = publisher.topic_of(number)
                    if topic in subscriber.topics:
                        seen.setdefault((topic, publisher.number), []).append(number)
            yield subscriber, seen

    def _found(self, subscriber: Subscriber, first: list[int]) -> Seen:
        if not subscriber.lives:
            return {}
        recent = {key: [n for n in numbers if n >= first[key[1]]] for key, numbers in subscriber.lives[-1].items()}
        return {key: numbers for key, numbers in recent.items() if numbers}


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except (ConnectionEnded, OSError, AssertionError):
        return False  # of who has just died
