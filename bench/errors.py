"""What can end a benchmark early. Each text is one line for whoever ran it."""

from __future__ import annotations


class BenchError(Exception):
    """The benchmark cannot go on, or what it measured is not to be trusted."""


class Unreachable(BenchError):
    """A connection cannot be made, or was lost while calls were in flight."""


class WrongReply(BenchError):
    """A reply is not, byte for byte, what a correct node answers."""


class Stalled(BenchError):
    """Calls that must have met are not answered."""
