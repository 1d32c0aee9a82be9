"""One connection as a core sees it: what is to leave, what came half, whether the other end is silent.

Knows no socket and no clock. A driver keeps its socket in `shell`, and looks at every stream that is
in the list of those touched: it writes what output() returns, and closes where `hang_up` says why.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any, Final

PROBE_S: Final = 5.0
"""Seconds of silence after which a node that owes an answer is pinged, and then again until it is taken for dead."""


class Silence:
    """How long a node has said nothing. Times are seconds on any one clock."""

    __slots__ = ("_pinged", "_since")

    def __init__(self) -> None:
        self._since = 0.0
        self._pinged = False

    def broken(self, now: float) -> None:
        """The node spoke, or nothing was expected of it until now."""
        self._since = now
        self._pinged = False

    def pinged(self, now: float) -> None:
        """The node was asked whether it lives."""
        self._since = now
        self._pinged = True

    def has_lasted(self, now: float, seconds: float) -> bool:
        """Whether the node has said nothing for so many seconds."""
        return now - self._since >= seconds

    @property
    def means_death(self) -> bool:
        """Whether the end of the present silence is the end of the node, and not the time for a ping."""
        return self._pinged

    def wait(self, now: float) -> float:
        """Return the seconds until the silence has lasted too long, at least 0."""
        return max(0.0, self._since + PROBE_S - now)


class Stream:
    """A connection, from before it is made until it is lost; the next one is another stream."""

    __slots__ = (
        "_out", "_silence", "_touched", "hang_up", "is_full", "output_bytes", "shell", "tail", "taken", "unwritten",
        "waiting",
    )  # fmt: skip

    def __init__(self, touched: MutableSequence[Any]) -> None:
        self.shell: Any = None
        self.hang_up = ""  # why the driver must close it, once it must
        self.is_full = False  # whether nothing more is to be read for now
        self.waiting = 0  # answers that are owed
        self.output_bytes = 0  # that output() is to return: what a driver bounds
        self.taken = 0  # bytes that output() has returned
        self.unwritten = 0  # of those, that surely never left: the driver says so of a connection that is lost
        self.tail = b""  # the beginning of a frame
        self._out: list[bytes] = []
        self._silence = Silence()
        self._touched = touched

    def write(self, data: bytes) -> None:
        """Have one or more whole frames written."""
        if not self._out:
            self._touched.append(self)
        self._out.append(data)
        self.output_bytes += len(data)

    def output(self) -> bytes:
        """Return what is to be written, and forget it."""
        data = b"".join(self._out)
        self._out.clear()
        self.output_bytes = 0
        self.taken += len(data)
        return data

    def end(self, why: str) -> None:
        """Have the driver close the connection; the first reason counts."""
        if not self.hang_up:
            self.hang_up = why
            self._touched.append(self)

    def heard(self, now: float) -> None:
        """The node wrote."""
        self._silence.broken(now)

    def wait_for_probe(self, now: float) -> float | None:
        """Return the seconds until silence calls for a tick, None while it does not matter."""
        return None if not self.waiting or self.hang_up else self._silence.wait(now)
