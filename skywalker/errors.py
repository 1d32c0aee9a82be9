"""Every error a user of skywalker can meet, and the codes that name them on the wire.

SkywalkerError
├── TimedOut               the call's own time is over (also a TimeoutError)
├── Unreachable            no node answered (also a ConnectionError)
├── DiscoveryError         the addresses of a cluster's nodes could not be found
├── Closed                 the client was closed by its owner
├── ConfigError            a setting is wrong: says which, where, and what is allowed
├── JournalError           a file is no journal, or none that can be read here
├── LocalProtocolError     we tried to send what the protocol forbids; nothing was sent
├── RemoteProtocolError    the peer sent what the protocol forbids; the connection is closed
├── HandlerFailed          the other side of a request() raised
├── NoSuchNode             Silk: no member has this id
├── NobodyHandles          Silk: nobody there handles messages of this type
├── NoReply                a request was taken up, or sent, and not answered (also TimedOut)
├── NotJoined              Silk: this node has left its cluster
└── RequestError           the node refused one call; one subclass for each code
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, ClassVar, Final


class Why(enum.Enum):
    """Why no node lets a client in, where another attempt would only be told the same."""

    TLS_WANTED = "tls-wanted"
    """It speaks TLS and nothing else, and we do not."""
    CERTIFICATE_WANTED = "certificate-wanted"
    """It wants a certificate of ours, and we have none."""
    CERTIFICATE_REFUSED = "certificate-refused"
    """It does not take ours: it has ended, or was revoked, or is of an authority that it does not trust."""
    MUTE = "mute"
    """It closes connections and acknowledges nothing, as a node does where its dialect has no word for a refusal."""
    NO_TLS = "no-tls"
    """It speaks no TLS, and we do."""
    STRANGE_AUTHORITY = "strange-authority"
    """Its certificate is of no authority that is trusted here."""
    UNVERIFIED = "unverified"
    """Its certificate is for other names, or its time is over, or has not begun."""

    @property
    def is_about_us(self) -> bool:
        """Whether the node refuses us; else it is us who do not trust it."""
        return self in _ABOUT_US


_ABOUT_US: Final = frozenset((Why.TLS_WANTED, Why.CERTIFICATE_WANTED, Why.CERTIFICATE_REFUSED, Why.MUTE))


class SkywalkerError(Exception):
    """Base of all errors of this package."""

    why: Why | None = None
    """Of Unreachable and Unauthorized: the reason, if it is one of these."""
    advice: str = ""
    """What to do about it. The text ends with it; who talks to others than programmers may say it otherwise."""

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}: {self.advice}" if self.advice else text


class TimedOut(SkywalkerError, TimeoutError):
    """Nobody came to the topic within the call's time."""


class Unreachable(SkywalkerError, ConnectionError):
    """No node could be reached within the call's time; the text says which and why."""


class DiscoveryError(SkywalkerError):
    """Where the addresses of a cluster's nodes are looked for gave none; the text says where and why."""


class Closed(SkywalkerError):
    """The client was closed, by its owner, before the call was answered."""


class ConfigError(SkywalkerError):
    """A setting is unknown or has a value that is not allowed."""


class JournalError(SkywalkerError, ValueError):
    """A file is no journal, or not one that this version can read; the text says why, and which if that is known."""


class LocalProtocolError(SkywalkerError, ValueError):
    """The caller asked for what the protocol forbids. Nothing reached the wire."""


class RemoteProtocolError(SkywalkerError):
    """The peer sent what the protocol forbids. The only remedy is to close the connection."""


class HandlerFailed(SkywalkerError):
    """The handler that served a request() raised; the text is what it said."""


class NoSuchNode(SkywalkerError):
    """No member of the Silk cluster has this id."""


class NobodyHandles(SkywalkerError):
    """Nobody who was asked handles Silk messages of this type."""


class NoReply(TimedOut):
    """A request was taken up by somebody, or may have been, or sent to a node of Silk, and not answered.

    Whether it was handled is not known. It comes when the request's time is over, or as soon as it is known that
    nobody will answer any more.
    """


class NotJoined(SkywalkerError):
    """This node has left its Silk cluster: it can say nothing until it joins again."""


class RequestError(SkywalkerError):
    """One call was refused. `code` is stable and crosses the wire; `details` holds the numbers.

    `retryable` says that the same call may succeed on another connection.
    """

    code: str = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str = "", details: Mapping[Any, Any] | None = None) -> None:
        super().__init__(message or self.code)
        self.details: Mapping[Any, Any] = details or {}

    @staticmethod
    def from_wire(code: str, message: str, details: Mapping[Any, Any]) -> RequestError:
        """Return the exception for `code`; one this version does not know becomes a plain RequestError."""
        cls = BY_CODE.get(code)
        if cls is None:
            error = RequestError(message, details)
            error.code = code
            return error
        return cls(message, details)


class BadFrame(RequestError):
    """The frame is no MessagePack array, has trailing bytes, or is nested too deep."""

    code = "bad-frame"


class UnknownMethod(RequestError):
    """The node knows no such method."""

    code = "unknown-method"


class BadArity(RequestError):
    """The method exists, but not with this number of arguments."""

    code = "bad-arity"


class BadId(RequestError):
    """The message id is longer than allowed."""

    code = "bad-id"


class BadTimeout(RequestError):
    """The timeout is not a number of milliseconds within the allowed range."""

    code = "bad-timeout"


class BadTopic(RequestError):
    """The topic or group is longer than allowed."""

    code = "bad-topic"


class TooLarge(RequestError):
    """The call, or the reply to it, does not fit in one frame."""

    code = "too-large"


class ReservedValue(RequestError):
    """The value would look like an error or a timeout of the node to whoever receives it."""

    code = "reserved-value"


class Busy(RequestError):
    """A limit of the node is reached; details name it."""

    code = "busy"


class Unauthorized(RequestError):
    """The node does not know who is calling."""

    code = "unauthorized"


class Forbidden(RequestError):
    """The caller may not do this."""

    code = "forbidden"


class Cancelled(RequestError):
    """The call was cancelled by its own client."""

    code = "cancelled"


class OutcomeUnknown(RequestError):
    """The value of a send may have been taken, and it cannot be known whether it was.

    It is no TimedOut, by which nobody has the value. The node says so, or the client where the node cannot; the text
    says why, and so do the details.
    """

    code = "unknown-outcome"


class Draining(RequestError):
    """The node, or this worker of it, is going away: ask another, with the time that is left."""

    code = "draining"
    retryable = True


class Internal(RequestError):
    """The node failed in a way it did not foresee; its log has the cause."""

    code = "internal"


BY_CODE: Final[Mapping[str, type[RequestError]]] = {cls.code: cls for cls in RequestError.__subclasses__()}
