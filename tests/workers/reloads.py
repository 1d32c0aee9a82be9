"""Reloads of a node, as its operator asks for them, and clients that go where they are told to."""

from __future__ import annotations

import signal

from tests.helpers import eventually
from tests.workers.operated import Operated
from tests.workers.processes import Node

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
