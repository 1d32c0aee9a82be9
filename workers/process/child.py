"""A child of the supervisor: forked to do one thing, heard over a channel, killed and reaped."""

from __future__ import annotations

import selectors
import signal
from collections.abc import Callable, Sequence
from socket import socket

from workers.engine.machine import Birth, Machine, Program
from workers.engine.signals import Signals
from workers.ipc.control import Channel, Message

Make = Callable[[Machine, Channel, Sequence[socket]], Program]
"""Makes what a child is for, given the machine as it sees it, its end of the channel, and the sockets that it keeps."""


class Child:
    """One process, from its fork until it is reaped."""

    def __init__(
        self,
        name: str,
        make: Make,
        keeps: Sequence[socket],
        close_others: Callable[[], None],
        signals: Signals,
        machine: Machine,
    ) -> None:
        """Fork one that ends when what is made does. Raises OSError if there is no room for it.

        `name`, `keeps` and `close_others` are as Birth has them. It is killed when this process dies.
        """
        self.started_at = machine.monotonic()
        self.is_killed = False  # by us
        self._machine = machine
        self._selector: selectors.BaseSelector | None = None
        ours, theirs = machine.pair()

        def close() -> None:
            ours.close()
            close_others()

        def begin(machine: Machine, kept: Sequence[socket]) -> Program:
            return make(machine, Channel(kept[0]), kept[1:])

        try:
            with theirs:
                self.pid = machine.fork(Birth(name, begin, [theirs, *keeps], close), signals)
        except OSError:
            ours.close()
            raise
        self.channel = Channel(ours)

    def listen(self, selector: selectors.BaseSelector, hear: Callable[[], None]) -> None:
        """Have `hear` called when it has said something, or is gone."""
        assert self._selector is None, "it is heard once"
        self._selector = selector
        selector.register(self.channel, selectors.EVENT_READ, hear)

    def _listen_no_more(self) -> None:
        if self._selector is not None:
            self._selector.unregister(self.channel)
            self._selector = None

    def hear(self) -> tuple[Message, int | None] | None:
        """Return what it says next, and the descriptor that came with it, or None if that is all for now."""
        try:
            received = self.channel.receive()
        except BlockingIOError:
            return None
        if received is None:
            self._listen_no_more()  # it is dead, or as good as: SIGCHLD says so next
        return received

    def kill(self) -> None:
        """End it at once."""
        self.is_killed = True
        self._machine.kill(self.pid, signal.SIGKILL)

    def abort(self) -> None:
        """End it; it says on standard error where it hangs, if it can."""
        self._machine.kill(self.pid, signal.SIGABRT)

    def is_dead(self) -> bool:
        """Whether it has ended. Its pid is not free before it is reaped."""
        return self._machine.is_dead(self.pid)

    def reap(self) -> int:
        """Wait for its end; return its status, or the signal that ended it as a negative number."""
        status = self._machine.reap(self.pid)
        self._listen_no_more()
        self.channel.close()
        return status
