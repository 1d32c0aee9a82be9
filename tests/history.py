"""What happened to every call of a run, and whether that keeps the promises.

A run writes a history with Recorder, each process its own file; History.read() merges them and
check() tells which promises were broken, in words. Times are seconds of time.monotonic(), which
all processes of one machine share. A call's time runs from before it was sent until after its
answer was read, so it contains the time in which the node knew the call.

Every sent value must be different from all others of its topic: by it a send is paired with the
listeners that got it. A run says which connections it disturbed, and when workers died; calls
that were open then have fewer promises, as each rule says.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import IO, Any, Final, NamedTuple


class Kind(StrEnum):
    """What was called."""

    SEND = "send"
    RECV = "recv"
    TAKE = "take"


class Outcome(StrEnum):
    """How a call ended."""

    TRUE = "true"  # a send met a listener
    VALUE = "value"  # a listener got one
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"  # a send may have met a listener, or may yet
    ERROR = "error"  # `code` says which
    LOST = "lost"  # the caller saw its connection break and did not go on
    UNANSWERED = "unanswered"  # it was still open when the recording ended, or its client was killed


ANSWERS: Final = frozenset((Outcome.TRUE, Outcome.VALUE, Outcome.TIMEOUT, Outcome.UNKNOWN, Outcome.ERROR))


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call, and one answer to it: a call that was answered twice is there twice, with one id."""

    id: str
    kind: Kind
    topic: str
    connection: str
    start: float
    timeout: float
    client: str = ""
    worker: str = ""
    group: str | None = None
    value: Any = None  # what was sent, or what was got
    at_least_once: bool = False  # a listener that acknowledges: another may get the same value after it
    outcome: Outcome = Outcome.UNANSWERED
    code: str = ""
    end: float = math.inf

    def __str__(self) -> str:
        what = f"{self.kind} {self.id} on {self.topic!r}" + (f" in group {self.group!r}" if self.group else "")
        value = "" if self.value is None else f" {self.value!r}"
        time = f"at {self.start:.3f} for {self.timeout:g} s"
        ending = self.outcome + (self.code and f" {self.code}") + (f" at {self.end:.3f}" if self.end < math.inf else "")
        return f"[{what}{value}, {time}, connection {self.connection}: {ending}]"


@dataclasses.dataclass(slots=True)
class History:
    """The calls of a run, when it disturbed which connections, when workers died, and when recording ended."""

    calls: list[Call] = dataclasses.field(default_factory=list)
    disturbed: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    deaths: list[float] = dataclasses.field(default_factory=list)
    end: float = math.inf

    @staticmethod
    def read(files: Iterable[IO[bytes]], end: float = math.inf) -> History:
        """Merge what the recorders of all processes wrote. What a killed one left half-written is ignored."""
        history = History(end=end)
        calls: dict[str, Call] = {}
        answers: list[tuple[str, dict[str, Any]]] = []
        for line in itertools.chain.from_iterable(files):
            if not line.endswith(b"\n"):
                continue
            what, *details = json.loads(line)
            match what:
                case "call":
                    (fields,) = details
                    calls[fields["id"]] = Call(**fields | {"kind": Kind(fields["kind"])})
                case "answer":
                    id, fields = details
                    answers.append((id, fields | {"outcome": Outcome(fields["outcome"])}))
                case "disturbed":
                    connection, at = details
                    history.disturbed.setdefault(connection, []).append(at)
                case "death":
                    history.deaths.extend(details)
                case _:
                    raise ValueError(f"this is no line of a recorder: {line!r}")
        answered = {id for id, _ in answers}
        history.calls = [call for id, call in calls.items() if id not in answered]
        history.calls += [dataclasses.replace(calls[id], **fields) for id, fields in answers]
        return history


