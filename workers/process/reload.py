"""A reload: what a node that runs can take over from new settings, and its workers replaced, one at a time.

Each is replaced by a successor that serves before the other goes.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from skywalker.config import SETTINGS, Config
from workers.process.crew import Crew
from workers.process.slot import Process, Slot, State

FIXED: Final = frozenset(
    (
        *("bind", "port", "pubsub", "pubsub_bind", "pubsub_port", "workers", "backlog"),  # sockets, and their number
        *("admin", "admin_bind", "admin_port", "unix"),
        *("state_dir", "name", "tokens", "advertise"),  # who the node is to others
        "user",  # there is no way back
    )
)
"""Keys that a node keeps as it was started with."""

FAILURES: Final = 2
"""Deaths in a row in a place that has nobody any more, after which the new settings are taken to be why."""


def merged(old: Config, new: Config) -> tuple[Config, list[str]]:
    """Return the settings to go on with, and the paths of those whose change must wait for a new start."""
    waiting = [setting.path for setting in SETTINGS if setting.key in FIXED and setting.of(old) != setting.of(new)]
    kept = {each.key: each.of(old) for each in SETTINGS if each.key in FIXED and not each.table}
    in_cluster = {each.key: each.of(old) for each in SETTINGS if each.key in FIXED and each.table == "cluster"}
    if old.bind != new.bind:
        # Where these are not told a host of their own they have followed a `bind` that is not taken over.
        in_cluster |= {key: getattr(old.cluster, key) for key in ("silk", "silk_pub")}
    cluster = dataclasses.replace(new.cluster, **in_cluster)  # type: ignore[arg-type]  # each is of its field's type
    config = dataclasses.replace(new, cluster=cluster, **kept)  # type: ignore[arg-type]  # the same
    assert all(each.of(config) == each.of(old) for each in SETTINGS if each.key in FIXED), "these are kept"
    return config, waiting


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
        assert self.failed is None, "it has ended"
        if self._slot is not None and not any(self._slot.processes()) and self._slot.deaths >= FAILURES:
            self.failed = self._slot  # there is none to go back to: one by the settings from before may start
            return False
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
        assert slot.successor is None, "one is replaced at a time"
        self._slot, self._before = slot, slot.worker
        slot.deaths = 0  # none by the new settings
        if self._before is not None:  # else the next one there is made of the new settings anyway
            self._crew.replace(slot, self._drain_s)
