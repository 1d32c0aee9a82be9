"""Clients of both colours that come and go, and meet on topics that are used but once."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any, Final

import skywalker
import skywalker.aio
from skywalker.aio import Junction
from skywalker.clients.requests import MeetingKind
from skywalker.errors import Cancelled, HandlerFailed, SkywalkerError, TimedOut
from tests.soak.programs.shift import Shift

VISITORS: Final = 12
VISITS: Final = (1, 60)
"""Meetings until a client is closed and another one comes in its place."""

TIMEOUT_S: Final = 8.0
PAUSE_S: Final = 0.05
KINDS: Final[tuple[MeetingKind, ...]] = ("recv", "take", "send")
SIZES: Final = (0, 10, 100, 2_000, 40_000)


class Visitor:
    """Has one client at a time, which may go to the owners of topics, and acknowledge, or not."""

    def __init__(self, shift: Shift, number: int, dice: random.Random) -> None:
        self._shift = shift
        self._number = number
        self._dice = dice
        self._topics = 0

    async def stay(self) -> None:
        """Visit for ever."""
        while True:
            ack, direct = self._dice.random() < 0.5, self._dice.random() < 0.5
            where, known = self._shift.stage.where, self._known()
            with contextlib.suppress(SkywalkerError):
                async with await skywalker.aio.connect(where, ack=ack, direct=direct, **known) as junction:
                    self._shift.counts["clients"] += 1
                    for _ in range(self._dice.randint(*VISITS)):
                        act = self._dice.choices((self._meet, self._give_up, self._ask, self._look), (8, 2, 2, 1))[0]
                        await act(junction)
                        await asyncio.sleep(self._dice.expovariate(1 / PAUSE_S))
            self._shift.counts["blocking clients"] += 1
            await asyncio.to_thread(self._look_in)

    def _known(self) -> dict[str, Any]:
        """Return by what a client is known, where that matters: its certificate or its token."""
        stage = self._shift.stage
        if not stage.authority:
            return {}
        return (
            {"tls": stage.context()} if self._dice.random() < 0.5 else {"tls": stage.context(""), "token": stage.token}
        )

    def _topic(self) -> str:
        self._topics += 1
        return f"visit-{self._shift.seed}-{self._number}-{self._topics}"

    async def _meet(self, junction: Junction) -> None:
        """A value is sent and received, whichever begins first."""
        topic = self._topic()
        value = f"{topic}:{'x' * self._dice.choice(SIZES)}"
        group = self._dice.choice((None, "a"))
        listen = junction.recv(topic, TIMEOUT_S) if group is None else junction.take(topic, group, TIMEOUT_S)
        meeting = [junction.send(topic, value, TIMEOUT_S), listen]
        self._dice.shuffle(meeting)
        for got in await asyncio.gather(*meeting, return_exceptions=True):
            if got not in (True, value) and not isinstance(got, SkywalkerError):
                self._shift.complain(f"{topic} has the value {got!r}")
        self._shift.counts["meetings"] += 1

    async def _give_up(self, junction: Junction) -> None:
        """Calls to which nobody comes: some run out of time, some are cancelled, some are left by their task."""
        topics = [self._topic() for _ in range(self._dice.randint(1, 20))]
        kind: MeetingKind = self._dice.choice(KINDS)
        pending = [await junction.begin(kind, topic, timeout=30) for topic in topics]
        short = junction.recv(self._topic(), self._dice.choice((0, 0.01, 0.2)), default=None)
        if await short is not None:
            self._shift.complain("a value came on a topic on which nobody had sent")
        for call in pending:
            with contextlib.suppress(SkywalkerError):
                await junction.cancel(call)
            with contextlib.suppress(Cancelled, TimedOut):
                await call.result()
        task = asyncio.create_task(junction.recv(self._topic(), 30))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        self._shift.counts["given up"] += len(topics) + 2

    async def _ask(self, junction: Junction) -> None:
        """A request, to a server that comes for it."""
        topic = self._topic()
        serving = asyncio.create_task(junction.serve(topic, lambda number: number * number))
        number = self._dice.randrange(1000)
        with contextlib.suppress(TimedOut, HandlerFailed):
            answer = await junction.request(topic, number, TIMEOUT_S)
            if answer != number * number:
                self._shift.complain(f"the request of {number} squared was answered {answer!r}")
        serving.cancel()
        await asyncio.wait([serving])
        self._shift.counts["requests"] += 1

    async def _look(self, junction: Junction) -> None:
        await junction.topic(self._topic())
        await junction.nodes()
        self._shift.counts["looks"] += 1

    def _look_in(self) -> None:
        """A blocking client, that leaves with a call under way."""
        with (
            contextlib.suppress(SkywalkerError),
            skywalker.connect(self._shift.stage.where, direct=self._dice.random() < 0.5, **self._known()) as junction,
        ):
            for _ in range(self._dice.randint(1, 50)):
                junction.send(self._topic(), "nobody", 0, default=None)
            junction.begin("recv", self._topic(), timeout=30)


async def main() -> None:
    """Have them visit until the input ends."""
    shift = Shift()
    dice = random.Random(shift.seed)
    visitors = [Visitor(shift, number, random.Random(dice.random())) for number in range(VISITORS)]
    await shift.run(*(visitor.stay() for visitor in visitors))
    shift.end()


if __name__ == "__main__":
    asyncio.run(main())
