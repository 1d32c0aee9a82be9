"""A command on a pseudo-terminal: what a person would see, and press."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

from tests.cli.running import SKYWALKER, environment
from tests.helpers import eventually, time_factor


class Terminal:
    """What was shown so far, as bytes with their escapes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.shown = b""

    def press(self, key: bytes) -> None:
        """Type something."""
        os.write(self._fd, key)

    def shows(self, text: bytes, within: float = 10.0) -> None:
        """Return once `text` was shown."""

        def check() -> bool:
            self._read()
            return text in self.shown

        eventually(check, within)

    def read_to_the_end(self, within: float = 30.0) -> bytes:
        """Return all that is shown until the command closes the terminal."""
        deadline = time.monotonic() + within * time_factor()
        while self._read():
            assert time.monotonic() < deadline, self.shown
        return self.shown

    def _read(self) -> bool:
        if select.select([self._fd], [], [], 0.05)[0]:
            try:
                data = os.read(self._fd, 65536)
            except OSError:  # how a terminal tells that its last user has gone
                return False
            self.shown += data
            return bool(data)
        return True


@contextmanager
def on_terminal(*arguments: str, columns: int = 80, **variables: str) -> Iterator[tuple[Terminal, Popen[bytes]]]:
    """Start `skywalker` as the one program of a terminal, and yield both."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = Popen(
        [SKYWALKER, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(**{"TERM": "xterm", "COLUMNS": "", "NO_COLOR": "", "PYTHONUTF8": "1"} | variables),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - or Ctrl-C would not reach it
    )
    os.close(theirs)
    try:
        yield Terminal(ours), process
    finally:
        process.kill()
        process.wait()
        os.close(ours)
