"""A worker's place in its node, and the processes that have it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from workers.ipc import control
from workers.process.lifecycle import State


class Slot:
    """One worker's place: what stays the same when a worker is replaced."""

    def __init__(self, number: int, listeners: dict[str, socket.socket]) -> None:
        self.number = number
        self.listeners = listeners  # by door
        self.worker: Process | None = None  # who owns the topics of the place
        self.successor: Process | None = None  # who will, once it is ready
        self.outgoing: Process | None = None  # who did, and still has clients
        self.deaths = 0  # in a row
        self.restart_at: float | None = None
        self.lent_to: list[Process] = []  # siblings that accept here while it waits for a worker

    def processes(self) -> Iterator[Process]:
        """Yield those there are."""
        yield from filter(None, (self.worker, self.successor, self.outgoing))

    def forget(self, process: Process) -> None:
        """A process is dead."""
        if self.worker is process:
            self.worker = None
        elif self.successor is process:
            self.successor = None
        elif self.outgoing is process:
            self.outgoing = None

    def close_listeners(self) -> None:
        """Close this process's copies: nobody is let in here any more."""
        for listener in self.listeners.values():
            listener.close()
        self.listeners = {}


@dataclass(eq=False, slots=True)
class Process:
    """One worker, from its fork until it is reaped."""

    slot: Slot
    pid: int
    channel: control.Channel
    part: int  # of the shared counters
    started_at: float
    state: State = State.STARTING
    stop_at: float | None = None  # when it is told to end, if it is being replaced
    kill_at: float | None = None  # when it is killed, if it has not ended by then
    drain_s: float = 0.0  # that the one before it gets, if it succeeds one
    is_hung: bool = False
    is_killed: bool = False  # by us
    agent: control.Channel | None = None  # to the agent that asks it what it holds

    def kill(self) -> None:
        """End it at once."""
        self.is_killed = True
        os.kill(self.pid, signal.SIGKILL)
