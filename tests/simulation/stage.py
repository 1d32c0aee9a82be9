"""A simulation as tests see it that block: their sockets wait, and time goes by only while they do.

While one is on, CLOCK of tests/helpers tells its time, and who dials the address of a node of it is given a Line.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from tests.helpers import CLOCK
from tests.simulation.ends import Address, End
from tests.simulation.kernel import Kernel
from tests.simulation.machine import Net
from tests.simulation.plan import ROOM

T = TypeVar("T")

HERE: Final = "10.1.0.1"
"""Where tests are."""

LOOK_S: Final = 5e-5
"""Seconds that it takes a test to see whether something has come."""

SEND_S: Final = 2e-6
BYTE_S: Final = 1e-9
"""Seconds that a test takes to write, and for each byte."""

TAKEN: Final = 4 << 20
"""Bytes that wait to be read by a test at most, as Linux lets buffers grow."""

LONGEST_S: Final = 100_000.0
"""Seconds that a test waits which does so for as long as it takes."""


class Stage:
    """One simulation. The same seed and the same test give the same run."""

    def __init__(self, seed: int) -> None:
        self.kernel = Kernel(seed)
        self.net = Net(self.kernel)
        self._hosts = 0

    def host(self) -> str:
        """Return the address of a machine that nobody has had yet."""
        self._hosts += 1
        return f"10.0.0.{self._hosts}"

    def has(self, address: Address) -> bool:
        """Whether something has listened there."""
        return address in self.net.doors

    def until(self, check: Callable[[], object], within: float = LONGEST_S) -> bool:
        """Have time go by until something is so, or so many seconds are over; return whether it is so."""
        end = self.kernel.now + within
        while not check():
            if not self.kernel.next(end):
                return bool(check())
        return True

    def sleep(self, seconds: float) -> None:
        """Have so much time go by."""
        self.kernel.go_on(seconds)

    def line(self, host: str = HERE) -> Line:
        """Return a socket of a machine, which is connected to nothing yet."""
        return Line(self, host)


class Waiting:
    """The test itself, which waits for what may come at one end."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def changed(self, _: int, at: float) -> None:
        """Have it look at that time."""
        self._kernel.at(at, lambda: None)


class Line:
    """A connection as a test has it, with as much of socket.socket as tests of nodes ask for."""

    family = socket.AF_INET

    def __init__(self, stage: Stage, host: str) -> None:
        self._stage = stage
        self.end = End(stage.net, room=TAKEN)
        self.end.host = host
        waiting: Any = Waiting(stage.kernel)
        self.end.pollers[waiting] = 0
        self._socket = stage.net.file(self.end, None)
        self._timeout_s: float | None = None
        self._resets = False

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def settimeout(self, seconds: float | None) -> None:
        self._timeout_s = seconds

    def setblocking(self, blocks: bool) -> None:
        self._timeout_s = None if blocks else 0.0

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        if (level, option) == (socket.SOL_SOCKET, socket.SO_RCVBUF):
            self.end.room = value + ROOM  # what the kernel of the node takes counts, too
        elif (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER):
            self._resets = True

    def bind(self, address: Address) -> None:
        self._socket.bind(address)

    def connect(self, address: Address) -> None:
        self._socket.connect_ex(address)
        if not self._stage.until(lambda: self.end.connected_at <= self._stage.kernel.now, self._patience()):
            raise TimeoutError("timed out")
        if self.end.error:
            raise OSError(self.end.error, os.strerror(self.end.error))  # of the class that this error has

    def getsockname(self) -> Address:
        return self._socket.getsockname()

    def getpeername(self) -> Address:
        return self._socket.getpeername()

    def recv(self, size: int) -> bytes:
        return self._once(lambda: self._socket.recv(size))

    def send(self, data: bytes) -> int:
        sent = self._once(lambda: self._socket.send(data))
        self._stage.sleep(SEND_S + sent * BYTE_S)
        return sent

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.send(bytes(view[:1_000_000])) :]

    def is_readable(self, within: float) -> bool:
        """Tell whether something, or an end, can be read now or comes in time."""
        mask = select.EPOLLIN | select.EPOLLERR | select.EPOLLHUP
        kernel = self._stage.kernel
        return self._stage.until(lambda: self.end.events(kernel.now) & mask, max(within, LOOK_S))

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)

    def close(self) -> None:
        if self._resets and self.end.peer is not None and not self.end.is_closed:
            self.end.peer.end(is_reset=True)
        self._socket.close()

    def _patience(self) -> float:
        return LONGEST_S if self._timeout_s is None else self._timeout_s

    def _once(self, call: Callable[[], T]) -> T:
        """Do something as soon as that is possible. Raises TimeoutError when it has waited for long enough."""
        kernel = self._stage.kernel
        end = kernel.now + self._patience()
        while True:
            try:
                return call()
            except BlockingIOError:
                if not self._timeout_s and self._timeout_s is not None:
                    raise
                if not kernel.next(end):
                    raise TimeoutError("timed out") from None


_on: list[Stage] = []


def current() -> Stage | None:
    """Return the one that is on."""
    return _on[-1] if _on else None


def socket_for(address: Address) -> socket.socket:
    """Return a new TCP socket by which to dial an address."""
    stage = current()
    if stage is None or not stage.has(address):
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    line: Any = stage.line()
    return line  # type: ignore[no-any-return]  # it does what is asked of one


def is_readable(sock: socket.socket, within: float) -> bool:
    """Tell whether something, or an end, can be read now or comes in time."""
    found: Any = sock
    if isinstance(found, Line):
        return found.is_readable(within)
    return bool(select.select([sock], [], [], within)[0])


@contextlib.contextmanager
def stage(seed: int | None = None) -> Iterator[Stage]:
    """Yield the one that is on, or a new one; its seed is by the name of the test unless it is given."""
    if _on:
        yield _on[-1]
        return
    if seed is None:
        seed = zlib.crc32(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0].encode())
    made = Stage(seed)
    _on.append(made)
    try:
        with CLOCK.replaced(made.kernel.time, made.sleep):
            yield made
    finally:
        _on.pop()
