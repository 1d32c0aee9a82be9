"""Nodes of skywalker that find each other by Silk, in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from skywalker.address import Address
from skywalker.discovery.silk import SilkAccess
from skywalker.discovery.silk_member import SilkMember
from skywalker.discovery.watch import watch
from skywalker.members import Member
from skywalker.silk.endpoints import beside
from tests.silk.world import Node, World
from tests.simulation.silk_member import SimulatedSurroundings
from tests.simulation.threads import Event, Thread

ANYWHERE = "tcp://127.0.0.1:0"


def at(*ports: int) -> frozenset[Address]:
    """Return the addresses of the nodes at these ports of 10.0.0.1."""
    return frozenset(Address("10.0.0.1", port) for port in ports)


def node(world: World, port: int = 0, router: str = ANYWHERE, keepalive: float = 1.0) -> Node:
    """Return a member, which is a node of skywalker at this port of 10.0.0.1 if that is not 0."""
    junction = {"address": "10.0.0.1", "port": port} if port else None
    return Node(world, router, ANYWHERE, junction=junction, keepalive=keepalive)


class Watch:
    """What a thread of a process has found that watches the source of the node at this port."""

    def __init__(
        self, world: World, port: int, *seeds: Node | str, router: str = ANYWHERE, last: Iterable[Address] = ()
    ) -> None:
        self.found: list[frozenset[Address]] = []
        self.troubles: list[str | None] = []
        self._world = world
        self._name, self._host = f"watch{port}", "127.0.0.1"
        around = SimulatedSurroundings(world.zeromq, self._name, self._host, world.threads)
        me = Member(f"id-{port}", f"n{port}", Address(self._host, port), 2, True, (port, port + 1))
        access = SilkAccess(tuple(each if isinstance(each, str) else each.info.router for each in seeds))
        self.source = SilkMember(me, router, beside(router), access, last, around)
        self._stopped: Any = Event(world.kernel)
        self._begin(lambda: watch(self.source, self.found.append, self.troubles.append, self._stopped, self._luck))

    def _luck(self) -> float:
        return self._world.net.luck.random()

    def _begin(self, call: Callable[[], None]) -> None:
        self._world.threads.append(Thread(self._world.kernel, self._name, self._host, call))

    def leave(self) -> None:
        """Have it leave."""
        self._begin(self.source.leave)

    def wait_for(self, addresses: Iterable[Address], within: float = 10.0) -> None:
        """Have time go by until these, and only these, are what is known."""
        wanted = frozenset(addresses)
        self._world.until(lambda: self.found[-1:] == [wanted], within)

    def wait_for_trouble(self, count: int, within: float = 10.0) -> None:
        """Have time go by until so many outages have begun or ended."""
        self._world.until(lambda: len(self.troubles) >= count, within)

    def close(self) -> None:
        """End it."""
        self._stopped.set()
        self.source.close()
