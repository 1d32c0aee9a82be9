"""Pairs of clients that find owners by themselves, in programs of their own, and what must hold of their calls."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from tests.chaos.agreement import Agreement
from tests.chaos.pairs import TIMEOUTS_S
from tests.chaos.verdict import EXCUSABLE, TOGETHER_S
from tests.cluster.network import Machine
from tests.helpers import time_factor
from tests.history import Call, History, Kind, Outcome, Rule, Violation, check

END_S: Final = 3 * max(TIMEOUTS_S)
"""Seconds for what has begun to come to its end."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of the pairs of one program."""

    kind: str
    meetings: int
    longest_s: float
    history: History


class RoutedPairs:
    """A program of routed.py on a machine, for the length of a `with` block."""

    def __init__(self, kind: str, where: str, pairs: int, seed: int, machine: Machine) -> None:
        self._kind = kind
        self._file = tempfile.NamedTemporaryFile()  # noqa: SIM115  # closed by __exit__
        with machine.inside():
            # It ends with this process, however that ends.
            program = ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", "tests.chaos.routed"]
            self._process = subprocess.Popen(
                [*program, kind, where, str(pairs), str(seed), self._file.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip

    def __enter__(self) -> RoutedPairs:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._file.close()

    def stop(self) -> None:
        """Let nobody begin anything."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.stdin = None

    def result(self) -> Result:
        """Wait until all is over, and return it."""
        said, _ = self._process.communicate(timeout=END_S * time_factor())
        assert self._process.returncode == 0, f"the program of {self._kind} pairs failed"
        summary = json.loads(said)
        with open(self._file.name, "rb") as file:
            history = History.read([file])
        return Result(self._kind, summary["meetings"], summary["longest_s"], history)


class RoutedVerdict:
    """What must hold of the calls of such clients, which make them anew elsewhere when a connection is lost."""

    def __init__(self, history: History, agreement: Agreement, tolerance_s: float) -> None:
        self._history = history
        self._agreement = agreement
        self._tolerance_s = tolerance_s
        self.excused: Counter[Rule] = Counter()

    @property
    def duplicates(self) -> int:
        """How many values were got more than once."""
        got = Counter(call.value for call in self._history.calls if call.outcome is Outcome.VALUE)
        return sum(count - 1 for count in got.values())

    def broken(self) -> list[str]:
        """Return every breach of a promise in words."""
        return [*self._by_the_rules(), *self._refused(), *self._missed()]

    def _by_the_rules(self) -> Iterator[str]:
        for violation in check(self._history, tolerance=self._tolerance_s, missed_after=math.inf):
            # What is not acknowledged may reach a client that has given up on a node which did not answer.
            plain = violation.rule is Rule.TRUE_FOR_NOBODY and violation.calls[0].topic.startswith("plain")
            if (violation.rule in EXCUSABLE or plain) and not self._was_calm(violation):
                self.excused[violation.rule] += 1
            else:
                yield self._text(str(violation), violation.calls)

    def _was_calm(self, violation: Violation) -> bool:
        return self._agreement.held(
            min(call.start for call in violation.calls), max(call.end for call in violation.calls)
        )

    def _refused(self) -> Iterator[str]:
        for call in self._history.calls:
            if call.outcome is Outcome.ERROR and self._agreement.held(call.start, call.end):
                yield self._text(f"was refused for no reason: {call}", (call,))

    def _missed(self) -> Iterator[str]:
        waited: dict[str, list[Call]] = defaultdict(list)
        for call in self._history.calls:
            if call.outcome is Outcome.TIMEOUT and call.timeout > TOGETHER_S:
                waited[call.topic].append(call)
        for calls in waited.values():
            for send in (call for call in calls if call.kind is Kind.SEND):
                for other in (call for call in calls if call.kind is not Kind.SEND):
                    start, end = max(send.start, other.start), min(send.end, other.end)
                    together = self._agreement.longest(start, end)
                    if together > TOGETHER_S + self._tolerance_s:
                        yield self._text(f"waited for each other for {together:.3f} s of agreement", (send, other))

    def _text(self, what: str, calls: tuple[Call, ...]) -> str:
        start, end = min(call.start for call in calls) - 1, max(call.end for call in calls) + 1
        near = [call for call in self._history.calls if call.topic == calls[0].topic]
        near = [call for call in near if call.start < end and start < call.end]
        return "\n".join([what, *(f"  {call}" for call in near), *self._agreement.around(start, end)])
