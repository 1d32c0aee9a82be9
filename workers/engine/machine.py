"""What the processes of a node ask of the machine that they run on: time, luck, readiness, sockets, other processes.

They ask the one that they are made with, or are given what they need of it: process/start.py makes the first of them
with MACHINE, which nobody else names, and a test with a machine that has a clock and a network of its own.
"""

from __future__ import annotations

import ctypes
import os
import random
import resource
import secrets
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from workers.engine.signals import Signals

if TYPE_CHECKING:
    from workers.core._core import Simulated

PR_SET_PDEATHSIG: Final = 1
PR_SET_NAME: Final = 15

FAILED: Final = 1
"""The status of a program that ends by an exception."""


class Program(Protocol):
    """What a process is for."""

    def run(self) -> int:
        """Do it from beginning to end; return the exit status."""


@dataclass(frozen=True, slots=True)
class Birth:
    """A process that is to be forked."""

    name: str
    """What `ps -o comm` and `top` show: at most 15 letters."""
    make: Callable[[Machine, Sequence[socket.socket]], Program]
    """Returns what it is for, given the machine as it sees it, and its copies of what it keeps."""
    keeps: Sequence[socket.socket]
    """Sockets of its parent's that it has, too."""
    close_others: Callable[[], None]
    """Closes, in the new process, the copies of what is its parent's alone."""


class Machine:
    """The real one."""

    def __init__(self) -> None:
        self.monotonic: Callable[[], float] = time.monotonic
        """Seconds, on a clock that all processes of the machine share."""
        self.unix: Callable[[], float] = time.time
        """Seconds since 1970, as whoever keeps the machine has set its clock: for people to read."""
        self.worked: Callable[[], float] = time.thread_time
        """Seconds that this thread has had a processor."""
        self.random: Callable[[], float] = random.random
        """From 0 to below 1."""
        self.token: Callable[[int], str] = secrets.token_hex
        """So many bytes that nobody can guess, in hex."""
        self.pid: Callable[[], int] = os.getpid
        """The number of this process."""
        self.kill: Callable[[int, int], None] = os.kill
        """Send a process a signal."""

    def nonce(self, size: int) -> bytes:
        """Return such bytes themselves."""
        return bytes.fromhex(self.token(size))

    def key(self) -> bytes:
        """Return 16 bytes for hashes, so that nobody can choose what collides."""
        return secrets.token_bytes(16)

    def beneath(self) -> Simulated | None:
        """Return what a core of this process asks for descriptors and the time; None for the kernel itself."""
        return None

    def adopt(self, fd: int) -> socket.socket:
        """Return the socket whose descriptor another process has passed on."""
        return socket.socket(fileno=fd)

    def keep_back(self, most: int) -> AbstractContextManager[object]:
        """Have this process go without so many descriptors, but within what this returns, which is entered any number
        of times. Where it may have few, it goes without fewer.
        """
        return _KeptBack(most)

    def tcp(self, family: socket.AddressFamily) -> socket.socket:
        """Return a TCP socket that does not block, to dial by."""
        return socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Return two connected ends that do not block. They keep packets whole, so a death cuts none in half."""
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in ends:
            end.setblocking(False)
        return ends

    def selector(self) -> selectors.BaseSelector:
        """Return one for a process that has few descriptors, each of which has something called."""
        return selectors.DefaultSelector()

    def signals(self, wanted: Iterable[signal.Signals], ignored: Iterable[signal.Signals] = ()) -> Signals:
        """Return what reads these signals, and none of those that are ignored, once it is opened."""
        return Signals(wanted, ignored)

    # Other threads and processes.

    def thread(self, name: str, call: Callable[[], None]) -> threading.Thread:
        """Have something done in a thread, which ends with this process at the latest; return it."""
        thread = threading.Thread(target=call, name=name, daemon=True)
        thread.start()
        return thread

    def event(self) -> threading.Event:
        """Return something that threads wait for."""
        return threading.Event()

    def fork(self, birth: Birth, signals: Signals) -> int:
        """Have a process born that is killed when this one dies; return its pid. Raises OSError.

        Until it has opened its own, it gets none of the `signals` that this one reads.
        """
        parent = os.getpid()
        sys.stderr.flush()
        # A signal to the child would be queued as ours, until it has opened its own queue.
        signals.hold()
        try:
            pid = os.fork()
            if not pid:
                self._be(birth, parent)
        finally:
            signals.release()
        return pid

    def _be(self, birth: Birth, parent: int) -> None:
        status = FAILED
        try:
            rename(birth.name)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(0)  # it died before the kernel was told
            birth.close_others()
            status = birth.make(self, birth.keeps).run()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def is_dead(self, pid: int) -> bool:
        """Whether a child has ended. Its pid is not free before it is reaped."""
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self, pid: int) -> int:
        """Wait for the end of a child; return its status, or the signal that ended it as a negative number."""
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)


class _KeptBack:
    """Descriptors above a limit that is lower than it was, by a quarter at most; who sets another moves them with it.

    Those that are open stay so when the limit is lowered again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._limit -= min(most, self._limit // 4)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._limit, hard))

    def __enter__(self) -> None:
        self._limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        raised = min(self._limit + min(self._most, self._limit // 3), hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))

    def __exit__(self, *_: object) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._limit, hard))


def rename(name: str) -> None:
    """Have `ps -o comm` and `top` show this process by that name, of at most 15 letters."""
    assert len(name) <= 15, "the kernel would cut it"
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())


MACHINE: Final = Machine()
