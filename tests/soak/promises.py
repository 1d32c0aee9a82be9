"""What must hold of all that the programs noted, given what was done to the nodes meanwhile."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.promises import record
from tests.promises.history import History, Stall, Trouble
from tests.promises.rules import broken
from tests.soak.roster import Shift

LATELY_S: Final = 5.0
"""Seconds back from where a program saw that something was wrong to where that may have come about."""

EXCUSABLE: Final = ("load", "cancelled")
"""What a program may see after something was done to a node; anything else it may not."""

EXCUSES: Final = ("kill", "reload")
"""What that is."""

SHOWN: Final = 2
"""Of each kind."""


class Promises:
    """Judges shifts, from any thread."""

    def __init__(self, nodes: int, troubles: Callable[[], list[Trouble]], stalls: Callable[[], list[Stall]]) -> None:
        """`troubles` were done to so many nodes, and `stalls` are the machine's, up to now."""
        self.broken: list[str] = []
        self.kinds: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.calls = 0
        self._nodes = nodes
        self._troubles = troubles
        self._stalls = stalls
        self._lock = threading.Lock()

    def judge(self, shift: Shift) -> None:
        """Take in what a shift left behind."""
        with self._lock:
            for kind, text in [*self._by_the_rules(shift), *self._complaints(shift)]:
                self.kinds[f"{shift.program}: {kind}"] += 1
                if self.kinds[f"{shift.program}: {kind}"] <= SHOWN:
                    self.broken.append(f"{shift.program}: {text}")

    def _by_the_rules(self, shift: Shift) -> Iterator[tuple[str, str]]:
        """Yield what was broken: the rule, and all of it in words."""
        file = shift.file.with_name(f"{shift.file.name}.history")
        if not file.exists():
            return  # a program that is killed takes along what it knew
        connections, stalls = record.load(file)
        history = History(connections, self._nodes, self._troubles(), stalls=[*stalls, *self._stalls()])
        self.calls += sum(1 for _ in history.calls())
        for line in broken(history):
            yield line.split(":")[0], line

    def _complaints(self, shift: Shift) -> Iterator[tuple[str, str]]:
        if not shift.file.exists():
            return
        for line in shift.file.read_text().splitlines():
            said: dict[str, Any] = json.loads(line)
            since = said["at"] - said.get("seconds", LATELY_S)
            near = [each for each in self._troubles() if each.touches(since, said["at"])]
            if said["rule"] in EXCUSABLE and any(each.kind in EXCUSES for each in near):
                self.excused[f"{shift.program}: {said['rule']}"] += 1
            else:
                yield said["rule"], f"{said['what']} at {said['at']:.3f}, near {near}"
