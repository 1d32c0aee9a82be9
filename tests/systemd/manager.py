"""Plays the part of systemd for one service: listens for what it says, hands it listeners, and starts it anew.

Whatever the service does, it is gone with its `with` block, and so are its children.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from tests.helpers import eventually, time_factor, written_to

# It does not outlive this program, even one that is killed.
_MORTAL = ("setpriv", "--pdeathsig=KILL")

# As systemd does: the listeners are the descriptors from 3 on, and the variables name the process that executes.
_BECOME = """
import fcntl, os, sys
count = int(sys.argv[1])
kept = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 1000) for fd in sys.argv[2 : 2 + count]]
for number, fd in enumerate(kept):
    os.dup2(fd, 3 + number)
    os.close(fd)
for name in ("LISTEN_PID", "WATCHDOG_PID"):
    if name in os.environ:
        os.environ[name] = str(os.getpid())
command = sys.argv[2 + count :]
os.execv(command[0], command)
"""


@dataclass(frozen=True)
class Message:
    """What the service said at one time."""

    at: float  # on the monotonic clock
    pid: int
    fields: dict[str, str]


class Manager:
    """One service. `command` begins with the path of a program."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        listeners: Mapping[str, int] | None = None,
        watchdog_s: float | None = None,
        variables: Mapping[str, str] | None = None,
        abstract: bool = False,
    ) -> None:
        """`listeners` says how many there are by name, all of a name at one free port of 127.0.0.1."""
        self._command = [*command]
        self._watchdog_s = watchdog_s
        self._variables = dict(variables or {})
        self._messages: list[Message] = []
        self._stack = contextlib.ExitStack()
        self._directory = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._log: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # entered
        self.process: subprocess.Popen[bytes] | None = None
        self._mains: set[int] = set()
        self.listeners = {name: self._listen(count) for name, count in (listeners or {}).items()}
        self._socket = self._stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._address = f"@skywalker-test/{id(self)}/{os.getpid()}" if abstract else f"{self._directory}/notify"
        self._socket.bind(self._address.replace("@", "\0", 1) if abstract else self._address)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        with contextlib.suppress(OSError):  # nobody sends to it any more, so that recvmsg() has nothing to wait for
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._stack.close()

    # The service.

    def start(self) -> None:
        """Execute the command. until(READY="1") waits for it to serve."""
        fds = [each.fileno() for of_name in self.listeners.values() for each in of_name]
        names = [name for name, of_name in self.listeners.items() for _ in of_name]
        variables = {"NOTIFY_SOCKET": self._address}
        if fds:
            variables |= {"LISTEN_PID": "", "LISTEN_FDS": str(len(fds)), "LISTEN_FDNAMES": ":".join(names)}
        if self._watchdog_s is not None:
            variables |= {"WATCHDOG_PID": "", "WATCHDOG_USEC": str(round(self._watchdog_s * 1e6))}
        self.process = subprocess.Popen(
            [*_MORTAL, sys.executable, "-S", "-c", _BECOME, str(len(fds)), *map(str, fds), *self._command],
            pass_fds=fds, env=os.environ | self._variables | variables, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        self._mains.add(self.process.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the main process, and to it alone."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, within: float = 15.0) -> int:
        """Have it end, and return its status; AssertionError if it does not in time."""
        self.signal(signal.SIGTERM)
        return self.wait(within)

    def wait(self, within: float = 15.0) -> int:
        """Return the status with which it ends; AssertionError if it does not in time."""
        assert self.process is not None
        try:
            return self.process.wait(within * time_factor())
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the service did not end within {within} s:\n{self.log()}") from None

    def restart(self) -> None:
        """Stop it, start it, and wait until it serves. Its listeners stay, and whoever comes meanwhile waits there."""
        self.stop()
        self.start()
        self.until(READY="1")

    def kill(self) -> None:
        """Kill what is left of it, as systemd does with a whole control group."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    # What is to be seen of it.

    def address(self, name: str) -> tuple[str, int]:
        """Return where the listeners of a name listen."""
        host, port = self.listeners[name][0].getsockname()
        return host, port

    def messages(self) -> list[Message]:
        """Return what its main process, the one that runs now, has said so far; others are not heard."""
        assert self.process is not None
        return [each for each in self._messages if each.pid == self.process.pid]

    def strangers(self) -> list[Message]:
        """Return what was said by others than its main process, now or before: children, which should not speak."""
        return [each for each in self._messages if each.pid not in self._mains]

    def until(self, within: float = 20.0, since: float = 0.0, **fields: str) -> Message:
        """Return the first message with all these fields that came after `since`; wait for it if it has not come."""

        def found() -> Message | str | None:
            """Return the message, or that there will be none."""
            for each in self.messages():
                if each.at > since and fields.items() <= each.fields.items():
                    return each
            return None if self.process is None or self.process.poll() is None else "ended"

        try:
            message = eventually(found, within)
            assert isinstance(message, Message), "the service has ended"
        except AssertionError as error:
            error.add_note(f"the log of the service:\n{self.log()}")
            raise
        return message

    def times(self, **fields: str) -> list[float]:
        """Return when messages with all these fields came, on the monotonic clock."""
        return [each.at for each in self.messages() if fields.items() <= each.fields.items()]

    def log(self) -> str:
        """Return all that was written to standard error."""
        return written_to(self._log)

    def _listen(self, count: int) -> list[socket.socket]:
        found: list[socket.socket] = []
        port = 0
        for _ in range(count):
            listener = self._stack.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(1024)
            port = listener.getsockname()[1]
            found.append(listener)
        return found

    def _read(self) -> None:
        while True:
            data, ancillary, _, _ = self._socket.recvmsg(65536, socket.CMSG_SPACE(12))
            if not data:
                return
            at = time.monotonic()
            pid = next(struct.unpack("3i", value)[0] for _, kind, value in ancillary if kind == socket.SCM_CREDENTIALS)
            fields = dict(line.partition("=")[::2] for line in data.decode().splitlines())
            self._messages.append(Message(at, pid, fields))
