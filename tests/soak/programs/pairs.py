"""A program of clients that find the owners of topics by themselves, in pairs that meet again and again.

Run as `python -m tests.soak.programs.pairs KIND WHERE PAIRS SEED FILE`; KIND is aio or blocking. It goes on until its
input ends, then finishes what it has begun and prints one line of JSON. FILE gets the history of all calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import skywalker
import skywalker.aio
from tests.promises import record
from tests.promises.history import Connection

PAUSE_S: Final = 1.0
"""Mean seconds between two meetings of a pair."""

TIMEOUTS_S: Final = (0.5, 1.5, 3.0, 8.0)

CLIENTS: Final = 2
"""Clients of each kind: those that go to the owners and those that have others pass their calls on, which acknowledge
what they receive or do not."""

SECOND_LISTENER_S: Final = 10.0
"""Seconds that a sender who was told true waits for its listener to know, before it sends again."""

REFUSED_S: Final = 0.05
"""Seconds until a call that was refused is made anew."""


class Side(NamedTuple):
    """A client as both kinds of it are used here, and what is noted of it."""

    noted: Connection
    send: Callable[[str, str, float], Awaitable[bool]]
    recv: Callable[[str, float], Awaitable[Any]]


class Meeting:
    """One meeting of a pair, until the listener has a value."""

    def __init__(self, topic: str, sender: Side, listener: Side, dice: random.Random) -> None:
        self._topic = topic
        self._sender = sender
        self._listener = listener
        self._dice = dice
        self._got = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._later(self._send))
            group.create_task(self._later(self._recv))

    async def _later(self, act: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(self._dice.choice((0.0, 0.0, 0.1, 0.5)))
        await act()

    async def _send(self) -> None:
        while not self._got.is_set():
            timeout = self._dice.choice(TIMEOUTS_S)
            value = f"{self._topic}-{time.monotonic_ns()}"
            call = record.begin(self._sender.noted, ":send!", self._topic, timeout, value)
            if await record.ended(call, self._sender.send(self._topic, value, timeout)) is not None:
                with contextlib.suppress(TimeoutError):  # whoever had the value has gone with it
                    async with asyncio.timeout(SECOND_LISTENER_S):
                        await self._got.wait()
            await asyncio.sleep(REFUSED_S)

    async def _recv(self) -> None:
        while not self._got.is_set():
            timeout = self._dice.choice(TIMEOUTS_S)
            call = record.begin(self._listener.noted, ":recv!", self._topic, timeout)
            if await record.ended(call, self._listener.recv(self._topic, timeout)) is not None:
                self._got.set()


async def _sides(kind: str, where: str, ack: bool, stack: AsyncExitStack, threads: ThreadPoolExecutor) -> list[Side]:
    loop = asyncio.get_running_loop()

    def awaitable(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        return lambda *arguments: loop.run_in_executor(threads, method, *arguments)

    sides = []
    for number in range(2 * CLIENTS):
        noted, direct = record.client(f"{kind}-{ack}-{number}", acks=ack), number < CLIENTS
        if kind == "aio":
            awaited = await stack.enter_async_context(await skywalker.aio.connect(where, direct=direct, ack=ack))
            sides.append(Side(noted, awaited.send, awaited.recv))
        else:
            client = stack.enter_context(skywalker.connect(where, direct=direct, ack=ack))
            sides.append(Side(noted, awaitable(client.send), awaitable(client.recv)))
    return sides


async def run(kind: str, where: str, pairs: int, seed: int, file: Path) -> dict[str, Any]:
    dice = random.Random(seed)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(0, lambda: sys.stdin.buffer.read1() or stopped.set())
    needed: list[float] = []
    with ThreadPoolExecutor(2 * pairs) as threads:
        async with AsyncExitStack() as stack:
            sides = {ack: await _sides(kind, where, ack, stack, threads) for ack in (False, True)}

            async def keep_meeting(number: int) -> None:
                while not stopped.is_set():
                    began = time.monotonic()
                    ack = number % 2 == 0
                    topic = f"{'acknowledged' if ack else 'plain'}-{kind}-{number}"
                    sender, listener = dice.choices(sides[ack], k=2)
                    await Meeting(topic, sender, listener, dice).run()
                    needed.append(time.monotonic() - began)
                    await asyncio.sleep(dice.expovariate(1 / PAUSE_S))

            async with asyncio.TaskGroup() as group:
                for number in range(pairs):
                    group.create_task(keep_meeting(number))
    record.save(file, [side.noted for each in sides.values() for side in each])
    return {"meetings": len(needed), "longest_s": max(needed, default=0.0)}


if __name__ == "__main__":
    kind, where, pairs, seed, path = sys.argv[1:]
    print(flush=True)  # it begins
    print(json.dumps(asyncio.run(run(kind, where, int(pairs), int(seed), Path(path)))))
