"""What is done to the workers of a node while it serves, and for which of its slots that is an excuse, and when."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tests.helpers import eventually
from tests.workers.processes import Node

LONGEST_STOP_S: Final = 0.3
BOOT_S: Final = 0.5
"""From the fork of a successor to its first answers, on a machine that is kept busy."""

Span = tuple[float, float]


@dataclass(slots=True)
class Disturbance:
    """Something done to a worker; `slot` is known only once that worker has ended."""

    kind: str  # killed, stopped or drained
    pid: int
    start: float
    end: float  # from when on it is not felt any more
    slot: int = -1

    def __str__(self) -> str:
        return f"worker {self.slot} (pid {self.pid}) {self.kind} at {self.start:.3f}, felt until {self.end:.3f}"


@dataclass(slots=True)
class Death:
    """A worker's end as its node logged it."""

    slot: int
    pid: int
    at: float
    restart_s: float


class Disturber:
    """Hits random workers at random times, and remembers it."""

    def __init__(self, node: Node, dice: random.Random, at: Callable[[float, Callable[[], None]], None]) -> None:
        self.disturbances: list[Disturbance] = []
        self._node = node
        self._dice = dice
        self._at = at
        self._active = True

    def start(self) -> None:
        """Begin, soon."""
        self._at(time.monotonic() + 0.5, self._act)

    def stop(self) -> None:
        """Do nothing more, but for what was begun: a stopped worker goes on."""
        self._active = False

    def _act(self) -> None:
        if not self._active:
            return
        self._at(time.monotonic() + self._dice.uniform(0.2, 0.9), self._act)
        ending = {each.pid for each in self.disturbances if each.kind != "stopped"}
        targets = [pid for pid in self._node.workers() if pid not in ending]
        self._dice.shuffle(targets)
        what = self._dice.choices((self._kill, self._kill_two, self._stop, self._drain), (4, 1, 5, 4))[0]
        if targets:
            what(targets)

    def _kill(self, targets: list[int]) -> None:
        self._signal("killed", targets[0], signal.SIGKILL)

    def _kill_two(self, targets: list[int]) -> None:
        for pid in targets[:2]:
            self._signal("killed", pid, signal.SIGKILL)

    def _drain(self, targets: list[int]) -> None:
        self._signal("drained", targets[0], signal.SIGTERM)

    def _stop(self, targets: list[int]) -> None:
        hit = self._signal("stopped", targets[0], signal.SIGSTOP)
        hit.end += self._dice.uniform(0.01, LONGEST_STOP_S)

        def go_on() -> None:
            with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
                os.kill(hit.pid, signal.SIGCONT)
            hit.end = time.monotonic()

        self._at(hit.end, go_on)

    def _signal(self, kind: str, pid: int, number: signal.Signals) -> Disturbance:
        now = time.monotonic()
        hit = Disturbance(kind, pid, now, now)
        self.disturbances.append(hit)
        os.kill(pid, number)  # not reaped as long as the supervisor has its pid: at worst it is a zombie
        return hit

    def resolve(self) -> list[Death]:
        """Learn which slots were hit. It takes the death of every worker to be told, so this is the end of the node's.

        Returns the deaths up to now, not those that this brings about.
        """
        known = len(self._node.events("worker-ended"))
        last = self._node.workers()
        for pid in last:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: len(self._node.events("worker-ended")) == known + len(last))
        ended = self._deaths()
        slots = {death.pid: death.slot for death in ended}
        by_pid = {death.pid: death for death in ended}
        for each in self.disturbances:
            each.slot = slots[each.pid]
            if each.kind != "stopped":
                death = by_pid[each.pid]
                each.end = death.at + death.restart_s + BOOT_S
        return [death for death in ended if death.pid not in last]

    def _deaths(self) -> list[Death]:
        to_monotonic = time.monotonic() - time.time()
        return [
            Death(
                int(fields["worker"]),
                int(fields["pid"]),
                datetime.fromisoformat(fields["time"]).timestamp() + to_monotonic,
                float(fields["restart_s"]),
            )
            for fields in self._node.events("worker-ended")
        ]


class Excuses:
    """When which slot was disturbed."""

    def __init__(self, disturbances: list[Disturbance]) -> None:
        self._spans: dict[int, list[Span]] = {}
        for each in disturbances:
            self._spans.setdefault(each.slot, []).append((each.start, each.end))

    def during(self, slot: int | None, start: float, end: float) -> list[Span]:
        """Return the disturbances of a slot that were felt between the two times. A slot that is None may be any."""
        spans = self._spans.get(slot, ()) if slot is not None else itertools.chain.from_iterable(self._spans.values())
        return [(a, b) for a, b in spans if a < end and start < b]

    def any(self, slots: set[int | None], start: float, end: float) -> bool:
        """Return whether one of the slots was disturbed between the two times."""
        return any(self.during(slot, start, end) for slot in slots)

    def disturbed(self, slot: int | None, start: float, end: float) -> float:
        """Return for how many seconds between the two times a slot was disturbed, at most."""
        return sum(min(b, end) - max(a, start) for a, b in self.during(slot, start, end))

    def undisturbed(self, slots: set[int | None], start: float, end: float) -> float:
        """Return the longest time in a row, in seconds, between the two times in which none of them was disturbed."""
        spans = sorted(span for slot in slots for span in self.during(slot, start, end))
        longest, at = 0.0, start
        for a, b in spans:
            longest = max(longest, a - at)
            at = max(at, b)
        return max(longest, end - at)
