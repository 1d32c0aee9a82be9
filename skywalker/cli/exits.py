"""With which status a command ends. `skywalker serve` has more of its own."""

from __future__ import annotations

from typing import Final

from skywalker.errors import (
    ConfigError,
    HandlerFailed,
    LocalProtocolError,
    NobodyHandles,
    NoSuchNode,
    OutcomeUnknown,
    RequestError,
    SkywalkerError,
    TimedOut,
    Unreachable,
)

OK: Final = 0
"""Delivered, published, received or answered."""
FAILED: Final = 1
"""Anything else: standard output cannot be written, the demo lost a line."""
USAGE: Final = 2
"""The command line, a setting or a value is wrong; nothing was sent."""
TIMED_OUT: Final = 3
"""Nobody came in time, or the node did not acknowledge or reply."""
UNREACHABLE: Final = 4
"""No node answers."""
REFUSED: Final = 5
"""The node, or the protocol's limits, refused the call; of Silk, also that nobody there could do it."""
UNKNOWN: Final = 9
"""The value may have been taken, and nobody knows whether it was."""
INTERRUPTED: Final = 130
"""Ctrl-C."""

_STATUS: Final[tuple[tuple[type[SkywalkerError], int, str], ...]] = (
    (TimedOut, TIMED_OUT, "timed-out"),
    (Unreachable, UNREACHABLE, "unreachable"),
    (OutcomeUnknown, UNKNOWN, "unknown-outcome"),
    (RequestError, REFUSED, "refused"),
    (HandlerFailed, REFUSED, "refused"),
    (NobodyHandles, REFUSED, "refused"),
    (NoSuchNode, REFUSED, "refused"),
    (LocalProtocolError, USAGE, "not-sent"),
    (ConfigError, USAGE, "not-sent"),
)


def of(error: SkywalkerError) -> int:
    """Return the exit status for an error."""
    return next((status for cls, status, _ in _STATUS if isinstance(error, cls)), FAILED)


def word(error: SkywalkerError) -> str:
    """Return the "status" of an error in the output for scripts."""
    return next((word for cls, _, word in _STATUS if isinstance(error, cls)), "failed")
