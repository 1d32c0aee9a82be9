"""With which status a server process ends, and how soon a dead one is replaced."""

from __future__ import annotations

import signal
from typing import Final

OK: Final = 0
BUG: Final = 1
"""An exception nobody foresaw; the log has its trace."""
USAGE: Final = 2
"""A setting is wrong."""
ADDRESS: Final = 6
"""The address cannot be bound, or another server has it."""
BOOT: Final = 7
"""A worker ended before it served, so it would do so again: the node does not start."""
STATE: Final = 8
"""The state directory cannot be used."""

LONG_LIFE_S: Final = 30.0
"""A worker that served this long was healthy: its death counts as the first one."""
MAX_DELAY_S: Final = 1.0
"""Short, since calls wait for a worker that is not there and owns their topics; if it is the only one, connections do.
None wait longer than it takes to fork where the worker served, and somebody else killed it."""


def restart_delay(deaths: int) -> float:
    """Return the seconds to wait before the replacement after `deaths` in a row: none at first, then doubling."""
    assert deaths >= 0, "they are counted"
    return 0.0 if deaths <= 1 else min(MAX_DELAY_S, 0.1 * 2 ** (deaths - 2))


def is_from_outside(status: int) -> bool:
    """Whether a process ended by a signal that somebody else sends, as people and the kernel do that lacks memory."""
    return status in (-signal.SIGKILL, -signal.SIGTERM)


def how(status: int) -> str:
    """Return in words how a process ended, given its status, or a signal as a negative number."""
    if status >= 0:
        return f"status {status}"
    names: dict[int, str] = {number: number.name for number in signal.Signals}  # most of those for real time have none
    return f"signal {names.get(-status, -status)}"
