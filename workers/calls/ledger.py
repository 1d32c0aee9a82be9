"""What one worker holds for clients: how many calls wait, wherever that is, and the memory of all that it keeps."""

from __future__ import annotations

from typing import Final

from skywalker.errors import Busy
from skywalker.limits import Limits
from workers.stats import metrics
from workers.stats.counters import Counters

WAITING: Final = metrics.WAITING.at


class Ledger:
    """Counts it, since some limits are for all connections of a worker together.

    `bytes_held` is the memory of our clients' calls that wait, of other workers' calls here, of subscriptions, of what
    is published and not acked, and of replies to those who are slow to read.
    """

    __slots__ = ("_counters", "_max_waiting_bytes", "bytes_held", "calls_held", "most_bytes_held")

    def __init__(self, limits: Limits, counters: Counters) -> None:
        self.calls_held = 0
        self.bytes_held = 0
        self.most_bytes_held = 0  # since memory was last given back
        self._max_waiting_bytes = limits.waiting_bytes
        self._counters = counters

    def admit(self, cost: int) -> None:
        """Raise Busy if there is no memory for one more call that waits and takes so many bytes."""
        limit = self._max_waiting_bytes
        held = self.bytes_held + cost
        if held > limit:
            raise Busy(f"the calls that wait take {limit} bytes", {"limit": "waiting_bytes", "value": limit})
        if held > self.most_bytes_held:
            self.most_bytes_held = held

    def is_full(self) -> bool:
        """Return whether there is more already than may wait."""
        return self.bytes_held > self._max_waiting_bytes

    def add(self, size: int) -> None:
        """So many bytes more are held."""
        self.bytes_held += size

    def remove(self, size: int) -> None:
        """So many bytes are held no more."""
        self.bytes_held -= size
        assert self.bytes_held >= 0, "no more is given back than was held"

    def add_call(self, kind: int, cost: int) -> None:
        """A client's call waits from now on, of one of metrics.KINDS."""
        self.calls_held += 1
        self._counters.cells[WAITING + kind] += 1
        self.bytes_held += cost

    def remove_call(self, kind: int, cost: int) -> None:
        """It waits no more."""
        assert self.calls_held > 0, "it was added"
        self.calls_held -= 1
        self._counters.cells[WAITING + kind] -= 1
        self.bytes_held -= cost
        assert self.bytes_held >= 0, "no more is given back than was held"
