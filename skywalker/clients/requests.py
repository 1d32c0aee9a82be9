"""Calls to frames: what may be asked, checked before anything reaches a wire.

Knows the two dialects and every argument's limit; knows no connection and no clock.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal

import msgpack

from skywalker import errors
from skywalker.clients.rpc import Parcel
from skywalker.errors import LocalProtocolError, TooLarge
from skywalker.limits import MAX_FRAME, MAX_TIMEOUT_MS
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, split
from skywalker.wire.junction import ERROR_TYPE, RECV, TIMEOUT_TYPE, TOPIC, frame

MeetingKind = Literal["send", "recv", "take"]
Kind = Literal["send", "recv", "take", "tokens", "topic", "hello", "ping", "cancel", "nodes", "will"]

MAX_TIMEOUT_S: Final = MAX_TIMEOUT_MS // 1000
MEETINGS: Final[frozenset[Kind]] = frozenset(("send", "recv", "take"))
"""The calls that wait for a partner."""

TIMED: Final[frozenset[Kind]] = MEETINGS | {"will"}
"""The calls that wait at the node: their frames say for how long, at the same place in both dialects."""

_METHODS: Final[dict[Kind, str]] = {
    "send": ":send!",
    "recv": ":recv!",
    "take": ":take!",
    "tokens": ":tokens",
    "topic": ":topic",
    "hello": ":hello",
    "ping": ":ping",
    "cancel": ":cancel",
    "nodes": ":nodes",
    "will": ":will!",
}
_TIMEOUT_POSITION: Final = 2
_UNENCODABLE: Final = (TypeError, ValueError, OverflowError, RecursionError, BufferError)


def milliseconds(timeout: float) -> int:
    """Return a timeout in seconds as whole milliseconds, rounded up.

    Raises LocalProtocolError unless it is a number from 0 to MAX_TIMEOUT_S.
    """
    try:
        if 0 <= timeout <= MAX_TIMEOUT_S:
            return math.ceil(timeout * 1000)
    except TypeError:
        pass  # it is no number, and gets the same answer
    raise LocalProtocolError(f"timeout of {timeout!r} seconds, allowed are 0 to {MAX_TIMEOUT_S}")


class Requests:
    """Encodes calls for one connection. Not for use by two threads at a time."""

    __slots__ = ("_max_frame", "_pack", "_timeout_value", "_timeout_value_bytes")

    def __init__(self, timeout_value: bytes = b"", max_frame: int = MAX_FRAME) -> None:
        self._pack = msgpack.Packer(unicode_errors="surrogateescape").pack
        self._max_frame = max_frame
        self._timeout_value_bytes = timeout_value
        self._timeout_value = values.unpack(timeout_value) if timeout_value else None

    def encode(self, id: int, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> bytes:
        """Return the frame of a call; `timeout`, in seconds, is said of those that wait only.

        Raises LocalProtocolError for what the protocol forbids, TooLarge for what does not fit in a frame.
        """
        elements: tuple[Any, ...]
        wait = milliseconds(timeout)
        if kind in TIMED:
            if kind in ("send", "will"):
                self._check_value(arguments[-1])
            elements = (_METHODS[kind], id, wait, *arguments)
            if self._timeout_value_bytes and kind in ("send", "recv"):
                elements = (*elements[:3], self._timeout_value, *arguments)
        else:
            elements = (_METHODS[kind], id, *arguments)
        try:
            body: bytes = self._pack(elements)
        except _UNENCODABLE as error:
            raise LocalProtocolError(
                f"a {kind} cannot be sent as MessagePack: {_why(kind, arguments) or error}"
            ) from error
        size = len(body)
        if size > self._max_frame:
            details = {"size": size, "limit": self._max_frame}
            raise TooLarge(f"{kind} of {size} bytes, limit is {self._max_frame}", details)
        return size.to_bytes(2, "big") + body

    def _check_value(self, value: Any) -> None:
        """Refuse what a receiver could not tell from the node's own words."""
        if isinstance(value, msgpack.ExtType) and value.code in (ERROR_TYPE, TIMEOUT_TYPE):
            raise LocalProtocolError(f"a value of extension type 0x{value.code:02x} is reserved for the node's answers")
        # Equality in Python is the wider one, so that most values are not encoded twice.
        if self._timeout_value_bytes and value == self._timeout_value and self.says_timed_out(values.pack(value)):
            raise LocalProtocolError(f"the value {value!r} is this client's timeout value")

    def says_timed_out(self, result: bytes) -> bool:
        """Whether the encoded result of a send or recv is the timeout value, in the first dialect."""
        return values.canonical(result) == self._timeout_value_bytes


def _why(kind: Kind, arguments: tuple[Any, ...]) -> str:
    """Return which part of an argument cannot be encoded as MessagePack, empty if that is not to be found."""
    from skywalker.clients.unsendable import why_unsendable  # only now: it loads all types that people try

    names = ("topic", "group") if kind == "take" else ("topic", "value")
    told = [each["value"] if isinstance(each, Parcel) else each for each in arguments]
    return next(filter(None, map(why_unsendable, told, names)), "")


def elements_of(request: bytes) -> list[bytes]:
    """Return the encoded elements of one whole frame. Raises errors.BadFrame, as a node would answer."""
    frames, _ = split(request)
    (elements,) = frames
    if isinstance(elements, BadFrame):
        raise errors.BadFrame(f"this is not a MessagePack array of a call: {elements.reason}")
    return elements


def id_in(reply: bytes) -> int | None:
    """Return the id in a frame that could not be decoded as a whole; None if it has none, or is no reply.

    Raises ValueError where it is no array of three values.
    """
    elements = split(reply)[0][0]
    if isinstance(elements, BadFrame) or len(elements) != 3:
        raise ValueError("the node sent what is no MessagePack array of three")
    head = elements[1][0]
    is_integer = head < 0x80 or 0xCC <= head <= 0xD3
    return int(values.unpack(elements[1])) if is_integer else None


def renewed(request: bytes, timeout: float) -> bytes:
    """Return the frame of a meeting with another timeout, in seconds, no longer than the one it had."""
    elements = elements_of(request)
    elements[_TIMEOUT_POSITION] = values.pack(milliseconds(timeout))
    return frame(*elements)


def topic_in(request: bytes) -> bytes:
    """Return the topic, in canonical form, of the frame of a call about one."""
    elements = elements_of(request)
    return elements[-1 if elements[0] in (RECV, TOPIC) else -2]


def topic_of(request: bytes) -> Any:
    """Return the topic of a meeting's frame, or its bytes if Python has no form for it."""
    topic = topic_in(request)
    try:
        return values.unpack(topic)
    except ValueError:
        return topic
