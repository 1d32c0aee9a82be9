"""Discovery by Silk for a node that is simulated: as it is, but that it lives in an event loop instead of a thread."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Final

from skywalker.address import Address
from skywalker.discovery.silk import SilkAccess
from skywalker.discovery.silk_member import SilkMember
from skywalker.discovery.source import Finding
from skywalker.members import Member
from skywalker.silk.endpoints import beside
from tests.simulation.eventloop import EventLoop
from tests.simulation.kernel import Task
from tests.simulation.zeromq import ALIASES, Simulated, ZeroMQ

PAUSE_S: Final = 0.05
"""Seconds until another look is of use."""


class SimulatedMember(SilkMember):
    """A look returns at once what is known, or raises what is wrong: nothing if nothing is known yet."""

    def __init__(
        self,
        zeromq: ZeroMQ,
        loop: EventLoop,
        task: Task,
        me: Member,
        router: str,
        seeds: Iterable[str],
        last: Iterable[Address] = (),
    ) -> None:
        """`loop` is that of `task`, the process that is a member; `router` is where it listens."""
        super().__init__(me, router, beside(router), SilkAccess(tuple(seeds)), last)
        self.machine = Simulated(zeromq, loop, task)
        self.knock = self._knock
        self._zeromq = zeromq
        self._loop = loop
        self._is_alive = False
        self._known = Finding(frozenset(), PAUSE_S)
        self.has_news = False
        """Whether the last look has found what no look before it has."""

    def look(self) -> Finding:
        if not self._is_alive and not self._over:
            self._is_alive = True
            self._loop.create_task(self.live()).add_done_callback(self._ended)
        found = self.news()
        self.has_news = found is not None
        if found is not None:
            self._known = Finding(found.addresses, PAUSE_S)
        return self._known

    def leave(self) -> None:
        self._stop()

    def _ended(self, _: object) -> None:
        self._is_alive = False

    def _knock(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        if f"tcp://{ALIASES.get(host, host)}:{port}" not in self._zeromq.bound:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
