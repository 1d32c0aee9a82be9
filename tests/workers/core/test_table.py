"""The table of the core against skywalker.junction: the same random history is done by both, and every answer compared.

Callers take or refuse what they are given, are lost after they were given it, wait again, or give up. What both say to
them, in which order, what comes back of each step, and who then stands where is the same.
"""

from __future__ import annotations

import os
import random
from typing import Final

import pytest

from skywalker.junction import Call, Junction, Subscriber
from tests.workers.core import _parts
from tests.workers.core.histories import PARTS, live, seeds

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "400"))
STEPS: Final = 80
TOPICS: Final = (b"\xa1a", b"\xa1b", b"\xda\x00\x40" + b"c" * 64)
GROUPS: Final = (b"\xa1g", b"\xa1h", b"\xb8" + b"i" * 24)
SUBSCRIBER: Final = 3

Said = list[tuple[str, int, int, bool]]


class Caller:
    """What somebody who calls does, whoever asks: by the number of the call, which both sides share."""

    def __init__(self, takes: bool, patient: bool) -> None:
        self.takes = takes
        self.patient = patient


class Old(Call):
    """A call of the oracle."""

    def __init__(
        self, history: History, number: int, topic: bytes, since: float, value: bytes | None, group: bytes | None
    ) -> None:
        super().__init__(topic, since, value, group)
        self.history = history
        self.number = number
        self.given: Call | None = None

    def give(self, send: Call) -> bool:
        assert isinstance(send, Old)
        return self.history.gives(self.history.old_said, self, send)

    def met(self) -> None:
        self.history.old_said.append(("met", self.number, 0, True))

    def missed(self) -> None:
        self.history.old_said.append(("missed", self.number, 0, True))
        if self.history.callers[self.number].patient:
            self.history.old.resume(self)
        else:
            self.answered = True


class OldSubscriber(Subscriber):
    def __init__(self, history: History, number: int, topic: bytes, audience: int) -> None:
        super().__init__(topic, 0.0, None, None)
        self.audience = audience
        self.history = history
        self.number = number

    def give(self, send: Call) -> bool:
        assert isinstance(send, Old)
        takes = self.history.callers[self.number].takes and not send.answered
        self.history.old_said.append(("give", self.number, send.number, takes))
        return takes


