"""Publishers whose messages are numbered, and subscribers that know which one must come next."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import defaultdict
from typing import Final

from skywalker.errors import SkywalkerError, TimedOut
from skywalker.pubsub import aio
from skywalker.pubsub.aio import Broker, Subscription
from tests.soak.programs.shift import Shift

PUBLISHERS: Final = 4
SUBSCRIBERS: Final = 8
TOPICS: Final = 6
PAUSE_S: Final = 0.02
SIZES: Final = (0, 100, 1000, 10_000)

MESSAGES: Final = (50, 500)
"""That a subscriber gets until it leaves for good, and another one comes."""

Stream = tuple[str, str]
"""A publisher and a topic: what one publishes to a topic comes in its order."""


class Broadcast:
    """All publishers and subscribers of a shift."""

    def __init__(self, shift: Shift) -> None:
        self.shift = shift
        self.topics = [f"broadcast-{number}" for number in range(TOPICS)]
        self.doubtful: dict[Stream, set[int]] = defaultdict(set)  # their publisher does not know whether they came

    async def publish(self, number: int) -> None:
        """Publish for ever."""
        dice = random.Random(f"{self.shift.seed} {number}")
        numbers: dict[str, int] = defaultdict(int)
        async with await connected(self.shift) as broker:
            while True:
                topic = dice.choice(self.topics)
                stream = f"{self.shift.seed}-{number}"
                numbers[topic] += 1
                payload = f"{stream} {numbers[topic]} " + dice.choice("ab") * dice.choice(SIZES)
                typed, compress = dice.random() < 0.5, dice.random() < 0.5
                try:
                    await broker.publish(topic, payload, hint=7 if typed else None, compress=typed and compress)
                except TimedOut:
                    self.doubtful[stream, topic].add(numbers[topic])
                    self.shift.counts["publishes in doubt"] += 1
                self.shift.counts["published"] += 1
                await asyncio.sleep(dice.expovariate(1 / PAUSE_S))

    async def subscribe(self, number: int) -> None:
        """Have one subscriber after the other."""
        dice = random.Random(f"{self.shift.seed} {-1 - number}")
        while True:
            with contextlib.suppress(SkywalkerError):
                async with await connected(self.shift) as broker:
                    listener = Listener(self, dice)
                    await listener.listen(broker, dice.randint(*MESSAGES))


class Listener:
    """One subscription, and which number came last of each stream."""

    def __init__(self, broadcast: Broadcast, dice: random.Random) -> None:
        self._broadcast = broadcast
        self._dice = dice
        self._subscription: Subscription | None = None
        self._last: dict[Stream, int] = {}
        self._may_jump: set[Stream] = set()  # with the next that comes, since it was not listened to for a while
        self._gaps = 0  # that it was told of
        self._from_then = 0  # messages that waited when it was, each of which may be from before the gap or after it

    async def listen(self, broker: Broker, messages: int) -> None:
        """Get so many messages. Raises SkywalkerError if there is no connection."""
        counts = self._broadcast.shift.counts
        topics = self._dice.sample(self._broadcast.topics, self._dice.randint(1, TOPICS))
        typed = self._dice.random() < 0.5
        async with await broker.subscribe(*topics, typed=typed, on_gap=self._gap) as subscription:
            self._subscription = subscription
            if self._gaps:
                self._is_back(subscription)  # it was lost before all topics were in effect, and some had messages
            counts["subscriptions"] += 1
            for _ in range(messages):
                try:
                    await self._hear(subscription)
                except TimedOut:
                    counts["silences"] += 1  # all publishers may be stuck at a worker that is just dead
                    continue
                if self._dice.random() < 0.02:
                    await self._change(subscription)

    async def _hear(self, subscription: Subscription) -> None:
        message = await subscription.get(10.0)
        self._broadcast.shift.counts["deliveries"] += 1
        told = not self._from_then and self._knows_all_gaps(subscription)
        self._check(message.topic, message.payload.decode(), told=told)
        if self._from_then:
            self._from_then -= 1
            self._after_gap()

    def _knows_all_gaps(self, subscription: Subscription) -> bool:
        """Whether no gap is still to be told of.

        It is once all topics are in effect again: one whose owner has just died takes until that has a successor, and
        others bring messages before.
        """
        return not subscription._exchange._lost and subscription.gaps == self._gaps

    def _check(self, topic: str, payload: str, *, told: bool) -> None:
        publisher, text, padding = payload.split(" ")
        stream, number = (publisher, topic), int(text)
        shift = self._broadcast.shift
        if len({*padding}) > 1 or len(padding) not in SIZES:
            shift.complain(f"a payload on {topic} is not what was published: {payload:.80}")
        last = self._last.get(stream)
        if last is not None and number <= last:
            shift.complain(f"{topic}: {publisher}'s number {number} came after {last}", rule="again")
            return
        missing = set(range(last + 1, number)) if last is not None else set()
        missing -= self._broadcast.doubtful[stream]
        if missing and told and stream not in self._may_jump:
            shift.complain(f"{topic}: {publisher}'s {sorted(missing)[:5]} did not come, {number} did", rule="missed")
        if told:
            self._may_jump.discard(stream)
        self._last[stream] = number

    def _gap(self, why: str) -> None:
        self._broadcast.shift.counts["gaps"] += 1
        self._gaps += 1
        if self._subscription is not None:
            self._is_back(self._subscription)

    def _is_back(self, subscription: Subscription) -> None:
        self._from_then = subscription._exchange.waiting
        self._after_gap()

    def _after_gap(self) -> None:
        if not self._from_then:
            self._may_jump |= self._last.keys()

    async def _change(self, subscription: Subscription) -> None:
        """Leave a topic and come back: what was published meanwhile does not come."""
        topic = self._dice.choice(sorted(subscription.topics))
        await subscription.unsubscribe(topic)
        while subscription._exchange.waiting:  # so that what comes next is from after it came back
            await self._hear(subscription)
        self._may_jump |= {stream for stream in self._last if stream[1] == topic}
        await subscription.subscribe(topic)


async def connected(shift: Shift) -> Broker:
    """Return a broker; try until there is one."""
    while True:
        with contextlib.suppress(SkywalkerError):
            return await aio.connect(shift.stage.brokers, tls=shift.stage.context())


async def main() -> None:
    """Publish and subscribe until the input ends."""
    shift = Shift()
    broadcast = Broadcast(shift)
    await shift.run(
        *(broadcast.publish(number) for number in range(PUBLISHERS)),
        *(broadcast.subscribe(number) for number in range(SUBSCRIBERS)),
    )
    shift.end()


if __name__ == "__main__":
    asyncio.run(main())
