"""How the workers of one node are met: which dials there may be, when, and to which worker.

At a node that steers, see `skywalker.steering`, one dial meets each worker. Behind a router that
changes the port, or at a node that does not steer, a dial meets a random one; then we dial until
all are met, with a limit.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from skywalker.address import Address
from skywalker.clients.line import Line

RETRY_S: Final = 600.0
"""Seconds without a new attempt after one that failed."""

REDIAL_S: Final = 1.0
"""Seconds after which a direct line that was lost is made anew, once: a worker that died is replaced by then."""

DRAINED_S: Final = 15.0
"""The same where the worker drains, for which it has ten seconds unless told otherwise."""

GROWTH: Final = 8
"""How many times longer than the last time the next attempt is waited for, at a node that may just be restarting."""


class Dial(NamedTuple):
    """A connection that is wanted: to this worker of so many, by its source port; None is as well met by any."""

    worker: int | None
    workers: int
    node: str = ""  # the node's id, empty if it is not yet known
    address: Address | None = None  # a numeric one; None for that of the main line


class Way:
    """One node as far as connecting to it goes. There is one attempt at a time."""

    __slots__ = ("_dials", "_failures", "_redialled", "is_dialling", "not_before", "steering", "workers")

    def __init__(self, workers: int, steering: bool) -> None:
        self.workers = workers
        self.steering = steering
        self.is_dialling = False  # from the dial up to the greeting, or the failure
        self.not_before = 0.0  # no dial at all, since one failed
        self._failures = 0  # in a row
        self._redialled: dict[int, float] = {}  # by worker: when its line was last made anew
        self.renew()

    def renew(self) -> None:
        """Allow as many dials as it takes to meet every worker by chance, most likely."""
        self._dials = 2 * self.workers + 8

    def dial(self, worker: int) -> int | None:
        """An attempt begins that is for this worker: return which one to steer to, None for any."""
        self._dials -= 1
        self.is_dialling = True
        return worker if self.steering else None

    @property
    def is_exhausted(self) -> bool:
        """Whether the limit of dials is reached."""
        return self._dials <= 0

    def met(self) -> None:
        """An attempt has met a worker."""
        self.is_dialling = False
        self._failures = 0

    def failed(self, now: float) -> None:
        """What was tried will not do for long."""
        self._rest(now, RETRY_S)

    def unanswered(self, now: float) -> None:
        """An attempt came to nothing, as it does at a node that restarts."""
        self._rest(now, min(RETRY_S, REDIAL_S * GROWTH**self._failures))
        self._failures = min(self._failures + 1, 16)

    def lost(self, line: Line, worker: int, now: float) -> None:
        """A line to a worker is lost, or was not answered on the way to becoming one."""
        after = DRAINED_S if line.leaving is not None else REDIAL_S if line.takes_calls else RETRY_S
        if now - self._redialled.get(worker, -math.inf) < RETRY_S:
            after = RETRY_S
        self._redialled[worker] = now
        self.not_before = max(self.not_before, now + after)
        self.renew()

    def _rest(self, now: float, seconds: float) -> None:
        self.is_dialling = False
        self.not_before = now + seconds
        self.renew()
