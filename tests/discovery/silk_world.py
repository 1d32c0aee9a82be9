"""Nodes of skywalker that find each other by Silk, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from skywalker.address import Address
from skywalker.errors import DiscoveryError
from skywalker.members import Member
from tests.silk.world import Node, Process, World
from tests.simulation.silk_member import SimulatedMember

ANYWHERE = "tcp://127.0.0.1:0"

LOOK_S = 0.02
"""Seconds between two looks."""


def at(*ports: int) -> frozenset[Address]:
    """Return the addresses of the nodes at these ports of 10.0.0.1."""
    return frozenset(Address("10.0.0.1", port) for port in ports)


def node(world: World, port: int = 0, router: str = ANYWHERE, keepalive: float = 1.0) -> Node:
    """Return a member, which is a node of skywalker at this port of 10.0.0.1 if that is not 0."""
    junction = {"address": "10.0.0.1", "port": port} if port else None
    return Node(world, router, ANYWHERE, junction=junction, keepalive=keepalive)


class Watch:
    """The source of the node at this port, in a process of its own that looks at it, and what that has found."""

    def __init__(
        self, world: World, port: int, *seeds: Node | str, router: str = ANYWHERE, last: Iterable[Address] = ()
    ) -> None:
        self.found: list[frozenset[Address]] = []
        self.troubles: list[str | None] = []
        self._world = world
        self._process = process = Process(world)
        me = Member(f"id-{port}", f"n{port}", Address("127.0.0.1", port), 2, True, (port, port + 1))
        endpoints = [each if isinstance(each, str) else each.info.router for each in seeds]
        self.source = SimulatedMember(world.zeromq, process.program.loop, process.task, me, router, endpoints, last)
        process.begin(self._look)

    async def _look(self) -> None:
        while True:
            self._note()
            await asyncio.sleep(LOOK_S)

    def _note(self) -> None:
        try:
            finding = self.source.look()
        except DiscoveryError as error:
            self.troubles.append(str(error))
            return
        if not self.source.has_news:
            return
        if self.troubles and self.troubles[-1] is not None:
            self.troubles.append(None)
        if self.found[-1:] != [finding.addresses]:
            self.found.append(finding.addresses)

    def wait_for(self, addresses: Iterable[Address], within: float = 10.0) -> None:
        """Have time go by until these, and only these, are what is known."""
        wanted = frozenset(addresses)
        self._world.until(lambda: self.found[-1:] == [wanted], within)

    def wait_for_trouble(self, count: int, within: float = 10.0) -> None:
        """Have time go by until so many outages have begun or ended."""
        self._world.until(lambda: len(self.troubles) >= count, within)

    def close(self) -> None:
        """End it."""
        self._process.call(self.source.close)
