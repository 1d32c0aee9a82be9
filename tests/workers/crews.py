"""A crew whose workers do what a test says, and nothing else: each is a process that waits for orders."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import selectors
import signal
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.helpers import eventually
from workers.engine.machine import MACHINE
from workers.engine.signals import Signals
from workers.ipc import control
from workers.ipc.control import Channel, Message
from workers.process.crew import Crew
from workers.process.slot import Process
from workers.stats.log import Log
from workers.stats.shared import SharedCounters

LONG_S = 60.0


class Orders:
    """What each worker is to say, and when it is to end."""

    def __init__(self, workers: int) -> None:
        self.heard: list[tuple[Process, Message]] = []
        self.shared = SharedCounters(workers)
        self.selector = selectors.DefaultSelector()
        self._lines = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2 * workers)]  # by part

    def obey(self, channel: Channel, part: int) -> int:
        """Be a worker."""
        faulthandler.disable()  # that of the test runner would say much of each that is killed
        while True:
            what, _, how = self._lines[part][1].recv(100).decode().partition(" ")
            if what == "end":
                return int(how)
            # What it has not read when it ends would have the kernel drop what it said.
            with contextlib.suppress(BlockingIOError):
                while channel.receive() is not None:
                    pass
            channel.send(getattr(control, how)())

    def say(self, process: Process, message: Message) -> None:
        """Have a worker say something, which is not heard yet."""
        self._lines[process.part][0].send(f"say {type(message).__name__}".encode())

    def end(self, process: Process, status: int) -> None:
        """Have a worker end, and wait until it has; it is not reaped yet."""
        self._lines[process.part][0].send(f"end {status}".encode())
        eventually(lambda: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)

    def say_and_hear(self, process: Process, message: Message) -> None:
        """Have a worker say something, and the crew hear it."""
        wanted = len(self.heard) + 1
        self.say(process, message)

        def is_heard() -> bool:
            for key, _ in self.selector.select(0):
                key.data()
            return len(self.heard) >= wanted

        eventually(is_heard)

    def close(self) -> None:
        """Close what it has open."""
        self.selector.close()
        for pair in self._lines:
            for end in pair:
                end.close()


@dataclass
class Worker:
    """Obeys, and does nothing else."""

    orders: Orders
    channel: Channel
    part: int

    def run(self) -> int:
        """Do as it is told."""
        return self.orders.obey(self.channel, self.part)


@contextlib.contextmanager
def crew(workers: int, listeners: Sequence[dict[str, socket.socket]] | None = None) -> Iterator[tuple[Crew, Orders]]:
    """Yield a crew of workers that all serve, and what orders them about; those have these listeners, or none."""
    orders = Orders(workers)
    signals = Signals([signal.SIGCHLD])
    found = Crew(
        [{} for _ in range(workers)] if listeners is None else listeners,
        orders.shared,
        lambda slot, part: Process(
            slot, part, lambda machine, channel, kept: Worker(orders, channel, part), lambda: None, signals, MACHINE
        ),
        lambda process, message: orders.heard.append((process, message)),
        orders.selector,
        Log(MACHINE.monotonic),
        MACHINE,
    )
    try:
        for slot in found.slots:
            found.start(slot)
        for process in [*found.processes()]:
            orders.say_and_hear(process, control.Ready())
        yield found, orders
    finally:
        found.kill_all()
        for slot in found.slots:
            slot.close_listeners()
        orders.close()
