"""What must hold of the calls of a cluster's clients, said by who knows what was done to which node when.

A node that dies, hangs or cannot be reached may cost the calls of its own connections, and the
word of what became of a value: it is then handed on again, or its sender is told that nobody
came. While the nodes do not agree who lives, pairs may wait side by side at two of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests import history
from tests.chaos.agreement import Agreement, spans
from tests.chaos.client import Call, Connection
from tests.history import History, Rule, Violation, check

TOGETHER_S: Final = 1.0
"""Seconds that a pair may wait for each other once the nodes agree."""

ENDED: Final = ("killed", "drained")

SEEN_S: Final = 0.5
"""Seconds in which a client sees that its node is gone, besides those that any answer may take."""

AROUND_S: Final = 1.0
"""Seconds before and after a breach in which a report tells what else happened."""

EXCUSABLE: Final = frozenset((Rule.NOT_TOGETHER, Rule.ONE_SIDED, Rule.TWO_TAKERS))


@dataclass
class Verdict:
    """All that was noted of a run. `broken()` is what must not be."""

    calls: list[Call]
    connections: list[Connection]
    agreement: Agreement
    tolerance_s: float
    alone: frozenset[str] = frozenset()  # topics with one listener at a time
    excused: Counter[Rule] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._frozen = spans(self.agreement.events, "frozen", "thawed")
        self._gone: dict[str, list[float]] = defaultdict(list)
        for event in self.agreement.events:
            if event.kind in ENDED:
                self._gone[event.nodes[0]] += [event.start, event.end]
        self._known = {call.label: call for call in self.calls}

    def broken(self) -> list[str]:
        """Return every breach of a promise in words."""
        return [
            *self._by_the_rules(),
            *self._lost_for_no_reason(),
            *self._refused(),
            *self._missed(),
        ]

    @property
    def duplicates(self) -> int:
        """How many values of pairs, which have one listener at a time, were got more than once."""
        got = Counter(
            call.value for call in self.calls if call.topic in self.alone and call.kind == "recv" and call.value
        )
        return sum(count - 1 for count in got.values())

    # Rules of any history, and what excuses from them.

    def _by_the_rules(self) -> Iterator[str]:
        for violation in check(self._history(), tolerance=self.tolerance_s, missed_after=math.inf):
            if self._is_excused(violation):
                self.excused[violation.rule] += 1
            else:
                yield self._text(violation.rule, [self._known[call.id] for call in violation.calls])

    def _history(self) -> History:
        disturbed: dict[str, list[float]] = defaultdict(list)
        for call in self.calls:
            if call.outcome in ("lost", "open"):
                disturbed[call.connection.label].append(call.end or math.inf)
        return History([self._recorded(call) for call in self.calls], disturbed={**disturbed})

    def _recorded(self, call: Call) -> history.Call:
        recorded = call.recorded()
        if call.outcome == "lost":
            # A node that is frozen does not know that a client has hung up: its kernel takes values for it until then.
            thawed = [b for a, b in self._frozen.get(call.connection.node, ()) if a <= recorded.end <= b]
            recorded = dataclasses.replace(recorded, end=max([recorded.end, *thawed]) + self.tolerance_s)
        return recorded

    def _is_excused(self, violation: Violation) -> bool:
        first = self._known[violation.calls[0].id]
        if violation.rule is Rule.ANSWERED_LATE:
            # While its own node is frozen nobody answers, and it takes as long to see what has come.
            hung = sum(end - start for start, end in self._hung(first))
            return bool(hung) and (first.end or 0.0) <= first.start + first.timeout_s + hung + self.tolerance_s
        if violation.rule not in EXCUSABLE:
            return False
        calls = [self._known[call.id] for call in violation.calls]
        return not self.agreement.held(min(call.start for call in calls), max(call.end or 0.0 for call in calls))

    def _hung(self, call: Call) -> list[tuple[float, float]]:
        """Return the parts of a call's time in which its own node was frozen."""
        end = math.inf if call.end is None else call.end
        spans = self._frozen.get(call.connection.node, ())
        return [(max(a, call.start), min(b, end)) for a, b in spans if a < end and call.start < b]

    # Rules of a cluster.

    def _lost_for_no_reason(self) -> Iterator[str]:
        for each in self.connections:
            if each.lost is None or each.by_us:
                continue
            if not any(abs(at - each.lost) < SEEN_S + self.tolerance_s for at in self._gone.get(each.node, ())):
                yield f"connection {each.label} to {each.node} was lost at {each.lost:.3f}, though the node lived"

    def _refused(self) -> Iterator[str]:
        for call in self.calls:
            if call.outcome in ("met", "timeout", "unknown-outcome", "lost", "open") or (
                call.outcome == "cancelled" and call.cancelled
            ):
                continue
            drained = [event for event in self.agreement.events if event.kind == "drained"]
            seen_s = SEEN_S + self.tolerance_s
            if call.outcome == "draining" and any(
                call.connection.node in event.nodes and event.start <= (call.end or 0.0) <= event.end + seen_s
                for event in drained
            ):
                continue
            yield self._text(f"was answered {call.outcome} for no reason", [call])

    def _missed(self) -> Iterator[str]:
        """Two that waited on one topic, in one group of nodes that agreed, and did not meet anybody."""
        waited: dict[str, list[Call]] = defaultdict(list)
        for call in self.calls:
            if call.outcome == "timeout" and (call.end or 0.0) - call.start > TOGETHER_S:
                waited[call.topic].append(call)
        for calls in waited.values():
            sends = [call for call in calls if call.kind == "send"]
            listeners = [call for call in calls if call.kind != "send"]
            for send in sends:
                for listener in listeners:
                    together = self._together(send, listener)
                    if together > TOGETHER_S + self.tolerance_s:
                        yield self._text(f"waited for each other for {together:.3f} s of agreement", [send, listener])

    def _together(self, a: Call, b: Call) -> float:
        """Return the longest time in which both waited, and their nodes were of one mind."""
        start = max(a.start, b.start)
        end = min(call.start + call.timeout_s for call in (a, b))
        if end - start <= TOGETHER_S or self._hung(a) or self._hung(b):
            return 0.0
        return self.agreement.longest(start, end, {a.connection.node, b.connection.node})

    def _text(self, what: str, calls: list[Call]) -> str:
        start = min(call.start for call in calls) - AROUND_S
        end = max(call.end or call.start for call in calls) + AROUND_S
        topic = calls[0].topic
        near = [call for call in self.calls if call.topic == topic and call.start < end and (call.end or end) > start]
        lines = [what]
        near = [*calls, *[call for call in near if call not in calls][-16:]]
        for call in sorted(near, key=lambda call: call.start):
            ended = "never" if call.end is None else f"{call.end:.3f}"
            lines.append(
                f"  {'>' if call in calls else ' '} {call.start:.3f} to {ended} {call.kind} {call.value or ''} "
                f"({call.timeout_s:g} s) at {call.connection.node}: {call.outcome}"
            )
        return "\n".join([*lines, *self.agreement.around(start, end)])
