"""What the agent reports of one acquaintance: somebody at an address whom it has dialled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from skywalker.address import Address
from skywalker.discovery.contact import Greeting
from skywalker.discovery.roster import NOBODY, Roster
from skywalker.members import Member
from tests.helpers import time_factor
from tests.workers.told_node import HOST
from workers.agent.acquaintance import Acquaintance, Ours
from workers.engine.machine import MACHINE
from workers.stats.log import Log

ME: Final = Member("id-me", "me", Address(HOST, 1), 1, False, (1,))


class Reports(Roster):
    """Notes what it is told, and wants nothing."""

    def __init__(self) -> None:
        super().__init__(ME, learning=True, luck=lambda: 0.5, now=0.0)
        self.greetings: list[Greeting] = []
        self.ends: list[tuple[str, str]] = []
        """How each ended: the kind of trouble, and why; and what asyncio takes for a mistake of the program."""
        self.strangers: list[str] = []
        """Why those are none of ours who are."""
        self.listings: list[tuple[str, list[str]]] = []
        self.answers = 0

    def greeted(self, address: Address, greeting: Greeting, now: float) -> None:
        self.greetings.append(greeting)

    def ended(self, address: Address, reason: str, now: float, what: str = NOBODY) -> None:
        self.ends.append((what, reason))

    def foreign(self, address: Address, reason: str, now: float) -> None:
        self.strangers.append(reason)

    def answered(self, address: Address, now: float) -> None:
        self.answers += 1

    def listed(self, address: Address, version: str, members: Iterable[Member], now: float) -> None:
        self.listings.append((version, [member.name for member in members]))

    @contextlib.contextmanager
    def of(self, address: Address, *, joins: bool = False, **ours: Any) -> Iterator[Acquaintance]:
        """Have the loop that runs acquainted with somebody, as `ours` says that we do it."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.ends.append(("bug", str(context))))
        known = Ours(ME, joins=joins, nonce=MACHINE.nonce, **ours)
        found = Acquaintance(address, known, self, lambda: None, Log(MACHINE.monotonic))
        found.dial()
        try:
            yield found
        finally:
            found.hang_up()


async def until(check: Callable[[], object]) -> None:
    """Let the loop run until something is so."""
    async with asyncio.timeout(10 * time_factor()):
        while not check():
            await asyncio.sleep(0.001)


def report(address: Address, **ours: Any) -> Reports:
    """Return what is reported of somebody until the first greeting or end."""

    async def meet() -> Reports:
        reports = Reports()
        with reports.of(address, joins=True, **ours):
            await until(lambda: reports.ends or reports.greetings or reports.strangers)
        await asyncio.sleep(0.02)  # for what asyncio might have to complain about
        return reports

    return asyncio.run(meet())
