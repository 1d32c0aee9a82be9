"""What must hold of all that the programs noted, given what was done to the nodes meanwhile."""

from __future__ import annotations

import json
import pickle
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from tests.chaos.agreement import Agreement
from tests.chaos.routed_pairs import RoutedVerdict
from tests.chaos.verdict import Verdict
from tests.helpers import time_factor
from tests.history import History, Rule, Violation
from tests.soak.roster import Shift

TOLERANCE_S: Final = 0.55
"""Seconds after its time in which a call must be answered: 0.3 s may pass until another node has had the last word,
and all nodes and clients share the cores of one machine."""

PATIENCE_S: Final = 0.5
"""Seconds after its time that a client of the library gives a node to have the last word on a call."""

LATELY_S: Final = 5.0
"""Seconds back from where a program saw that something was wrong to where that may have come about."""

EXCUSABLE: Final = ("again", "load", "cancelled")
"""What a program may see after something was done to a node; anything else it may not."""

SHOWN: Final = 2
"""Of each kind."""


HOPS: Final = 3
"""Who may be kept waiting for a core, one after the other, until a call is answered: a client, and two workers."""


class CrowdVerdict(Verdict):
    """It also knows of doors whose worker is dead, and of reloads."""

    def _is_excused(self, violation: Violation) -> bool:
        call = self._known[violation.calls[0].id]
        # Who has just connected is let in by the successor of the worker that died, and answered then.
        is_late = violation.rule is Rule.ANSWERED_LATE and call.end is not None
        if is_late and not self.agreement.held(call.start, call.end or 0.0):
            return True
        return super()._is_excused(violation)

    def _lost_for_no_reason(self) -> Iterator[str]:
        lost = {each.label: each.lost or 0.0 for each in self.connections}
        for text in super()._lost_for_no_reason():
            at = lost[text.split()[1]]
            # Who stays until the end of a drain is sent away.
            if not any(each.kind == "drained" and each.start < at < each.end + 1.0 for each in self.agreement.events):
                yield text


class Promises:
    """Judges shifts, from any thread."""

    def __init__(
        self,
        agreement: Callable[[], Agreement],
        all_calm: Callable[[], Agreement],
        late_s: Callable[[float, float], float],
    ) -> None:
        """The second does not count reloads as calm, which cost no call but may have connections closed.

        `late_s` says by how many seconds the machine was late between two times.
        """
        self.broken: list[str] = []
        self.kinds: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.calls = 0
        self._agreement = agreement
        self._all_calm = all_calm
        self._late_s = late_s
        self._lock = threading.Lock()

    def judge(self, shift: Shift) -> None:
        """Take in what a shift left behind."""
        with self._lock:
            for kind, text in self._broken(shift):
                self.kinds[f"{shift.program}: {kind}"] += 1
                if self.kinds[f"{shift.program}: {kind}"] <= SHOWN:
                    self.broken.append(f"{shift.program}: {text}")

    def _broken(self, shift: Shift) -> Iterator[tuple[str, str]]:
        """Yield what was broken: the kind, and all of it in words."""
        if shift.program == "crowd":
            if not shift.killed:  # it knows alone what it did
                yield from _by_kind(self._crowd(shift))
        elif shift.program.startswith("pairs"):
            yield from _by_kind(self._history(shift, ""))
        else:
            if shift.program == "visitors":
                yield from _by_kind(self._history(shift, ".history"))
            yield from self._complaints(shift)

    def _crowd(self, shift: Shift) -> Iterator[str]:
        calls, connections, complaints, late_s = pickle.loads(shift.file.read_bytes())
        self.calls += len(calls)
        verdict = CrowdVerdict(calls, connections, self._agreement(), TOLERANCE_S * time_factor() + HOPS * late_s)
        yield from map(str, complaints)
        yield from verdict.broken()
        self.excused.update({f"crowd: {rule.name}": count for rule, count in verdict.excused.items()})

    def _history(self, shift: Shift, suffix: str) -> Iterator[str]:
        file = shift.file.with_name(shift.file.name + suffix)
        if not file.exists():
            return  # it was killed before it began
        with file.open("rb") as lines:
            history = History.read([lines], end=shift.end)
        self.calls += len(history.calls)
        late_s = HOPS * self._late_s(shift.start, shift.end)
        verdict = RoutedVerdict(history, self._agreement(), TOLERANCE_S * time_factor() + PATIENCE_S + late_s)
        yield from verdict.broken()
        self.excused.update({f"{shift.program}: {rule.name}": count for rule, count in verdict.excused.items()})

    def _complaints(self, shift: Shift) -> Iterator[tuple[str, str]]:
        if not shift.file.exists():
            return
        for line in shift.file.read_text().splitlines():
            said: dict[str, Any] = json.loads(line)
            since = said["at"] - said.get("seconds", LATELY_S)
            if said["rule"] in EXCUSABLE and not self._all_calm().held(since, said["at"]):
                self.excused[f"{shift.program}: {said['rule']}"] += 1
            else:
                around = self._agreement().around(since, said["at"])
                yield said["rule"], "\n".join([f"{said['what']} at {said['at']:.3f}", *around])


def _by_kind(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each text after what it says in general: what comes before its numbers and names."""
    for text in texts:
        yield re.split(r"[:\[\d\n]", text, maxsplit=1)[0].strip(), text
