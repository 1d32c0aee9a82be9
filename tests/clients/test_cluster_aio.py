"""The asyncio client at clusters that end, drain, hang and join under it, in virtual time.

Nodes and client are as they are; the machine below them is simulated. What random runs do not show by themselves is
here: whom a client turns to, and when. For the client that blocks see test_cluster.py.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import signal
import warnings
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from skywalker import aio, errors
from skywalker.address import Address
from skywalker.members import Snapshot
from skywalker.ring import token_of
from skywalker.wire import values
from tests.simulation.eventloop import EventLoop, Program
from tests.simulation.kernel import Kernel
from tests.simulation.machine import Net
from tests.simulation.membership import Founder
from tests.simulation.node import Node
from tests.simulation.plan import FAIR, NODE
from tests.simulation.plan import plan as planned
from workers.setup.ground import JUNCTION

SETTLE_S = 20.0
"""Seconds in which the others have left out a node that hangs or is dead."""

SOON = 10.0
LATE_S = 3.0
"""Seconds that a call may take while a node is being left: a dial that is given up, and then some."""


class World:
    """Three nodes of two workers, and programs beside them."""

    def __init__(self, seed: int) -> None:
        self.kernel = Kernel(seed)
        self.net = Net(self.kernel, FAIR)
        plan = dataclasses.replace(planned(seed), nodes=3, workers=2, way="join", conditions=FAIR)
        self._founder = Founder(self.net, plan)
        self.nodes = [self._founder.node(f"{NODE}{number}") for number in range(3)]
        self.kernel.go_on(3.0)
        self._programs = 0

    @property
    def where(self) -> str:
        """Where all nodes are."""
        return ",".join(self.address(node) for node in self.nodes)

    def address(self, node: Node) -> str:
        """Return where one is."""
        return str(Address(*node.address(JUNCTION)))

    def run(self, main: Callable[[], Awaitable[None]], seconds: float = 200.0) -> None:
        """Run a program to its end."""
        self._programs += 1

        async def live(_: EventLoop) -> None:
            await main()

        program = Program(self.net, f"program{self._programs}", f"10.1.0.{self._programs}", live)
        self.kernel.go_on(seconds)
        assert program.has_ended
        assert not program.loop.complaints

    async def home(self, client: aio.Client) -> Node:
        """Return the node of the main connection."""
        name = (await client.hello())["name"]
        return next(node for node in self.nodes if node.name == name)

    def owner(self, topic: Any) -> Node:
        """Return the node that owns a topic while all are there."""
        id = Snapshot([node.member for node in self.nodes]).ring.owner(token_of(values.pack(topic))).node
        return next(node for node in self.nodes if node.member.id == id)

    def kill(self, node: Node) -> None:
        """Kill all of a node."""
        for process in [*node.process.children, node.process]:
            process.end(-signal.SIGKILL)

    def freeze(self, node: Node, seconds: float) -> None:
        """Have all of a node stand still."""
        for process in [*node.process.children, node.process]:
            if process.status is None:
                process.task.stop(seconds)

    def close(self) -> None:
        for node in self.nodes:
            node.close()


@pytest.fixture
def world() -> Iterator[World]:
    world = World(1)
    yield world
    world.close()
    del world
    with warnings.catch_warnings():  # who is killed closes no file of his
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def now() -> float:
    return asyncio.get_running_loop().time()


async def meet(client: aio.Client, topic: Any) -> None:
    sent, got = await asyncio.gather(client.send(topic, 1, SOON), client.recv(topic, SOON))
    assert (sent, got) == (True, 1)


async def met(client: aio.Client, topic: str, count: int = 24) -> None:
    """Meet on topics all over the ring."""
    for number in range(count):
        await meet(client, [topic, number])


async def waiting(client: aio.Client, count: int = 24) -> list[aio.Pending]:
    """Return calls that wait on topics all over the ring."""
    return [await client.begin("recv", ["waits", number], timeout=100.0) for number in range(count)]


async def assert_all_meet(client: aio.Client, calls: list[aio.Pending]) -> None:
    """These calls are still there for whoever comes by way of another node."""
    for number, call in enumerate(calls):
        assert await client.send(["waits", number], number, SOON) is True
        assert await call.result() == number


def test_a_node_that_hangs_holds_up_only_its_own_topics_and_those_until_it_is_left_out(world: World) -> None:
    async def main() -> None:
        async with await aio.connect(world.where) as client:
            await met(client, "before", 60)
            home = await world.home(client)
            hangs, healthy = (node for node in world.nodes if node is not home)
            topics = [["topic", number] for number in range(100)]
            stuck = next(topic for topic in topics if world.owner(topic) is hangs)
            call = await client.begin("recv", stuck, timeout=100.0)
            world.freeze(hangs, 60.0)
            for topic in topics:
                if world.owner(topic) is healthy:
                    began = now()
                    await meet(client, topic)
                    assert now() - began < 0.5
            await asyncio.sleep(SETTLE_S)
            async with await aio.connect(world.address(healthy), name="other", direct=False) as beside:
                assert await beside.send(stuck, "v", SOON) is True
            assert await call.result() == "v"

    world.run(main)


def test_a_home_that_hangs_is_left_once_the_others_leave_it_out(world: World) -> None:
    async def main() -> None:
        async with await aio.connect(world.where) as client:
            await met(client, "before", 60)
            home = await world.home(client)
            calls = await waiting(client)
            world.freeze(home, 100.0)
            await asyncio.sleep(SETTLE_S)
            other = next(node for node in world.nodes if node is not home)
            async with await aio.connect(world.address(other), name="other", direct=False) as beside:
                await assert_all_meet(beside, calls)

    world.run(main)


def test_a_node_that_hangs_is_not_long_taken_for_a_home(world: World) -> None:
    world.freeze(world.nodes[0], 1000.0)
    world.kernel.go_on(SETTLE_S)

    async def main() -> None:
        for number in range(6):
            began = now()
            async with await aio.connect(world.where) as client:
                await meet(client, ["topic", number])
            assert now() - began < LATE_S

    world.run(main)


def test_nobody_at_any_address_is_told_with_all_of_them(world: World) -> None:
    async def main() -> None:
        began = now()
        with pytest.raises(errors.Unreachable) as caught:
            await aio.connect("10.0.0.1:9,10.0.0.2:9", connect_timeout=0.3)
        assert 0.3 <= now() - began < 0.4
        for address in ("10.0.0.1:9", "10.0.0.2:9"):
            assert f"{address}: connection refused" in str(caught.value)

    world.run(main, 5.0)
