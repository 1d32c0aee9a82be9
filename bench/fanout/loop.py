"""The fan-out: publishers that keep so many messages in flight, until all subscribers have every one.

A message is in flight until every subscriber of its topic has it. The publishers of a topic take turns; the next
message is published when one that came before has reached the last subscriber. So no server, however it queues,
gets ahead of what is read, and the same rule holds for those that acknowledge a publish and those that don't.
"""

from __future__ import annotations

import contextlib
import select
import time
from typing import Final

from bench import cpu
from bench.errors import BenchError, Stalled, WrongReply
from bench.fanout.dialects import DIALECTS, Dialect
from bench.fanout.plan import Plan, Tally
from bench.fanout.streams import Refrain, Stream, connect
from bench.measure import percentile

WARM_UP_S: Final = 0.05

CYCLE: Final = 64
"""Messages of a topic that differ. Where it has several publishers all are alike, since any of them may be next."""

LOOK_S: Final = 0.02
"""Seconds between looks at whether everything has come."""


def measure(plan: Plan) -> Tally:
    """Do what a plan says. Raises BenchError if anything is lost, doubled or wrong, or does not come."""
    with contextlib.ExitStack() as stack, select.epoll() as epoll:
        return Loop(plan, stack, epoll).measure()


class Topic:
    """A topic: what was published on it, and how far its subscribers are."""

    def __init__(self, number: int, plan: Plan, dialect: Dialect) -> None:
        load = plan.load
        self.name = b"topic%d" % number
        publishers = load.publishers // load.topics
        payloads = [
            b"%03d.%04d" % (number, turn) + b"." * (load.payload_bytes - 8)
            for turn in range(CYCLE if publishers == 1 else 1)
        ]
        audience = len(range(number, plan.subscribers, load.topics))
        self.message = Refrain([dialect.message(self.name, payload) for payload in payloads])
        self.ack = Refrain([dialect.ack(audience)])
        self.acks = bool(dialect.ack(audience))
        self.subscribers: list[Subscriber] = []
        self.publishers: list[Stream] = []
        self.published = 0
        self.floor = 0  # messages that every subscriber has
        self.at_floor = audience  # subscribers that have no more
        self.open = False  # whether the next message is published once there is room
        self.times: list[float] | None = [] if load.alone else None
        self.limit = load.in_flight * publishers
        self._calls = [dialect.publish(self.name, payload) for payload in payloads]
        self._published_at = 0.0

    def heard(self, before: int, after: int) -> None:
        """Take note that a subscriber which had `before` messages has `after`."""
        if self.times is not None:
            self.times += [time.monotonic() - self._published_at] * (after - before)
        if before == self.floor:
            self.at_floor -= 1
            if not self.at_floor:
                counts = [subscriber.count for subscriber in self.subscribers]
                self.floor = min(counts)
                self.at_floor = counts.count(self.floor)
                if self.open:
                    self.publish()

    def publish(self) -> None:
        """Publish as much as there is room for."""
        calls, publishers = self._calls, self.publishers
        first, end = self.published, self.floor + self.limit
        self.published = end
        self._published_at = time.monotonic()
        for number in range(first, min(end, first + len(publishers))):
            turns = range(number, end, len(publishers))
            publishers[number % len(publishers)].write(b"".join([calls[turn % len(calls)] for turn in turns]))

    def forget_times(self) -> None:
        """Keep none of the times noted so far."""
        if self.times is not None:
            self.times.clear()

    @property
    def settled(self) -> bool:
        """Whether everything that was published has come to everyone, and is acknowledged."""
        return self.floor == self.published and self.acked == self.published

    @property
    def acked(self) -> int:
        """How much of what was published is acknowledged; all of it where nothing ever is."""
        return sum(publisher.count for publisher in self.publishers) if self.acks else self.published

    @property
    def delivered(self) -> int:
        """Messages that subscribers have, all together."""
        return sum(subscriber.count for subscriber in self.subscribers)


class Subscriber(Stream):
    """A connection that is subscribed to one topic."""

    __slots__ = ("topic",)

    topic: Topic

    def ready(self) -> None:
        before = self.count
        super().ready()
        if self.count > before:
            self.topic.heard(before, self.count)


