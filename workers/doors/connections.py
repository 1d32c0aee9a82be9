"""The connections of one worker, and what is known of all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from skywalker.errors import RequestError
from workers.calls.call import ClientCall
from workers.stats import metrics
from workers.stats.close_reasons import Close
from workers.stats.counters import Counters


class Choked(Protocol):
    """One whose client does not read as fast as it is written to."""

    @property
    def unread(self) -> int:
        """Bytes that it has not read."""


class OpenConnection(Protocol):
    """One of them, as the rest of the worker sees it; connection.py says what each of these does."""

    door: int
    peer: str
    opened_at: float

    @property
    def subscriptions(self) -> int: ...
    def open(self) -> None: ...
    def rested(self) -> None: ...
    def waiting(self) -> list[ClientCall]: ...
    def hold_back(self) -> None: ...
    def worker_drains(self) -> None: ...
    def ring_changed(self) -> None: ...
    def leave(self) -> None: ...
    def is_owed(self) -> bool: ...
    def fail_all(self, error: RequestError) -> None: ...
    def goodbye(self) -> None: ...
    def close(self, reason: Close, text: str) -> None: ...


class Connections:
    """All of them, in the order in which they came."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._all: dict[OpenConnection, None] = {}
        self._early: list[OpenConnection] = []
        self.choked: dict[Choked, None] = {}
        self.subscribers_cut_off = 0

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def opened(self, connection: OpenConnection) -> None:
        """Count a connection, and read from it."""
        self._all[connection] = None
        self._counters.memory[metrics.OPENED.at + connection.door] += 1
        self._counters.memory[metrics.CONNECTIONS.at + connection.door] += 1
        connection.open()

    def closed(self, connection: OpenConnection, reason: Close, text: str) -> None:
        """A connection is closed, and why."""
        self._all.pop(connection, None)
        self._counters.closed(connection.peer, reason, text)
        self._counters.memory[metrics.CONNECTIONS.at + connection.door] -= 1

    def came_early(self, connection: OpenConnection) -> None:
        """It waits to be heard until hear_all()."""
        self._early.append(connection)

    def hear_all(self) -> None:
        """Hear those that came early."""
        early, self._early = self._early, []
        for connection in early:
            connection.rested()
