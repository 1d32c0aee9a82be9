"""Many subscribers are told the same, written from one place: each has all of it in order, whatever it is told besides,
under whatever id, and however little it reads at a time; and each send is answered true, once."""

from __future__ import annotations

import dataclasses
import random
from typing import Final

import pytest

from skywalker.wire import junction as wire
from skywalker.wire import pubsub, values
from tests.workers.core.test_moving import answers
from tests.workers.core.worlds import LIMITS, MemoryWorker, Settings, Wire

TOPICS: Final = (b"one", b"two")
SETTINGS: Final = Settings(
    dataclasses.replace(LIMITS, max_calls=2_000, subscriber_buffer=10**7, output_bytes=3_000, waiting_bytes=10**7)
)
IDS: Final = [values.pack(id) for id in (1, 1, 1, 9, 257, "fifteen letters")]
"""Of which some end alike, and are not the same."""


class Subscriber:
    """One who subscribes to one topic or both, and what it is to hear."""

    def __init__(self, worker: MemoryWorker, fd: int, luck: random.Random) -> None:
        self.wire = worker.world.wires[fd] = Wire(fd)
        self.hears = bytearray()
        self.asked = 0
        self._dialect = luck.choice(("frames", "frames", "plain", "typed"))
        self._topics = luck.choice((TOPICS[:1], TOPICS[:1], TOPICS[1:], TOPICS))
        self._ids = dict(zip(self._topics, luck.sample(IDS, 2), strict=False))
        if len({*self._ids.values()}) < len(self._topics):
            self._ids[TOPICS[1]] = values.pack(2)
        worker.connect(fd, sealed=luck.random() < 0.2, pubsub=self._dialect != "frames")
        for topic in self._topics:
            if self._dialect == "frames":
                name = values.pack(topic.decode())
                self.wire.coming += wire.frame(values.pack(":subscribe"), self._ids[topic], name)
                self.hears += wire.frame(values.pack(":subscribe"), self._ids[topic], wire.TRUE)
            else:
                self.wire.coming += pubsub.subscribe(topic, typed=self._dialect == "typed")
                self.hears += pubsub.ACKED

    def is_told(self, topic: bytes, payload: bytes) -> None:
        """Expect that."""
        if topic not in self._topics:
            return
        if self._dialect == "frames":
            self.hears += wire.frame(values.pack(":message"), self._ids[topic], values.pack(payload))
        elif self._dialect == "typed":
            self.hears += pubsub.publish_typed(topic, bytes(2), payload)
        else:
            self.hears += pubsub.publish(topic, payload)

    def asks(self) -> None:
        """Ask something that is answered at once, in the midst of what it is told."""
        if self._dialect == "frames":
            self.wire.coming += wire.frame(values.pack(":cancel"), values.pack(7), values.pack(8))
            self.asked += 1


ANSWER: Final = wire.frame(values.pack(":cancel"), values.pack(7), values.pack(False))


@pytest.mark.parametrize("seed", range(60))
def test_each_hears_all_that_is_said_in_order(seed: int) -> None:
    luck = random.Random(seed)
    worker = MemoryWorker(seed, SETTINGS)
    subscribers = [Subscriber(worker, fd, luck) for fd in range(10, 22)]
    publishers = [worker.world.wires.setdefault(fd, Wire(fd)) for fd in (50, 51)]
    for fd, is_pubsub in ((50, True), (51, False)):
        worker.connect(fd, pubsub=is_pubsub)
    worker.settle()
    told, sent = 0, 0
    for _ in range(30):
        for subscriber in subscribers:
            subscriber.wire.room = luck.choice((0, 1, 50, 700, 10**6, 10**6, 10**6))
            if luck.random() < 0.2 and len(subscriber.wire.taken):
                subscriber.asks()
        publisher = luck.randrange(2)
        for _ in range(luck.choice((1, 1, 3, 20))):
            topic, payload = luck.choice(TOPICS), luck.randbytes(luck.choice((0, 3, 100, 1_000)))
            if publisher:
                said = wire.frame(
                    wire.SEND, values.pack(sent), values.pack(60_000), values.pack(topic.decode()), values.pack(payload)
                )
                sent += 1
            else:
                said = pubsub.publish(topic, payload)
            publishers[publisher].coming += said
            for subscriber in subscribers:
                subscriber.is_told(topic, payload)
            told += 1
        worker.settle()  # or what one says next may overtake what the other said before
        worker.world.now += luck.choice((0.0, 0.001, 1.0))
    for _ in range(1_000):
        for subscriber in subscribers:
            subscriber.wire.room = 10**6
        if not worker.one_turn():
            break
    for subscriber in subscribers:
        heard = bytes(subscriber.wire.taken)
        assert heard.count(ANSWER) == subscriber.asked
        assert heard.replace(ANSWER, b"") == subscriber.hears
    assert sorted(answers(publishers[1])) == sorted([wire.SEND, values.pack(id), wire.TRUE] for id in range(sent))
    assert publishers[0].taken == pubsub.ACKED * len(publishers[0].taken)
    worker.core.shut()
