"""Signals as something a loop can read. The handlers do nothing; the kernel's note of each signal is queued."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterable
from types import FrameType


class Signals:
    """The chosen signals of this process, readable through a file descriptor between open() and close()."""

    def __init__(self, wanted: Iterable[signal.Signals], ignored: Iterable[signal.Signals] = ()) -> None:
        self._wanted = tuple(wanted)
        self._ignored = tuple(ignored)

    def open(self) -> None:
        """Take over the signals, from any earlier owner too: after a fork they still land in the parent's queue."""
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in self._wanted:
            signal.signal(number, _queued)
        for number in self._ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def hold(self) -> None:
        """Keep the signals waiting in the kernel until release(); in a child, until another owner's open()."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self._wanted)

    def release(self) -> None:
        """Let them come again."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._wanted)

    def close(self) -> None:
        """Give the descriptors back. The signals themselves stay handled."""
        if signal.set_wakeup_fd(-1) not in (self._writer.fileno(), -1):
            raise RuntimeError("the signals were taken over by another owner")
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        """Return the descriptor that is readable when signals are queued."""
        return self._reader.fileno()

    def read(self) -> list[int]:
        """Return the numbers of the signals that came since the last call, oldest first."""
        try:
            return list(self._reader.recv(1024))
        except BlockingIOError:
            return []


def _queued(number: int, frame: FrameType | None) -> None:
    """Python calls this later, in the main thread; by then the wake-up descriptor has the number."""
