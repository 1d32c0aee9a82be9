"""A child of the supervisor gets all that it needs of the machine from that which it is made with."""

from __future__ import annotations

import signal
import socket

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


def _says_that_it_is_ready(channel: Channel) -> int:
    channel.send(Ready())
    return 3


def test_its_clock_and_its_channel_are_those_of_its_machine() -> None:
    machine = Watched()
    child = Child("test", _says_that_it_is_ready, Signals([signal.SIGCHLD]), machine)
    ours, _ = machine.made
    assert child.started_at == NOW
    assert child.channel.fileno() == ours
    assert child.reap() == 3
