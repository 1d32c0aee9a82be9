"""What a node tells the manager that started it, as sd_notify(3) has it: that it serves, that it lives, how it does."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import MutableMapping
from typing import Final

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG_USEC: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"


class Notifier:
    """Says it, or says nothing where no manager listens. Never blocks, and never raises: nobody depends on it."""

    def __init__(self, sock: socket.socket | None = None, address: str = "") -> None:
        """`address` is where the manager listens."""
        self._socket = sock
        self._address = address

    @staticmethod
    def from_environ(environ: MutableMapping[str, str]) -> Notifier:
        """Return one for the manager that the environment names, if any; children find nothing of it there."""
        address = environ.get(SOCKET, "")
        for variable in (SOCKET, WATCHDOG_USEC, WATCHDOG_PID):
            environ.pop(variable, None)
        if not address.startswith(("/", "@")):
            return Notifier()
        if address.startswith("@"):
            address = "\0" + address[1:]
        return Notifier(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), address)

    def ready(self) -> None:
        """It serves; or it does again, with new settings."""
        self._say("READY=1")

    def reloading(self) -> None:
        """Its settings are read again; ready() says that this is over."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._say("RELOADING=1", f"MONOTONIC_USEC={now_us}")

    def takes(self, within_s: float) -> None:
        """What it does just now takes `within_s` at most, whatever the manager allows otherwise."""
        self._say(*_extended(within_s))

    def stopping(self, within_s: float = 0.0) -> None:
        """It ends, which takes `within_s` at most, whatever the manager allows otherwise."""
        self._say("STOPPING=1", *_extended(within_s))

    def status(self, text: str) -> None:
        """How it does, in one line."""
        self._say("STATUS=" + " ".join(text.split()))

    def alive(self) -> None:
        """It lives. The manager may end it if it does not hear so for too long."""
        self._say("WATCHDOG=1")

    def close(self) -> None:
        """Say nothing more: a child that inherits this is not who is meant."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _say(self, *lines: str) -> None:
        assert all("=" in line and "\n" not in line for line in lines), "each is one assignment"
        if self._socket is not None:
            # It may be gone, or have more to read than it can keep.
            with contextlib.suppress(OSError):
                self._socket.sendto("\n".join(lines).encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL, self._address)


def _extended(within_s: float) -> tuple[str, ...]:
    return (f"EXTEND_TIMEOUT_USEC={round(within_s * 1e6)}",) if within_s else ()