class Recorder:
    """Writes the calls of one client to a file: a line when a call begins, one when it is answered.

    Any thread may use it. The file must be opened unbuffered for appending: then a line is one
    write, which the kernel keeps whole, and a process that is killed has written all that it did.
    """

    def __init__(self, file: IO[bytes], client: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._client = client
        self._clock = clock
        self._numbers = itertools.count(1)

    def call(self, kind: Kind, topic: str, *, connection: str, timeout: float, **fields: Any) -> str:
        """Note that a call begins, and return the id to answer it with. `fields` are those of Call."""
        id = f"{self._client}.{os.getpid()}.{next(self._numbers)}"
        fields |= {"id": id, "client": self._client, "kind": kind, "topic": topic}
        fields |= {"connection": connection, "timeout": timeout, "start": self._clock()}
        self._write("call", fields)
        return id

    def answer(self, id: str, outcome: Outcome, **fields: Any) -> None:
        """Note how a call ended: `value` is what a listener got, `code` is that of an error."""
        self._write("answer", id, {"outcome": outcome, "end": self._clock(), **fields})

    def disturbed(self, connection: str) -> None:
        """Note that a connection, or the worker that has it, is cut or killed now, or begins or ends to stall."""
        self._write("disturbed", connection, self._clock())

    def death(self) -> None:
        """Note that some worker dies now, with whatever calls it held for the connections of others."""
        self._write("death", self._clock())

    def _write(self, *line: Any) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")


class Rule(StrEnum):
    """The promises, each as what it is to break it."""

    TRUE_FOR_NOBODY = "a sender was told true, but no listener got the value or may have got it"
    NEVER_SENT = "a listener got a value that nobody sent on its topic"
    NOT_TOGETHER = "a listener got a value although it never waited while the send was open"
    ONE_SIDED = "a listener got a value whose sender was told that nobody came"
    TWO_TAKERS = "a value went to two takers of one group"
    ANSWERED_TWICE = "a call was answered twice"
    ANSWERED_LATE = "a call was answered after its timeout"
    TIMED_OUT_EARLY = "a call was told before its timeout that this is over"
    NOT_ANSWERED = "a call of an undisturbed connection was not answered"
    MISSED = "a sender and a listener waited on one topic at the same time and both timed out"


class Violation(NamedTuple):
    """A broken promise: which one, and the calls that show it."""

    rule: Rule
    calls: tuple[Call, ...]

    def __str__(self) -> str:
        return f"{self.rule}: {' and '.join(map(str, self.calls))}"


def check(history: History, *, tolerance: float = 0.05, missed_after: float = 0.25) -> list[Violation]:
    """Return every broken promise of a history, in time that goes with its length.

    `tolerance` is how many seconds after its timeout an answer may come. Two that both timed out
    missed each other if they waited at the same time for more than `missed_after` seconds: give
    at least as long as the longest stall of a worker. Raises ValueError if a value was sent twice.
    """
    return [*_Check(history).violations(tolerance, missed_after)]


class _Check:
    def __init__(self, history: History) -> None:
        self.history = history
        self.sends: dict[tuple[str, Any], Call] = {}
        self.got: dict[tuple[str, Any], list[Call]] = defaultdict(list)
        self.twice: list[Violation] = []
        seen: dict[str, Call] = {}
        for call in history.calls:
            first = seen.setdefault(call.id, call)
            if first is not call:
                self.twice.append(Violation(Rule.ANSWERED_TWICE, (first, call)))
            key = (call.topic, call.value)
            if call.kind is not Kind.SEND:
                if call.outcome is Outcome.VALUE:
                    self.got[key].append(call)
            elif self.sends.setdefault(key, call).id != call.id:
                raise ValueError(f"a value must be sent but once on a topic: {self.sends[key]} and {call}")

    def violations(self, tolerance: float, missed_after: float) -> Iterator[Violation]:
        yield from self.twice
        for call in self.history.calls:
            yield from self._in_time(call, tolerance)
        for key, listeners in self.got.items():
            yield from self._got(self.sends.get(key), listeners)
        yield from self._true_for_nobody()
        yield from self._missed(missed_after)

    def disturbances(self, call: Call) -> list[float]:
        """Return when the connection of a call was disturbed while the call was open."""
        return [at for at in self.history.disturbed.get(call.connection, ()) if call.start <= at <= call.end]

    def maybe_issued_twice(self, send: Call) -> bool:
        """Tell whether a client may have sent it again on another connection, or a worker to another owner."""
        return bool(self.disturbances(send)) or any(send.start <= at <= send.end for at in self.history.deaths)

    def _in_time(self, call: Call, tolerance: float) -> Iterator[Violation]:
        deadline = call.start + call.timeout
        if call.outcome in ANSWERS:
            if call.end > deadline + tolerance and not self.disturbances(call):
                yield Violation(Rule.ANSWERED_LATE, (call,))
            if call.outcome is Outcome.TIMEOUT and call.end < deadline:
                yield Violation(Rule.TIMED_OUT_EARLY, (call,))
        # That its connection broke is no excuse if nobody touched it; that the recording ended before its time is one.
        elif (
            call.outcome is Outcome.LOST or deadline + tolerance < self.history.end
        ) and call.connection not in self.history.disturbed:
            yield Violation(Rule.NOT_ANSWERED, (call,))

    def _got(self, send: Call | None, listeners: list[Call]) -> Iterator[Violation]:
        if send is None:
            for listener in listeners:
                yield Violation(Rule.NEVER_SENT, (listener,))
            return
        # Issued again, it may be in two places, and what its caller is told be true of the other one.
        certain = send.outcome in ANSWERS - {Outcome.UNKNOWN} and not self.maybe_issued_twice(send)
        takers: dict[str, Call] = {}
        for listener in listeners:
            if listener.end < send.start or (listener.start > send.end and certain):
                yield Violation(Rule.NOT_TOGETHER, (send, listener))
            if not certain or listener.at_least_once:
                continue
            if send.outcome is not Outcome.TRUE:
                yield Violation(Rule.ONE_SIDED, (send, listener))
            if listener.group is not None:
                first = takers.setdefault(listener.group, listener)
                if first.id != listener.id:  # else it was answered twice, which is another rule
                    yield Violation(Rule.TWO_TAKERS, (send, first, listener))

    def _true_for_nobody(self) -> Iterator[Violation]:
        """Pair each send that nobody is known to have got with a listener that may have got it.

        That is one whose connection was lost or disturbed while its call was open, or that never
        was answered: it may have got one value, each time, that nobody knows of. Both were open
        at some time. Whoever ends first chooses first, and takes of those that are open the one
        that ends first: any other could be paired with whatever this one could, and more.
        """
        sends: dict[str, list[_Span]] = defaultdict(list)
        for key, send in self.sends.items():
            if send.outcome is Outcome.TRUE and key not in self.got:
                sends[send.topic].append(_Span(send.end, send.start, send))
        if not sends:
            return
        chances: dict[str, list[_Span]] = defaultdict(list)
        for call in self.history.calls:
            if call.kind is not Kind.SEND and call.topic in sends:
                start = call.start
                # Who did not go on was lost but once, some time after it was disturbed.
                for at in sorted(self.disturbances(call)) if call.outcome is not Outcome.LOST else ():
                    chances[call.topic].append(_Span(at, start, call))
                    start = at
                if call.outcome not in ANSWERS:
                    chances[call.topic].append(_Span(call.end, start, call))
        for topic, spans in sends.items():
            for span in _without_partner(spans, chances[topic]):
                yield Violation(Rule.TRUE_FOR_NOBODY, (span.call,))

    def _missed(self, missed_after: float) -> Iterator[Violation]:
        topics: dict[str, list[Call]] = defaultdict(list)
        for call in self.history.calls:
            if call.outcome is Outcome.TIMEOUT and not self.disturbances(call):
                topics[call.topic].append(call)
        for calls in topics.values():
            calls.sort(key=lambda call: call.start)
            # Of those that began before, on either side, the one that waited longest shows it if any does.
            longest: dict[bool, Call] = {}
            for call in calls:
                sends = call.kind is Kind.SEND
                other = longest.get(not sends)
                if other is not None and min(call.end, other.end) - call.start > missed_after:
                    yield Violation(Rule.MISSED, (call, other))
                if sends not in longest or call.end > longest[sends].end:
                    longest[sends] = call


class _Span(NamedTuple):
    """The time in which a call may have met another. Two can have met if their spans overlap."""

    end: float
    start: float
    call: Call


def _without_partner(sends: list[_Span], chances: list[_Span]) -> list[_Span]:
    """Return the sends that stay alone when as many as possible have met one of `chances` each."""
    spans = [*sends, *chances]
    of_chances = [False] * len(sends) + [True] * len(chances)
    by_start = sorted(range(len(spans)), key=lambda index: spans[index].start, reverse=True)
    by_end = sorted(range(len(spans)), key=lambda index: spans[index].end)
    begun: dict[bool, list[tuple[float, int]]] = {False: [], True: []}  # heaps of end and index
    paired = [False] * len(spans)
    for index in by_end:
        end = spans[index].end
        while by_start and spans[by_start[-1]].start <= end:
            other = by_start.pop()
            heapq.heappush(begun[of_chances[other]], (spans[other].end, other))
        if paired[index]:
            continue
        partners = begun[not of_chances[index]]
        while partners and (partners[0][0] < end or paired[partners[0][1]]):
            heapq.heappop(partners)
        if partners:
            paired[index] = paired[heapq.heappop(partners)[1]] = True
    return [span for index, span in enumerate(sends) if not paired[index]]
