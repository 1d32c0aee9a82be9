"""Publications: publishers that keep so many messages in flight, until all subscribers have every one.

A message is in flight until every subscriber of its topic has it. The publishers of a topic take turns; the next
message is published when one that came before has reached the last subscriber. So no server, however it queues,
gets ahead of what is read, and the same rule holds for those that acknowledge a publish and those that don't.

Nothing is under way at either end of the window, so that what the server does in between is all for its messages.

What each connection must hear is known beforehand: a few messages, over and over. So what is read at a time is compared
at a time, and messages are counted by their bytes; none is decoded, yet one that is missing, doubled, changed or out of
order is noticed where it happens.
"""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from typing import Final

from bench.errors import Stalled, WrongReply
from bench.load.dial import Line, dial
from bench.load.loop import LOOK_S, Loop
from bench.load.plan import Counts, Load
from bench.servers.pubsub import DIALECTS, Dialect
from workers.engine.transport import Transport

READ_BYTES: Final = 64 * 1024

SHOWN: Final = 100
"""Bytes of what is wrong that an error tells, if a message is shorter."""


class Refrain:
    """Messages of one size that are heard one after the other, over and over; perhaps none at all."""

    __slots__ = ("_text", "cycle", "size")

    def __init__(self, messages: Sequence[bytes]) -> None:
        once = b"".join(messages)
        self.size = len(messages[0]) or 1
        self.cycle = len(once) or 1
        self._text = once * (READ_BYTES // self.cycle + 2)  # what is read may begin anywhere in it

    def goes(self, data: bytes, at: int) -> bool:
        """Return whether it goes on like this from byte `at` of a cycle; for no more than READ_BYTES."""
        return self._text.startswith(data, at)

    def part(self, at: int, size: int) -> bytes:
        """Return how it goes on."""
        return self._text[at : at + size]


class Stream(Line):
    """One connection: it says what it is told to, and hears a refrain, perhaps with pings in between."""

    __slots__ = ("_at", "_bytes", "_held", "_ping", "_pong", "_refrain", "_size", "count")

    def __init__(self, link: Transport, refrain: Refrain, dialect: Dialect, epoll: select.epoll) -> None:
        super().__init__(link, epoll)
        self.count = 0  # whole messages heard
        self._bytes = 0
        self._at = 0  # in the refrain's cycle
        self._refrain = refrain
        self._size = refrain.size
        self._ping, self._pong = dialect.ping, dialect.pong
        self._held = b""  # the beginning of a ping

    def ready(self) -> None:
        """Read what has come, and write what can be written. Raises WrongReply or Unreachable."""
        data = self.read(READ_BYTES)
        if data is None:
            return
        if self._held or not self._refrain.goes(data, self._at):
            data = self._without_pings(self._held + data)
        self._bytes += len(data)
        self._at = self._bytes % self._refrain.cycle
        self.count = self._bytes // self._size

    def heard_more_than(self, count: int) -> bool:
        """Return whether there was anything after so many messages, if only a part of one."""
        return self._bytes > count * self._size or bool(self._held)

    def _without_pings(self, data: bytes) -> bytes:
        """Return what is left of `data` when pings are answered; if it ends in the beginning of one, that is held."""
        ping, self._held = self._ping, b""
        if ping and ping in data:
            self.write(self._pong * data.count(ping))
            data = data.replace(ping, b"")
        if self._refrain.goes(data, self._at):
            return data
        for size in range(len(ping) - 1, 0, -1):
            if data.endswith(ping[:size]) and self._refrain.goes(data[:-size], self._at):
                self._held = ping[:size]
                return data[:-size]
        raise WrongReply(self._wrong(data))

    def _wrong(self, data: bytes) -> str:
        size = 1
        while self._refrain.goes(data[:size], self._at):
            size += 1
        # From where the message began, as far as it was read this time.
        start = max(0, size - 1 - (self._bytes + size - 1) % self._size)
        wanted = self._refrain.part(self._at + start, self._size)
        return f"{data[start : start + max(self._size, SHOWN)]!r} came where a correct server says {wanted!r}"


WARM_UP_S: Final = 0.05

CYCLE: Final = 64
"""Messages of a topic that differ. Where it has several publishers all are alike, since any of them may be next."""


class Topic:
    """A topic: what was published on it, and how far its subscribers are."""

    def __init__(self, number: int, load: Load, dialect: Dialect) -> None:
        self.name = b"topic%d" % number
        publishers = load.pairs // load.topics
        payloads = [
            b"%03d.%04d" % (number, turn) + b"." * (load.value_bytes - 8)
            for turn in range(CYCLE if publishers == 1 else 1)
        ]
        audience = len(range(number, load.subscribers, load.topics))
        self.message = Refrain([dialect.message(self.name, payload) for payload in payloads])
        self.ack = Refrain([dialect.ack(audience)])
        self.acks = bool(dialect.ack(audience))
        self.subscribers: list[Subscriber] = []
        self.publishers: list[Stream] = []
        self.published = 0
        self.floor = 0  # messages that every subscriber has
        self.at_floor = audience  # subscribers that have no more
        self.open = False  # whether the next message is published once there is room
        # One message in flight at a time takes as long as is its own doing.
        self.times: list[float] | None = [] if load.pairs * load.in_flight == 1 else None
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


class Publications:
    """All topics of a load."""

    def __init__(self, load: Load, loop: Loop) -> None:
        self._load = load
        self._loop = loop
        self._topics: list[Topic] = []
        self._streams: list[Stream] = []
        self._told = (0, 0)

    @property
    def sent(self) -> int:
        """Messages published, from the first on."""
        return sum(topic.published for topic in self._topics)

    @property
    def received(self) -> int:
        """Deliveries, from the first on."""
        return sum(topic.delivered for topic in self._topics)

    def connect(self) -> None:
        """Open all connections, and have everything found warm. Raises BenchError."""
        load, epoll, dialect = self._load, self._loop.epoll, DIALECTS[self._load.server]
        self._topics = [Topic(number, load, dialect) for number in range(load.topics)]
        for number in range(load.subscribers):
            topic = self._topics[number % len(self._topics)]
            link, _ = dial(load, dialect.subscribe(topic.name))
            subscriber = Subscriber(link, topic.message, dialect, epoll)
            self._streams.append(subscriber)
            subscriber.topic = topic
            topic.subscribers.append(subscriber)
        for number in range(load.pairs):
            topic = self._topics[number % len(self._topics)]
            link, _ = dial(load, dialect.greeting)
            topic.publishers.append(Stream(link, topic.ack, dialect, epoll))
            self._streams.append(topic.publishers[-1])
        for stream in self._streams:
            self._loop.watch(stream.fileno(), stream.ready)
        self.turn_until(time.monotonic() + WARM_UP_S)
        self.pause()
        self.tell(Counts(0))

    def begin(self) -> None:
        """Publish nothing before the window: what is published in it is all that it costs."""

    def turn_until(self, deadline: float) -> None:
        """Publish until a time, or until the loop is stopped."""
        if time.monotonic() < deadline:
            for topic in self._topics:
                if not topic.open:
                    topic.open = True
                    topic.publish()
        self._loop.turn_until(deadline)

    def pause(self) -> None:
        """Publish no more, and wait until everything has come. Raises BenchError."""
        for topic in self._topics:
            topic.open = False
        self._loop.turn_while(lambda: not self._settled(), self._load.patience_s)
        self._expect_no_more()
        if not self._settled():
            raise Stalled(self._missing())

    def tell(self, counts: Counts) -> None:
        """Add what has happened since this was called last."""
        totals = self.sent, self.received
        counts.sent, counts.received = map(int.__sub__, totals, self._told)
        self._told = totals
        for topic in self._topics:
            for each in topic.times or ():
                us = int(each * 1e6)
                counts.latencies_us[us] = counts.latencies_us.get(us, 0) + 1
            if topic.times:
                topic.times.clear()

    def finish(self) -> None:
        """See that no more comes. Raises BenchError."""
        self.pause()  # where the window was cut short
        self._loop.turn_until(time.monotonic() + LOOK_S)  # what is too much may just be on its way
        self._expect_no_more()

    def close(self) -> None:
        """Hang up everywhere."""
        for stream in self._streams:
            stream.close()

    def _settled(self) -> bool:
        return all(topic.settled for topic in self._topics)

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
            f"{self._load.patience_s:g} s after the last of {self.sent} messages {self.received} of {due} "
            f"deliveries had come, and {sum(topic.acked for topic in self._topics)} acknowledgements"
        )
