"""What must hold of the calls of a crowd beyond what tests.history checks, said by who knows which worker was hit when.

A worker that is hit may only cost the calls of its own connections. There is one leave. A worker that ends between
handing a value on and saying so leaves the sender without its `true`: the value is then handed on again, or its sender
is told that nobody came though somebody did. This is at-least-once, and is excused only while a worker that the two
calls had to do with was disturbed. A sender that is told that it is unknown is told the truth, whatever became of it;
how many these are is counted, since a machine as busy as this one makes some.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.client import Call, Connection
from tests.chaos.disturbance import Death, Disturbance, Excuses
from tests.history import History

CAPABLE_OF_S: Final = 0.25
"""Seconds that an answer may take beyond its call's own time: 50 ms are promised on a machine that is not saturated,
and here the workers share two cores with the crowd."""

MISSED_S: Final = 0.4
"""Seconds that a sender and a listener may wait side by side, undisturbed."""

OUTCOMES: Final = frozenset({"met", "timeout", "cancelled", "draining", "lost", "unknown-outcome"})


@dataclass(slots=True)
class Violation:
    """A rule, how it was broken, and the calls that did."""

    rule: str
    text: str
    calls: list[Call]


@dataclass
class Judge:
    """Holds all that was noted of a run; `violations()` is the verdict."""

    calls: list[Call]
    connections: list[Connection]
    disturbances: list[Disturbance]
    deaths: list[Death]
    owner: Callable[[str], int]
    tolerance_s: float
    missed_s: float = MISSED_S
    sends: dict[str, Call] = field(default_factory=dict)
    got: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))
    listeners: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.excuses = Excuses(self.disturbances)
        for call in self.calls:
            if call.kind == "send":
                assert call.value is not None
                self.sends[call.value] = call
            else:
                self.listeners[call.topic].append(call)
                if call.value is not None:
                    self.got[call.value].append(call)

    def violations(self) -> list[Violation]:
        """Return every breach of a rule, those of one rule together."""
        return [
            *self._late(),
            *self._refused_for_no_reason(),
            *self._connections_lost_for_no_reason(),
            *self._values_of_senders_that_were_told_otherwise(),
            *self._values_handed_on_again(),
            *self._missed_pairs(),
        ]

    def _slots(self, *calls: Call) -> set[int | None]:
        return {self.owner(calls[0].topic), *(call.connection.worker for call in calls)}

    def history(self) -> History:
        """Return the run as a history, in which a call is disturbed while a worker is that it depends on."""
        disturbed: dict[str, list[float]] = defaultdict(list)
        for call in self.calls:
            end = math.inf if call.end is None else call.end
            spans = self.excuses.during(call.connection.worker, call.start, end)
            if call.kind == "send":
                # The owner of its topic may have ended with the word that it met somebody.
                spans += self.excuses.during(self.owner(call.topic), call.start, end)
            times = [max(start, call.start) for start, _ in spans]
            if call.connection.by_us and call.connection.lost == call.end:
                times.append(end)
            if times:
                disturbed[call.connection.label] += times
        calls = [call.recorded() for call in self.calls]
        return History(calls, disturbed=dict(disturbed), deaths=[death.at for death in self.deaths])

    @property
    def unknown(self) -> int:
        """How many senders were told that somebody may have their value."""
        return sum(call.outcome == "unknown-outcome" for call in self.calls)

    def _late(self) -> Iterator[Violation]:
        for call in self.calls:
            if call.end is None:
                yield Violation("answered", "was never answered, though its connection was not lost", [call])
                continue
            if call.outcome == "lost":
                continue
            after = call.end - call.start - call.timeout_s
            # A worker that is stopped reads no call and answers none until it goes on.
            stopped = self.excuses.disturbed(call.connection.worker, call.start, call.end)
            if after > self.tolerance_s + stopped:
                yield Violation("in time", f"was answered {after * 1000:.0f} ms late", [call])

    def _refused_for_no_reason(self) -> Iterator[Violation]:
        drained = Excuses([each for each in self.disturbances if each.kind == "drained"])
        for call in self.calls:
            if call.end is None:
                continue  # which is another rule
            reason = {
                "cancelled": call.cancelled is not None,
                "draining": drained.any({call.connection.worker}, call.start, call.end),
                "unknown-outcome": call.kind == "send",
            }.get(call.outcome, True)
            if not reason or call.outcome not in OUTCOMES:
                yield Violation("no refusal without a reason", f"ended as {call.outcome}", [call])

    def _connections_lost_for_no_reason(self) -> Iterator[Violation]:
        for connection in self.connections:
            if connection.lost is None or connection.by_us:
                continue
            near = (death for death in self.deaths if abs(death.at - connection.lost) < 1.0)
            if not any(connection.worker in (None, death.slot) for death in near):
                text = f"connection {connection.label} to worker {connection.worker} was lost at {connection.lost:.3f}"
                yield Violation("a connection lives as long as its worker", text, [])

    def _values_of_senders_that_were_told_otherwise(self) -> Iterator[Violation]:
        for value, receives in self.got.items():
            send = self.sends.get(value)
            if send is None or send.outcome in ("met", "unknown-outcome"):
                continue
            for receive in receives:
                assert send.end is not None
                assert receive.end is not None
                if send.outcome == "lost" and receive.end < send.end + self.tolerance_s:
                    continue  # it was taken before its sender went, or as it did
                if self.excuses.any(self._slots(send, receive), send.start, max(send.end, receive.end)):
                    continue
                text = f"somebody got the value, but its sender ended as {send.outcome}"
                yield Violation("both or neither", text, [send, receive])

    def _values_handed_on_again(self) -> Iterator[Violation]:
        for value, receives in self.got.items():
            if len(receives) < 2 or value not in self.sends:
                continue
            ends = sorted(each.end for each in receives if each.end is not None)
            groups = [each.group for each in receives if each.group is not None]
            again = len(groups) > len(set(groups)) or ends[-1] - ends[0] > self.tolerance_s
            if again and not self.excuses.any(self._slots(self.sends[value], *receives), ends[0] - 1.0, ends[-1]):
                yield Violation("once", "a value was handed on twice", [self.sends[value], *receives])

    def _missed_pairs(self) -> Iterator[Violation]:
        """A send never waits while a listener does. Whatever became of the two, they should have met each other."""
        waited: dict[str, list[Call]] = {}
        for topic, listeners in self.listeners.items():
            waited[topic] = sorted((each for each in listeners if _duration(each) > self.missed_s), key=_start)
        for send in self.sends.values():
            if _duration(send) <= self.missed_s:
                continue
            assert send.end is not None
            listeners = waited.get(send.topic, [])
            # None waits for longer than the longest timeout, and a while.
            first = bisect.bisect_left(listeners, send.start - 3.0, key=_start)
            for each in listeners[first:]:
                if each.start > send.end:
                    break
                assert each.end is not None
                together = max(send.start, each.start), min(send.end, each.end)
                if together[1] - together[0] <= self.missed_s:
                    continue
                if self.excuses.undisturbed(self._slots(send, each), *together) > self.missed_s:
                    text = f"waited side by side for {together[1] - together[0]:.3f} s and did not meet"
                    yield Violation("nobody misses", text, [send, each])

    def explain(self, violation: Violation) -> str:
        """Return the violation with what happened around it: other calls on the topic, and what hit their workers."""
        lines = [f"{violation.rule}: {violation.text}"]
        if violation.calls:
            lines += self._around(violation.calls)
        return "\n".join(lines)

    def _around(self, calls: list[Call]) -> Iterator[str]:
        topic = calls[0].topic
        start = min(call.start for call in calls) - 0.1
        end = max(call.end or call.start for call in calls) + 0.1
        around = [call for call in self.calls if call.topic == topic and call.start < end and (call.end or end) > start]
        yield f"  topic {topic}, owned by worker {self.owner(topic)}"
        for call in sorted(around, key=_start)[:24]:
            yield f"  {'>' if call in calls else ' '} {_text(call)}"
        slots = self._slots(*calls)
        for each in self.disturbances:
            if each.slot in slots and each.start < end + 1 and start - 1 < each.end:
                yield f"  ! {each}"


def _start(call: Call) -> float:
    return call.start


def _duration(call: Call) -> float:
    return (call.end or call.start) - call.start


def _text(call: Call) -> str:
    end = "never" if call.end is None else f"{call.end:.3f}"
    what = " ".join(filter(None, (call.kind, call.group, call.value)))
    return (
        f"{call.start:.3f} to {end} {what} ({call.timeout_s * 1000:.0f} ms) by {call.connection.label} "
        f"at worker {call.connection.worker}: {call.outcome}{', cancelled' if call.cancelled is not None else ''}"
    )