class History:
    """One history, on both."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.old = Junction()
        self.new = _parts.Table(self, self.random.randbytes(16))
        self.old_said: Said = []
        self.new_said: Said = []
        self.callers: dict[int, Caller] = {}
        self.calls: dict[int, Old] = {}
        self.subscribers: dict[int, OldSubscriber] = {}
        self.rows: dict[int, int] = {}  # by number
        self.numbers: dict[int, int] = {}  # by row
        self.offers: list[tuple[int, int]] = []  # a send and the listener that has it; of subscribers without an end
        self.now = 0.0
        self.count = 0

    def gives(self, said: Said, listener: Old, send: Old) -> bool:
        takes = self.callers[listener.number].takes
        said.append(("give", listener.number, send.number, takes))
        if takes:
            listener.given = send
            self.offers.append((send.number, listener.number))
        return takes

    # What the table asks.

    def give(self, listener_row: int, send_row: int) -> bool:
        listener, send = self.numbers[listener_row], self.numbers[send_row]
        if listener in self.subscribers:
            takes = self.callers[listener].takes and not self.new.is_answered(send_row)
        else:
            takes = self.callers[listener].takes
            if takes:
                self.new.given(listener_row, send_row)
        self.new_said.append(("give", listener, send, takes))
        return takes

    def met(self, send_row: int) -> None:
        self.new_said.append(("met", self.numbers[send_row], 0, True))

    def missed(self, send_row: int) -> None:
        send = self.numbers[send_row]
        self.new_said.append(("missed", send, 0, True))
        if self.callers[send].patient:
            self.new.resume(send_row)
        else:
            self.new.answer(send_row)

    # Steps.

    def make(self, kind: int, topic: bytes, since: float, group: bytes | None = None) -> int:
        self.count += 1
        number = self.count
        self.callers[number] = Caller(self.random.random() < 0.75, self.random.random() < 0.7)
        value = b"value" if kind == _parts.KIND_SEND else None
        self.calls[number] = Old(self, number, topic, since, value, group)
        row = self.rows[number] = self.new.new(kind, topic, since, group)
        self.numbers[row] = number
        return number

    def since(self) -> float:
        return self.now - self.random.choice((0.0, 0.0, 0.0, 0.0, 0.5, 3.0))

    def send(self) -> None:
        number = self.make(_parts.KIND_SEND, self.topic(), self.since())
        call, row = self.calls[number], self.rows[number]
        met, also = self.old.send(call), self.new.send(row)
        assert met == also
        if not met and self.random.random() < 0.9:
            self.old.wait(call)
            self.new.wait(row)

    def publish(self) -> None:
        number = self.make(_parts.KIND_SEND, self.topic(), self.now)
        self.old.publish(self.calls[number])
        self.new.publish(self.rows[number])

    def listen(self) -> None:
        topic, since = self.topic(), self.since()
        for _ in range(self.random.choice((1, 1, 2, 5))):
            group = self.random.choice((None, None, *GROUPS))
            number = self.make(_parts.KIND_RECV if group is None else _parts.KIND_TAKE, topic, since, group)
            self.listen_with(number)

    def listen_with(self, number: int) -> None:
        call, row = self.calls[number], self.rows[number]
        met, also = self.old.listen(call), self.new.listen(row)
        assert met == also
        if not met:
            self.old.wait(call)
            self.new.wait(row)

    def listen_again(self) -> None:
        """One that refused, or lost what it was given, comes back with the time at which it came."""
        idle = [
            each for each, call in self.calls.items() if call.value is None and not call.waits and call.given is None
        ]
        if idle:
            self.listen_with(self.random.choice(idle))

    def subscribe(self) -> None:
        if self.subscribers and self.random.random() < 0.4:
            number = self.random.choice([*self.subscribers])  # perhaps once more
        else:
            self.count += 1
            number = self.count
            audience = self.random.randrange(1, 4)
            topic = self.topic()
            self.callers[number] = Caller(self.random.random() < 0.75, True)
            self.subscribers[number] = OldSubscriber(self, number, topic, audience)
            self.rows[number] = self.new.new(SUBSCRIBER, topic, 0.0, None, audience)
            self.numbers[self.rows[number]] = number
        self.old.subscribe(self.subscribers[number])
        self.new.subscribe(self.rows[number])

    def unsubscribe(self) -> None:
        if self.subscribers:
            number = self.random.choice([*self.subscribers])
            self.old.unsubscribe(self.subscribers[number])
            self.new.unsubscribe(self.rows[number])

    def resize(self) -> None:
        if self.subscribers:
            number, audience = self.random.choice([*self.subscribers]), self.random.randrange(1, 400)
            self.old.resize(self.subscribers[number], audience)
            self.new.resize(self.rows[number], audience)

    def outcome(self) -> None:
        """One of those that were given something surely has it, or is lost."""
        if not self.offers:
            return
        send, listener = self.offers.pop(self.random.randrange(len(self.offers)))
        # Both note every offer of a listener; the second time is the table's.
        self.calls[listener].given = None
        assert self.new.decided(self.rows[listener]) == self.rows[send]
        self.decide(send)

    def decide(self, send: int) -> None:
        if self.random.random() < 0.5:
            self.old.confirm(self.calls[send])
            self.new.confirm(self.rows[send])
        else:
            self.old.lost(self.calls[send])
            self.new.lost(self.rows[send])

    def outcome_of_a_subscription(self) -> None:
        """Of a value that a subscriber was given; whose it was, its connection knows."""
        held: dict[int, int] = {}
        for send, _ in self.offers:
            held[send] = held.get(send, 0) + 1
        more = [each for each, call in self.calls.items() if call.offers > held.get(each, 0)]
        if more:
            self.decide(self.random.choice(more))

    def withdraw(self) -> None:
        if self.calls:
            number = self.random.choice([*self.calls])
            assert self.old.withdraw(self.calls[number]) == self.new.withdraw(self.rows[number])

    def pass_time(self) -> None:
        self.now += self.random.choice((0.001, 1.0))

    def topic(self) -> bytes:
        return self.random.choice((*TOPICS, TOPICS[0], TOPICS[0]))

    def step(self) -> None:
        # Few at a time, so that calls meet.
        steps = (
            *(self.send,) * 5, *(self.listen,) * 5, *(self.outcome,) * 6, *(self.listen_again,) * 2, self.publish,
            self.subscribe, self.unsubscribe, self.resize, self.outcome_of_a_subscription,
            *(self.withdraw,) * 3, self.pass_time,
        )  # fmt: skip
        self.random.choice(steps)()
        assert self.new_said == self.old_said
        self.old_said.clear()
        self.new_said.clear()
        self.compare()

    def compare(self) -> None:
        assert self.new.topic_count == len(self.old)
        for topic in TOPICS:
            lines = [self.old._senders.get(topic), self.old._receivers.get(topic)]
            stands = [
                each.number for line in lines if line is not None for each in line.calls() if isinstance(each, Old)
            ]
            assert [self.numbers[row] for row in self.new.line(topic)] == stands
            groups = self.old._takers.get(topic)
            takers = (
                [] if groups is None else [[each.number for each in line.calls()] for line in groups.lines.values()]
            )  # type: ignore[attr-defined]
            assert [[self.numbers[row] for row in line] for line in self.new.groups(topic)] == takers
            assert self.new.census(topic) == self.old.census(topic)
            rows, audience = self.new.subscribers(topic)
            old = self.old._subscribers.get(topic)
            assert [self.numbers[row] for row in rows] == ([] if old is None else [each.number for each in old.members])  # type: ignore[attr-defined]
            assert audience == (0 if old is None else old.audience)
        for number, call in self.calls.items():
            assert self.new.offers(self.rows[number]) == call.offers
            assert self.new.is_answered(self.rows[number]) == call.answered

    def end(self) -> None:
        """Have all leave: then nothing is left of them."""
        for number, subscriber in self.subscribers.items():
            self.old.unsubscribe(subscriber)
            self.new.unsubscribe(self.rows[number])
        for number, call in self.calls.items():
            call.answered = True
            self.new.answer(self.rows[number])
            self.old.withdraw(call)
            self.new.withdraw(self.rows[number])
        for _, listener in self.offers:
            self.new.decided(self.rows[listener])
        for number, call in self.calls.items():
            while call.offers:
                self.old.lost(call)
                self.new.lost(self.rows[number])
        for row in self.rows.values():
            self.new.free(row)
        assert self.new.used == (0, 0)
        assert len(self.old) == 0


@pytest.mark.parametrize("part", range(PARTS))
def test_both_do_the_same(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        live(History(seed), seed, STEPS)


def test_topics_that_nobody_is_at_are_kept_up_to_a_limit() -> None:
    table = _parts.Table(None, bytes(16))
    for number in range(10_000):
        table.free(table.new(_parts.KIND_RECV, b"\xcd" + number.to_bytes(2, "big"), 0.0))
    assert table.used == (0, 0)
