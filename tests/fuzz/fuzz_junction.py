"""The junction, and deadlines: whoever calls, takes, refuses, loses and leaves, in whatever order.

A send is met at most once, and never after it has missed for good; whoever was given a value stands in no line. On one
topic senders wait, or listeners, never both, the first that came first. Once all have left, nothing is held. What is
put among the deadlines comes out once, not before its time, in order. Compiled and plain do the same in the same order.

An input is a program of two bytes for each operation.
"""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

from skywalker import deadlines
from tests.fuzz.draw import Draw
from tests.fuzz.twins import agreed, twins

JUNCTIONS = twins("skywalker.junction")
DEADLINES = twins("skywalker.deadlines")
TOPICS = (b"\xa1a", b"\xa1b", b"\x07")
GROUPS = (None, b"\xa1x", b"\xa1y")


def check_input(data: bytes) -> object:
    """Hold the invariant for one program."""
    plays = [Play(form, *kinds) for form, kinds in zip(JUNCTIONS, KINDS, strict=True)]
    return agreed(play.run(Draw(data)) for play in plays), agreed(timed(form, data) for form in DEADLINES)


def people(form: ModuleType) -> tuple[Any, Any]:
    """Return the classes of who calls, and of who subscribes."""

    class Party(form.Call):  # type: ignore[misc, name-defined]
        """A send or a listener."""

        def begin_in(self, play: Play) -> None:
            self.play = play
            self.number = len(play.calls)
            self.meetings = 0
            play.calls.append(self)

        def give(self, send: Any) -> bool:
            assert not self.waits
            play = self.play
            play.said.append(("refuses" if play.refuses else "is given", self.number))
            if not play.refuses:
                play.given.append((self, send))
            return not play.refuses

        def met(self) -> None:
            self.meetings += 1
            assert self.meetings == 1
            assert self.answered
            self.play.said.append(("met", self.number))

        def missed(self) -> None:
            assert not self.meetings
            play = self.play
            play.said.append(("missed", self.number))
            if play.resumes:
                play.junction.resume(self)
            else:
                self.answered = True

    class Standing(form.Subscriber):  # type: ignore[misc, name-defined]
        """A subscriber."""

        begin_in = Party.begin_in

        def give(self, send: Any) -> bool:
            if not send.answered:
                return Party.give(self, send)
            self.play.said.append(("is told", self.number))
            return False  # what is known has no other outcome

    return Party, Standing


KINDS = [people(form) for form in JUNCTIONS]


class Play:
    """One junction, and all who have come to it."""

    def __init__(self, form: ModuleType, party: Any, standing: Any) -> None:
        self.junction = form.Junction()
        self.party, self.standing = party, standing
        self.calls: list[Any] = []
        self.said: list[tuple[str, int]] = []  # what has happened, and to which call
        self.given: list[tuple[Any, Any]] = []  # listeners and sends that have no outcome yet
        self.refuses = self.resumes = False

    def run(self, draw: Draw) -> object:
        """Do what the input says, and then have all leave; return what has happened."""
        while draw and len(self.calls) < 60:
            operation, which = draw.byte(), draw.byte()
            self.refuses, self.resumes = operation & 0x80 > 0, operation & 0x40 > 0
            self.do(operation & 0x0F, TOPICS[which % len(TOPICS)], which)
            self.assert_sound()
        self.refuses = self.resumes = False
        self.leave()
        return self.said

    def do(self, operation: int, topic: bytes, which: int) -> None:
        """Do one thing."""
        junction, since = self.junction, float(which >> 4)
        if operation <= 3:
            is_send = operation == 3
            value, group = (b"\x01", None) if is_send else (None, GROUPS[operation])
            call = self.come(self.party, topic, since, value, group)
            if not (junction.send(call) if is_send else junction.listen(call)):
                junction.wait(call)
        elif operation == 4:
            junction.publish(self.come(self.party, topic, since, b"\x02", None))
        elif operation == 5:
            subscriber = self.come(self.standing, topic, since, None, None)
            subscriber.audience = 1
            junction.subscribe(subscriber)
        elif self.calls and operation <= 8:
            call = self.calls[which % len(self.calls)]
            if isinstance(call, self.standing):
                junction.unsubscribe(call)
            else:
                assert junction.withdraw(call) is not None
        elif self.given:
            self.decide(which % len(self.given), operation & 1 > 0)

    def come(self, kind: Any, topic: bytes, since: float, value: bytes | None, group: bytes | None) -> Any:
        call = kind(topic, since, value, group)
        call.begin_in(self)
        return call

    def decide(self, at: int, took: bool) -> None:
        """One who was given a value says what became of it."""
        _, send = self.given.pop(at)
        if took:
            self.junction.confirm(send)
        else:
            self.junction.lost(send)

    def assert_sound(self) -> None:
        """Nobody waits for somebody who is there; everybody in a line is in it once, by the time they came."""
        waiting: dict[bytes, list[Any]] = {topic: [] for topic in TOPICS}
        lines = {}
        for call in self.calls:
            if call.waits:
                waiting[call.topic].append(call)
                lines[id(call.line)] = call.line
        in_lines = [call for line in lines.values() for call in in_order(line.calls())]
        assert len(in_lines) == len({id(call) for call in in_lines}) == sum(map(len, waiting.values()))
        at = 0
        for topic, calls in waiting.items():
            census = self.junction.census(topic)
            assert not (census.senders and (census.receivers or census.takers))
            assert census.senders + census.receivers + sum(census.takers.values()) == len(calls)
            at += bool(calls or census.subscribers)
        assert len(self.junction) == at

    def leave(self) -> None:
        """Have all leave."""
        for call in self.calls:
            if isinstance(call, self.standing):
                self.junction.unsubscribe(call)
            else:
                self.junction.withdraw(call)
        while self.given:
            self.decide(0, len(self.given) % 2 > 0)
        assert len(self.junction) == 0
        assert all(call.offers == 0 for call in self.calls)


def in_order(line: list[Any]) -> list[Any]:
    """Return the calls of a line, in which each stands behind those that came before it."""
    assert not any(after.precedes(before) for before, after in pairwise(line))
    return line


def timed(form: ModuleType, data: bytes) -> object:
    """Hold the invariant of deadlines."""
    found: deadlines.Deadlines = form.Deadlines()
    ends: dict[int, float] = {}
    said: list[list[int]] = []
    now = 0.0
    for number, byte in enumerate(data[:500]):
        if byte < 0x80:
            ends[number] = now + (byte - 8) / 64
            found.add(number, ends[number])
        elif byte < 0xC0 and ends:
            item = [*ends][byte % len(ends)]
            found.discard(item, ends.pop(item))
        else:
            now += (byte & 0x1F) / 32
            due = found.due(now)
            assert all(ends[item] <= now for item in due)
            assert [int(100 * ends[item]) for item in due] == sorted(int(100 * ends[item]) for item in due)
            for item in due:
                del ends[item]
            assert all(end > now - deadlines.PRECISION_S for end in ends.values())
            said.append(due)
        assert len(found) == len(ends)
    return said
