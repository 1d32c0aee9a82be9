"""Workers replaced one at a time, each by a successor that serves before the other goes."""

from __future__ import annotations

from workers.process.crew import Crew
from workers.process.lifecycle import State
from workers.process.slot import Process, Slot


class Rollout:
    """One round through all places of a node; ends early if a successor does not come to serve."""

    def __init__(self, crew: Crew, drain_s: float) -> None:
        self._crew = crew
        self._drain_s = drain_s
        self._left = [*crew.slots]
        self._slot: Slot | None = None  # where it is
        self._before: Process | None = None
        self.failed: Slot | None = None

    def go_on(self) -> bool:
        """Take the next step that can be taken; return whether there are more to come."""
        while self._is_done():
            if self._slot is not None and self._before is not None and self._slot.worker is self._before:
                self.failed = self._slot
                return False
            if not self._left:
                return False
            self._begin(self._left.pop(0))
        return True

    def _is_done(self) -> bool:
        """Whether in this place there is one worker again, old or new, and serves."""
        slot = self._slot
        if slot is None:
            return True
        worker = slot.worker
        serves = worker is not None and worker.state is State.SERVING
        return serves and slot.successor is None and slot.outgoing is None

    def _begin(self, slot: Slot) -> None:
        self._slot, self._before = slot, slot.worker
        if self._before is not None:  # else the next one there is made of the new settings anyway
            self._crew.replace(slot, self._drain_s)