class Loop:
    """All topics of a plan, in one thread."""

    def __init__(self, plan: Plan, stack: contextlib.ExitStack, epoll: select.epoll) -> None:
        self._plan = plan
        self._poll = epoll.poll
        dialect = DIALECTS[plan.server]
        self._topics = [Topic(number, plan, dialect) for number in range(plan.load.topics)]
        for number in range(plan.subscribers):
            topic = self._topics[number % len(self._topics)]
            sock = stack.enter_context(connect(plan.host, plan.port, dialect.subscribe(topic.name), plan.patience_s))
            subscriber = Subscriber(sock, topic.message, dialect, epoll)
            subscriber.topic = topic
            topic.subscribers.append(subscriber)
        for number in range(plan.load.publishers):
            topic = self._topics[number % len(self._topics)]
            sock = stack.enter_context(connect(plan.host, plan.port, dialect.greeting, plan.patience_s))
            topic.publishers.append(Stream(sock, topic.ack, dialect, epoll))
        streams = [stream for topic in self._topics for stream in (*topic.subscribers, *topic.publishers)]
        self._ready = {stream.fileno(): stream.ready for stream in streams}

    def measure(self) -> Tally:
        """See the function of the same name."""
        self._run(WARM_UP_S)
        published, delivered = self._published(), self._delivered()
        for topic in self._topics:
            topic.forget_times()
        # Nothing is under way at either end, so that what the server does in between is all for these messages.
        used = cpu.seconds(self._plan.pid)
        began, own = time.monotonic(), time.process_time()
        self._run(self._plan.seconds)
        seconds, own = time.monotonic() - began, time.process_time() - own
        used = cpu.seconds(self._plan.pid) - used
        self._turn_until(time.monotonic() + LOOK_S)  # what is too much may just be on its way
        self._expect_no_more()
        if used <= 0:
            raise BenchError(f"process {self._plan.pid} took no CPU time: it is not what was measured")
        times = sorted(each * 1e6 for topic in self._topics for each in topic.times or ())
        return Tally(
            seconds,
            self._published() - published,
            self._delivered() - delivered,
            used,
            own,
            percentile(times, 50) if times else None,
            percentile(times, 99) if times else None,
        )

    def _run(self, seconds: float) -> None:
        """Publish for so long, and wait until everything has come. Raises BenchError."""
        for topic in self._topics:
            topic.open = True
            topic.publish()
        self._turn_until(time.monotonic() + seconds)
        for topic in self._topics:
            topic.open = False
        deadline = time.monotonic() + self._plan.patience_s
        while not all(topic.settled for topic in self._topics):
            if time.monotonic() >= deadline:
                self._expect_no_more()
                raise Stalled(self._missing())
            self._turn_once(LOOK_S)

    def _turn_until(self, deadline: float) -> None:
        while (now := time.monotonic()) < deadline:
            self._turn_once(deadline - now)

    def _turn_once(self, seconds: float) -> None:
        ready = self._ready
        for fd, _ in self._poll(seconds):
            ready[fd]()

    def _expect_no_more(self) -> None:
        """Raise WrongReply if more has come than there should be."""
        for topic in self._topics:
            if any(subscriber.heard_more_than(topic.published) for subscriber in topic.subscribers):
                raise WrongReply(f"{topic.published} messages were published, and a subscriber heard more")
            if topic.acked > topic.published:
                raise WrongReply(f"{topic.published} messages were published and {topic.acked} acknowledged")

    def _missing(self) -> str:
        due = sum(topic.published * len(topic.subscribers) for topic in self._topics)
        return (
            f"{self._plan.patience_s:g} s after the last of {self._published()} messages {self._delivered()} of {due} "
            f"deliveries had come, and {sum(topic.acked for topic in self._topics)} acknowledgements"
        )

    def _published(self) -> int:
        return sum(topic.published for topic in self._topics)

    def _delivered(self) -> int:
        return sum(topic.delivered for topic in self._topics)
