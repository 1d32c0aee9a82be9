"""A worker's place in its node, the processes that have it, and the life of each as the supervisor sees it."""

from __future__ import annotations

import enum
import socket
from collections.abc import Callable, Iterator
from typing import Final

from workers.engine.life import Life
from workers.engine.machine import Machine
from workers.engine.signals import Signals
from workers.process.child import Child, Make

State = enum.IntEnum("State", "STARTING SERVING DRAINING IDLE STOPPING GONE", start=0)
"""Where a worker's process is in its life. metrics.STATES has their names."""

Event = enum.IntEnum("Event", "READY DRAINED IDLE STOPPED REAPED", start=0)
"""What happens to it, or what it says."""

LIFE: Final = Life(
    "process",
    states=[
        ("starting", "It is forked, and has not said that it is ready."),
        ("serving", "It lets clients in."),
        ("draining", "It takes nothing new, and finishes what it holds."),
        ("idle", "It drains, and holds nothing any more."),
        ("stopping", "It is to end, and is killed if it does not."),
        ("gone", "It is reaped, and its slot may have another."),
    ],
    events=[
        ("ready", "It says so."),
        ("drained", "It is told that its node drains, or that its successor is there."),
        ("idle", "It says so."),
        ("stopped", "It is told to end."),
        ("reaped", "It has ended, by itself or not."),
    ],
    ways={
        State.STARTING: {
            Event.READY: State.SERVING,
            Event.DRAINED: State.DRAINING,
            Event.STOPPED: State.STOPPING,
            Event.REAPED: State.GONE,
        },
        State.SERVING: {Event.DRAINED: State.DRAINING, Event.STOPPED: State.STOPPING, Event.REAPED: State.GONE},
        State.DRAINING: {
            Event.READY: State.DRAINING,  # it was on its way when it was told
            Event.IDLE: State.IDLE,
            Event.STOPPED: State.STOPPING,
            Event.REAPED: State.GONE,
        },
        State.IDLE: {
            Event.READY: State.IDLE,  # one that is forked into a node that drains may be idle before it is ready
            Event.STOPPED: State.STOPPING,
            Event.REAPED: State.GONE,
        },
        State.STOPPING: {Event.READY: State.STOPPING, Event.IDLE: State.STOPPING, Event.REAPED: State.GONE},
    },
)


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
        assert process not in self.processes(), "it has one place"

    def close_listeners(self) -> None:
        """Close this process's copies: nobody is let in here any more."""
        for listener in self.listeners.values():
            listener.close()
        self.listeners = {}


class Process(Child):
    """One worker of a slot."""

    def __init__(
        self,
        slot: Slot,
        part: int,
        make: Make,
        close_others: Callable[[], None],
        signals: Signals,
        machine: Machine,
    ) -> None:
        """Fork it; it keeps the listeners of its slot. `part` of the shared counters is its own.

        Raises OSError if there is no room for it.
        """
        super().__init__(f"skywalker-{slot.number}", make, [*slot.listeners.values()], close_others, signals, machine)
        self.slot = slot
        self.part = part
        self.state = State.STARTING
        self.stop_at: float | None = None  # when it is told to end, if it is being replaced
        self.kill_at: float | None = None  # when it is killed, if it has not ended by then
        self.drain_s = 0.0  # that the one before it gets, if it succeeds one
        self.is_hung = False
        self.agent: Child | None = None  # that asks it what it holds

    def happened(self, event: Event) -> None:
        """Go on to the state that follows. Raises Unlisted, and changes nothing, if this cannot happen now."""
        self.state = State(LIFE.after(self.state, event))
