"""A worker's place in its node."""

from __future__ import annotations

import socket

from workers import control
from workers.lifecycle import Event, State, after


class Slot:
    """One worker's place: what stays the same when a worker is replaced, and the one that has it now."""

    def __init__(self, number: int, listeners: dict[str, socket.socket]) -> None:
        self.number = number
        self.listeners = listeners  # by door
        self.state = State.GONE
        self.pid = 0
        self.channel: control.Channel | None = None
        self.started_at = 0.0
        self.deaths = 0  # in a row
        self.restart_at: float | None = None

    def close_listeners(self) -> None:
        """Close this process's copies: nobody is let in here any more."""
        for listener in self.listeners.values():
            listener.close()
        self.listeners = {}

    def happened(self, event: Event) -> None:
        """Change the state as the table says."""
        self.state = after(self.state, event)
