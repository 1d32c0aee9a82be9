"""Reloads of a node, as its operator asks for them, and clients that go where they are told to."""

from __future__ import annotations

import signal
from typing import Any

from tests.helpers import eventually
from tests.workers.operated import Operated
from tests.workers.processes import Node
from tests.workers.wire_client import Refused, WireClient

RELOADS = ("reloaded", "reload-failed", "reload-refused")


def reloads(running: Node | Operated) -> list[str]:
    """Return how each reload ended."""
    return [name for name in RELOADS for _ in running.events(name)]


def reload(running: Node | Operated, within: float = 10.0) -> None:
    """Reload a node, and wait until it is done. Raises AssertionError unless that went well."""
    before = reloads(running)
    begin_reload(running)
    eventually(lambda: len(reloads(running)) > len(before), within)
    assert reloads(running).count("reloaded") == before.count("reloaded") + 1


def begin_reload(running: Node | Operated) -> None:
    """Reload a node."""
    running.signal(signal.SIGHUP)


class Wanderer:
    """A client that makes a call anew, over a new connection, when it is told that its worker drains."""

    def __init__(self, running: Node | Operated) -> None:
        self._running = running
        self._client: WireClient | None = None
        self.told = 0  # how often

    def __enter__(self) -> Wanderer:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Hang up."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def answer(self, method: str, *arguments: object) -> Any:
        """Make a call, as often as it takes, and return its result."""
        while True:
            if self._client is None:
                self._client = self._running.connect()
            try:
                return self._client.answer(method, *arguments)
            except Refused as error:
                if error.code != "draining":
                    raise
                self.told += 1
                self.leave()
