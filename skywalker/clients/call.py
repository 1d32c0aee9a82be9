"""One call and its outcome."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from skywalker.clients.line import Line, Stay
from skywalker.clients.requests import MEETINGS, Kind, MeetingKind, topic_of
from skywalker.errors import LocalProtocolError, OutcomeUnknown, RemoteProtocolError, TimedOut

if TYPE_CHECKING:
    from skywalker.members import Place

T = TypeVar("T")

PubSubKind = Literal["publish", "subscribe", "unsubscribe", "message"]

GRACE_S = 0.5
"""Seconds after its deadline at which a call ends without the node's word, which normally decides: a round trip
around the world and the node's own 50 ms fit in."""


# Why it is not known what became of a send, as the details of the error name it.
LOST_CONNECTION: Final = "lost-connection"
SILENT_NODE: Final = "silent-node"

_DOUBTS: Final = {
    LOST_CONNECTION: "the connection was lost after it was sent",
    SILENT_NODE: "the node has not answered in time",
}


class Raise:
    """The type of RAISE, the `default` that stands for none."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "RAISE"


RAISE: Final = Raise()


class Call:
    """One request and, once it has `ended`, its outcome: `value`, or the `error` to raise instead.

    Drivers derive from it; `waiters` is theirs: whom to wake when it has ended.
    """

    __slots__ = (
        "begins_at", "cancellers", "deadline", "doubt", "drops", "ended", "error", "expires", "frame", "id", "joins",
        "kind", "line", "owner", "stay", "timeout", "value", "waiters",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ended = False
        self.value: Any = None
        self.error: Exception | None = None
        self.waiters: list[Any] | None = None
        self.line: Line | None = None  # the connection over which the node was given it
        self.begins_at = 0  # how many bytes went over that before
        self.doubt = ""  # of a send: why somebody may have its value already, if that is so
        self.drops = False  # with ack: whether what has no form in Python is dropped, and not given back
        self.owner: Place | None = None  # the worker that owns its topic, if that matters
        self.stay: Stay | None = None  # what binds its topic to a line, if anything does
        self.joins: Line | Stay | None = None  # of a barrier of ours: what goes on once this is answered
        self.cancellers: list[Call] | None = None  # by which its callers have asked the node to cancel it

    def start(self, id: int, kind: Kind | PubSubKind, frame: bytes, timeout: float, now: float) -> None:
        """Say what the call is. Its core does this, once."""
        self.id = id
        self.kind: Kind | PubSubKind = kind
        self.frame = frame
        self.timeout = timeout
        self.deadline = now + timeout
        self.expires = self.deadline + GRACE_S

    def end(self, value: Any = None, error: Exception | None = None) -> None:
        """Set the outcome. Its core does this, once."""
        self.value = value
        self.error = error
        self.ended = True
        self.frame = b""

    def outcome(self, default: Any = RAISE) -> Any:
        """Return the result of a call that has ended, or raise its error; if nobody came in time, return `default`."""
        if self.error is None:
            return self.value
        if default is RAISE or not isinstance(self.error, TimedOut):
            raise self.error
        return default

    def answer(self, form: type[T]) -> T:
        """Return the result of a call to a node that has ended, or raise its error.

        Raises RemoteProtocolError for a result of another form.
        """
        result = self.outcome()
        if not isinstance(result, form):
            raise RemoteProtocolError(f"the node's answer is not one to :{self.kind}: {reprlib.repr(result)}")
        return result

    def unknown(self, then: Exception | None = None) -> OutcomeUnknown:
        """Return the error of a send that is in doubt; `then` is with what it would end otherwise."""
        text = (
            f"it is not known whether somebody took the value for topic {topic_of(self.frame)!r}: {_DOUBTS[self.doubt]}"
        )
        unknown = OutcomeUnknown(text if then is None else f"{text}; after that: {then}", {"why": self.doubt})
        unknown.__cause__ = then
        return unknown

    def timed_out(self) -> TimedOut:
        """Return the error that says that its time is over."""
        if self.kind in MEETINGS:
            return TimedOut(f"nobody came to topic {topic_of(self.frame)!r} within {self.timeout:g} s")
        return TimedOut(f"the node did not answer {self.kind} within {self.timeout:g} s")


def meeting_arguments(kind: MeetingKind, topic: Any, value: Any, group: Any) -> tuple[Any, ...]:
    """Return the arguments of a call as begin() was given them. Raises LocalProtocolError if they do not fit."""
    if (kind == "send") == (value is RAISE):
        raise LocalProtocolError(f"a value goes with 'send', and only with it; the call is {kind!r}")
    match kind:
        case "send":
            return (topic, value)
        case "recv":
            return (topic,)
        case "take":
            return (topic, group)
    raise LocalProtocolError(f"kind {kind!r} is none of 'send', 'recv' and 'take'")
