"""When a silent node is to be asked whether it lives, and when it is to be taken for dead."""

from __future__ import annotations

from typing import Final

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
