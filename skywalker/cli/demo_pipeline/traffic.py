"""Calls of many kinds on topics of which few are hot: what the demo's journal is made of."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import random
from typing import Final

import skywalker.aio
from skywalker.errors import OutcomeUnknown, TimedOut

TOPICS: Final = 200
SKEW: Final = 1.1
"""The n-th hottest topic is called n ** SKEW times as rarely as the hottest."""

CALLERS: Final = 256
"""On each side."""

WAIT_S: Final = 0.25
"""How long a call waits: on a rare topic that is too short now and then."""

LONGEST_VALUE: Final = 400
FORSAKEN: Final = "demo/nobody-sends-here"


@dataclasses.dataclass(slots=True)
class Made:
    """How many calls there were, and how many met nobody."""

    calls: int = 0
    timeouts: int = 0


def drive(address: str, seconds: float, seed: int = 1) -> Made:
    """Call a node for so many seconds, on several connections; return what came of it. Raises Unreachable."""
    return asyncio.run(_drive(address, seconds, random.Random(seed)))


async def _drive(address: str, seconds: float, dice: random.Random) -> Made:
    made = Made()
    topics = [f"demo/topic-{number:03}" for number in range(1, TOPICS + 1)]
    chances = [*itertools.accumulate(number**-SKEW for number in range(1, TOPICS + 1))]

    def topic() -> str:
        return dice.choices(topics, cum_weights=chances)[0]

    async with contextlib.AsyncExitStack() as stack:
        senders, receivers = [
            [await stack.enter_async_context(await skywalker.aio.connect(address)) for _ in range(4)] for _ in range(2)
        ]
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds

        async def call(number: int) -> None:
            sender, receiver = senders[number % 4], receivers[number % 4]
            while loop.time() < end:
                with contextlib.suppress(TimedOut, OutcomeUnknown):
                    made.calls += 1
                    made.timeouts += 1
                    kind = dice.random()
                    if kind < 0.5:
                        await sender.send(topic(), bytes(dice.randrange(LONGEST_VALUE)), timeout=WAIT_S)
                    elif kind < 0.95:
                        await receiver.recv(topic(), timeout=WAIT_S)
                    elif kind < 0.99:
                        await receiver.take(topic(), "group", timeout=WAIT_S)
                    else:
                        await receiver.recv(FORSAKEN, timeout=dice.random() * WAIT_S)
                    made.timeouts -= 1

        await asyncio.gather(*(call(number) for number in range(2 * CALLERS)))
    return made
