"""How asyncio tests of Silk run: every complaint of the loop fails them.

simulate() runs one in simulated time and with a simulated ZeroMQ, and run() with the real ones, with times that are
scaled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from skywalker import silk
from skywalker.silk.machine import MACHINE, Machine
from tests.helpers import time_factor
from tests.silk.ground import eventually
from tests.silk.world import World
from tests.simulation.eventloop import EventLoop

T = TypeVar("T")

SOON_S = 5.0


def keepalive() -> float:
    """Return the seconds between signs of life of the nodes under test."""
    return round(0.1 * time_factor(), 3)  # whole milliseconds, as on the wire


def run(coroutine: Coroutine[Any, Any, Any], *, debug: bool = True) -> Any:
    """Run a test. It fails if it leaves something behind, or if something failed with nobody to tell it to."""
    complaints: list[dict[str, Any]] = []

    async def within_time() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with asyncio.timeout(50 * time_factor()):
            result = await coroutine
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left behind: {left}"
        return result

    result = asyncio.run(within_time(), debug=debug)
    assert not complaints
    return result


def simulate(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a test in which it takes no time to wait: all its nodes are one process."""
    world = World()
    process = world.process()
    process.call(lambda: coroutine)
    process.close()
    world.close()


def new_node(*endpoints: str, **settings: Any) -> silk.Node:
    """Return a node on the machine that the running loop is on."""
    return silk.Node(*endpoints, machine=_machine(), **settings)


def _machine() -> Machine:
    loop = asyncio.get_running_loop()
    return World.machines[loop] if isinstance(loop, EventLoop) else MACHINE


def insist(say: Callable[[], object], until: Callable[[], T]) -> T:
    """Broadcast something over and over until it is heard: a subscription takes a moment. Return what `until` does."""

    def said() -> T:
        say()
        return until()

    return eventually(said)


async def soon(check: Callable[[], T], within: float = SOON_S) -> T:
    """Return what `check` returns, once that is true. As eventually(), while the loop goes on."""
    try:
        async with asyncio.timeout(within * time_factor()):
            while not (value := check()):
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not within {within * time_factor():g} s; last value was {check()!r}") from None
    return value


async def met(*nodes: silk.Node, within: float = SOON_S) -> None:
    """Return once each of these knows all others, and nobody else."""
    ids = {node.id for node in nodes}
    await soon(lambda: all(node.members.keys() == ids - {node.id} for node in nodes), within)


async def hear_each_other(*nodes: silk.Node) -> None:
    """Return once what each of these broadcasts comes to all others: connections take a moment."""
    heard: dict[str, set[str]] = {node.id: set() for node in nodes}
    for node in nodes:
        node.handle("hello", heard[node.id].add)
    async with asyncio.timeout(SOON_S * time_factor()):
        while not all(heard[node.id] == heard.keys() - {node.id} for node in nodes):
            for node in nodes:
                await node.broadcast("hello", node.id)
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def cluster(count: int, **settings: Any) -> AsyncIterator[list[silk.Node]]:
    """Have so many nodes that know each other."""
    settings.setdefault("keepalive", keepalive())
    async with contextlib.AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(new_node(name=f"n{n}", **settings)) for n in range(count)]
        for node in nodes[1:]:
            await node.join(nodes[0].info.router)
        await met(*nodes)
        yield nodes


class Diary:
    """What becomes known at a node from now on, as pairs of what happened and to whom."""

    def __init__(self, node: silk.Node) -> None:
        self.entries: list[tuple[str, str]] = []
        self.events = node.events()
        self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        async for event in self.events:
            self.entries.append((type(event).__name__, event.node.id))

    def of(self, node: silk.Node) -> list[str]:
        """Return what happened to a node, in order."""
        return [what for what, id in self.entries if id == node.id]
