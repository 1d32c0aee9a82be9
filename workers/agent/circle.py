"""The nodes that the agent is acquainted with: does what Roster wants, and keeps its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from skywalker.address import Address
from skywalker.discovery.roster import Action, Ask, Dial, HangUp, Notice, Ping, Publish, Roster
from skywalker.members import Snapshot
from workers.agent.acquaintance import Acquaintance, Ours
from workers.stats.log import Log

MAX_CHANGES_LOGGED: Final = 5
"""Nodes that came or went, named in one line of the log."""


class Circle:
    """Lives in a running event loop, which is all that may call it. `publish` is called with each new snapshot."""

    def __init__(self, roster: Roster, ours: Ours, publish: Callable[[Snapshot], None], log: Log) -> None:
        self._roster = roster
        self._ours = ours
        self._publish = publish
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._acquaintances: dict[Address, Acquaintance] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._snapshot: Snapshot | None = None
        self._act()

    def found(self, addresses: Iterable[Address]) -> None:
        """The source lists these addresses now."""
        self._roster.found(addresses, self._loop.time())
        self._act()

    def hinted(self, address: Address) -> None:
        """Somebody says that there is a node at this address."""
        self._roster.hinted(address, self._loop.time())
        self._act()

    def drain(self) -> None:
        """Publish a cluster without this node, and go on."""
        self._roster.drain(self._loop.time())
        self._act()

    def close(self) -> None:
        """Leave all of them."""
        if self._timer is not None:
            self._timer.cancel()
        for acquaintance in self._acquaintances.values():
            acquaintance.hang_up()

    def _tick(self) -> None:
        self._roster.tick(self._loop.time())
        self._act()

    def _act(self) -> None:
        for action in self._roster.actions():
            self._do(action)
        if self._timer is not None:
            self._timer.cancel()
        wait = self._roster.wait(self._loop.time())
        self._timer = None if wait is None else self._loop.call_later(wait, self._tick)

    def _do(self, action: Action) -> None:
        match action:
            case Dial(address):
                dialled = Acquaintance(address, self._ours, self._roster, self._act, self._log)
                self._acquaintances[address] = dialled
                dialled.dial()
            case Ping(address):
                self._acquaintances[address].ping()
            case Ask(address):
                self._acquaintances[address].ask()
            case HangUp(address):
                if left := self._acquaintances.pop(address, None):
                    left.hang_up()
            case Publish(snapshot):
                if self._snapshot is None or self._snapshot.version != snapshot.version:
                    self._log_change(snapshot)
                self._snapshot = snapshot
                self._publish(snapshot)
            case Notice(address, text):
                self._log.warning("cluster-trouble", address=address, reason=text)

    def _log_change(self, snapshot: Snapshot) -> None:
        changes = [] if self._snapshot is None else self._snapshot.diff(snapshot)
        if len(changes) > MAX_CHANGES_LOGGED:
            changes[MAX_CHANGES_LOGGED:] = [f"and {len(changes) - MAX_CHANGES_LOGGED} more changes"]
        self._log.info("ring", version=snapshot.version, nodes=len(snapshot), changes="; ".join(changes))
