"""A program of clients that find the owners of topics by themselves, in pairs that meet again and again.

Run as `python -m tests.chaos.routed KIND WHERE PAIRS SEED FILE`; KIND is aio or blocking. It goes
on until its input ends, then finishes what it has begun and prints one line of JSON. FILE gets
the history of all calls.
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
from typing import Any, Final

import skywalker
import skywalker.aio
from skywalker.errors import OutcomeUnknown, SkywalkerError, TimedOut
from tests.chaos.pairs import PAUSE_S, TIMEOUTS_S
from tests.history import Kind, Outcome, Recorder

CLIENTS: Final = 2
"""Clients of each kind: those that go to the owners and those that have others pass their calls on, which acknowledge
what they receive or do not."""

SECOND_LISTENER_S: Final = 10.0
"""Seconds that a sender who was told true waits for its listener to know, before it sends again."""

Send = Callable[[str, str, float], Awaitable[bool]]
Recv = Callable[[str, float], Awaitable[Any]]


class Side:
    """A client as both kinds of it are used here."""

    def __init__(self, name: str, ack: bool, send: Send, recv: Recv) -> None:
        self.name = name
        self.ack = ack
        self.send = send
        self.recv = recv


class Meeting:
    """One meeting of a pair, until the listener has a value."""

    def __init__(self, topic: str, sender: Side, listener: Side, dice: random.Random, recorder: Recorder) -> None:
        self._topic = topic
        self._sender = sender
        self._listener = listener
        self._dice = dice
        self._recorder = recorder
        self._got = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._later(self._send))
            group.create_task(self._later(self._recv))

    async def _later(self, act: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(self._dice.choice((0.0, 0.0, 0.1, 0.5)))
        await act()

    async def _send(self) -> None:
        side, recorder = self._sender, self._recorder
        while not self._got.is_set():
            timeout = self._dice.choice(TIMEOUTS_S)
            value = f"{self._topic}-{time.monotonic_ns()}"
            call = recorder.call(Kind.SEND, self._topic, connection=side.name, timeout=timeout, value=value)
            if await _answered(side.send(self._topic, value, timeout), recorder, call) is not None:
                with contextlib.suppress(TimeoutError):  # whoever had the value has gone with it
                    async with asyncio.timeout(SECOND_LISTENER_S):
                        await self._got.wait()

    async def _recv(self) -> None:
        side, recorder = self._listener, self._recorder
        while not self._got.is_set():
            timeout = self._dice.choice(TIMEOUTS_S)
            call = recorder.call(Kind.RECV, self._topic, connection=side.name, timeout=timeout, at_least_once=side.ack)
            if await _answered(side.recv(self._topic, timeout), recorder, call) is not None:
                self._got.set()


async def _answered(answer: Awaitable[Any], recorder: Recorder, call: str) -> Any:
    """Return the answer to a call, None if it was not met; either way note it."""
    try:
        result = await answer
    except TimedOut:
        recorder.answer(call, Outcome.TIMEOUT)
    except OutcomeUnknown:
        recorder.answer(call, Outcome.UNKNOWN)
    except SkywalkerError as error:
        recorder.answer(call, Outcome.ERROR, code=f"{type(error).__name__}: {error}")
        await asyncio.sleep(0.05)
    else:
        if result is True:
            recorder.answer(call, Outcome.TRUE)
        else:
            recorder.answer(call, Outcome.VALUE, value=result)
        return result
    return None


async def _sides(kind: str, where: str, ack: bool, stack: AsyncExitStack, threads: ThreadPoolExecutor) -> list[Side]:
    loop = asyncio.get_running_loop()

    def awaitable(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        return lambda *arguments: loop.run_in_executor(threads, method, *arguments)

    sides = []
    for number in range(2 * CLIENTS):
        name, direct = f"{kind}-{ack}-{number}", number < CLIENTS
        if kind == "aio":
            awaited = await stack.enter_async_context(await skywalker.aio.connect(where, direct=direct, ack=ack))
            sides.append(Side(name, ack, awaited.send, awaited.recv))
        else:
            client = stack.enter_context(skywalker.connect(where, direct=direct, ack=ack))
            sides.append(Side(name, ack, awaitable(client.send), awaitable(client.recv)))
    return sides


async def run(kind: str, where: str, pairs: int, seed: int, recorder: Recorder) -> dict[str, Any]:
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
                    await Meeting(topic, *dice.choices(sides[ack], k=2), dice, recorder).run()
                    needed.append(time.monotonic() - began)
                    await asyncio.sleep(dice.expovariate(1 / PAUSE_S))

            async with asyncio.TaskGroup() as group:
                for number in range(pairs):
                    group.create_task(keep_meeting(number))
    return {"meetings": len(needed), "longest_s": max(needed, default=0.0)}


if __name__ == "__main__":
    kind, where, pairs, seed, path = sys.argv[1:]
    with open(path, "ab", buffering=0) as file:
        print(json.dumps(asyncio.run(run(kind, where, int(pairs), int(seed), Recorder(file, kind)))))
