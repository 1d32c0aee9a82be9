"""A child of the supervisor gets all that it needs of the machine from that which it is made with."""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence

from workers.engine.machine import Machine
from workers.engine.signals import Signals
from workers.ipc.control import Channel, Ready
from workers.process.child import Child

NOW = 1234.5


class Watched(Machine):
    """The real one, with a clock that stands, which knows the pairs that it has made."""

    def __init__(self) -> None:
        super().__init__()
        self.monotonic = lambda: NOW
        self.made: list[int] = []

    def pair(self) -> tuple[socket.socket, socket.socket]:
        ends = super().pair()
        self.made += [end.fileno() for end in ends]
        return ends


class Brief:
    """Says that it is ready, and ends."""

    def __init__(self, machine: Machine, channel: Channel, kept: Sequence[socket.socket]) -> None:
        self._channel = channel

    def run(self) -> int:
        """Say so."""
        self._channel.send(Ready())
        return 3


def test_its_clock_and_its_channel_are_those_of_its_machine() -> None:
    machine = Watched()
    child = Child("test", Brief, [], lambda: None, Signals([signal.SIGCHLD]), machine)
    ours, _ = machine.made
    assert child.started_at == NOW
    assert child.channel.fileno() == ours
    assert child.reap() == 3
