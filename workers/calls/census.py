"""Who waits on a topic: counted where it is owned, or asked of the worker that owns it."""

from __future__ import annotations

from typing import Protocol

from skywalker.census import Census
from skywalker.errors import Busy
from skywalker.wire import junction as wire
from workers.calls.call import Caller
from workers.calls.inquiries import Asked


class Counting(Protocol):
    """Who knows who is at a topic."""

    def census(self, topic: bytes) -> Census: ...


def info(junction: Counting, topic: bytes, now: float) -> bytes:
    """Return the result of a :topic about one that is owned here."""
    count = junction.census(topic)
    age = 0.0 if count.oldest is None else now - count.oldest
    return wire.topic_info(count.receivers, count.takers, count.senders, count.subscribers, max(0, round(age * 1000)))


class CensusCall:
    """A :topic about a topic that another worker owns."""

    __slots__ = ("_answered", "_names_groups", "caller", "carrier", "due", "id", "number")

    def __init__(self, caller: Caller, id: bytes, due: float, names_groups: bool) -> None:
        self._answered = False
        self._names_groups = names_groups
        self.caller = caller
        self.id = id
        self.due = due
        self.carrier: Asked | None = None  # where it was asked, with its number there
        self.number = b""

    def answer(self, info: bytes) -> None:
        """Pass on what the owner counted. Raises ValueError if that makes no sense."""
        if not self._names_groups:
            info = wire.without_groups(info)
        self._answered = True
        self.caller.turn.deadlines.discard(self, self.due)
        self.caller.reply(wire.TOPIC, self.id, info)

    def end(self) -> None:
        """The owner will not answer."""
        self.caller.turn.deadlines.discard(self, self.due)
        self.expired()

    def expired(self) -> None:
        """The owner has not answered, or its link ended in the very turn in which this is due."""
        if self._answered:
            return
        self._answered = True
        if self.carrier is not None:
            self.carrier.forget_census(self)
        self.caller.reply_error(wire.TOPIC, self.id, Busy("the worker that owns the topic does not answer"))
