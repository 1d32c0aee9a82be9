"""Who waits on a topic: counted where it is owned, or asked of the worker that owns it."""

from __future__ import annotations

from typing import Protocol

from skywalker.census import Census
from skywalker.errors import Busy, RequestError
from skywalker.wire import junction as wire
from workers.calls.inquiries import Carrier
from workers.engine.loop import Turn


class Counting(Protocol):
    """Who knows who is at a topic."""

    def census(self, topic: bytes) -> Census: ...


class Asking(Protocol):
    """Who wants to know: a client."""

    def reply(self, method: bytes, id: bytes, result: bytes) -> None: ...
    def reply_error(self, method: bytes, id: bytes, error: RequestError) -> None: ...


def info(here: Counting, topic: bytes, now: float) -> bytes:
    """Return the result of a :topic about one that is owned here."""
    count = here.census(topic)
    age = 0.0 if count.oldest is None else now - count.oldest
    return wire.topic_info(count.receivers, count.takers, count.senders, count.subscribers, max(0, round(age * 1000)))


class CensusCall:
    """A :topic about a topic that another worker owns."""

    __slots__ = ("_alarm", "_caller", "_id", "_names_groups", "_turn", "carrier", "number")

    def __init__(self, caller: Asking, turn: Turn, id: bytes, due: float, names_groups: bool) -> None:
        """It is answered by then, one way or the other."""
        self._alarm = turn.set_alarm(self, due)
        self._names_groups = names_groups
        self._caller = caller
        self._turn = turn
        self._id = id
        self.carrier: Carrier | None = None  # where it was asked, with its number there
        self.number = 0

    def answer(self, info: bytes) -> None:
        """Pass on what the owner counted. Raises ValueError if that makes no sense."""
        if not self._names_groups:
            info = wire.without_groups(info)
        self._turn.drop_alarm(self._alarm)
        self._caller.reply(wire.TOPIC, self._id, info)

    def end(self) -> None:
        """The owner will not answer."""
        self._turn.drop_alarm(self._alarm)
        self.expired()

    def expired(self) -> None:
        """The owner has not answered."""
        if self.carrier is not None:
            self.carrier.forget(self)
        self._caller.reply_error(wire.TOPIC, self._id, Busy("the worker that owns the topic does not answer"))
