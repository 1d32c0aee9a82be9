"""The Silk dialect: messages between nodes, each one frame of JSON.

A direct message is that frame. What is broadcast has a frame with its type before it, so that who does not want it
need not be sent it. Nothing here knows a socket.
"""

from __future__ import annotations

import dataclasses
import json
import math
import uuid
from typing import Any, Final

from skywalker.errors import LocalProtocolError, RemoteProtocolError, TooLarge
from skywalker.limits import MIB

MAX_MESSAGE: Final = MIB
"""Bytes of one message; longer ones are neither sent nor read."""

MAX_NAME: Final = 255
"""Characters of a node's id, of a message's id and of a type."""

MAX_REASON: Final = 1000
"""Characters of the text of an error."""

ALL: Final = "_all"
"""The `dest` of what is broadcast."""

JOIN: Final = "_join"  # asks a member in; answered with the cluster
CONNECT: Final = "_connect"  # makes a node known to a member; answered with that member's own node object
MEMBERS: Final = "_members"  # asks for the same as a join does, and joins nothing
LEAVE: Final = "_leave"
KEEPALIVE: Final = "_ka"
FAIL: Final = "_fail"
REPLY: Final = "_reply"

TO_ANYBODY: Final = (JOIN, MEMBERS)
"""What may be said to an endpoint before its node's id is known."""

TO_ALL: Final = (LEAVE, KEEPALIVE, FAIL)
"""What is broadcast. It counts for nothing if it was sent: any stranger can do that, in anybody's name."""

# Codes of errors, beside their text.
STRANGER: Final = "stranger"  # the sender is no member there
UNKNOWN_TYPE: Final = "unknown-type"  # nobody handles it there
FAILED: Final = "failed"  # its handler did

INTERNAL: Final = "_"
"""What types begin with that are the dialect's own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One message. `dest` is a node's id, ALL, or empty as long as nobody knows it."""

    src: str
    dest: str
    id: str
    type: str
    data: Any = None  # whatever JSON can say
    reply: str = ""  # the id of the message that this one answers
    silent: bool = False  # the sender wants no reply

    def encode(self) -> bytes:
        """Return its frame. Raises LocalProtocolError for data that JSON cannot say, TooLarge beyond MAX_MESSAGE."""
        fields: dict[str, Any] = {"src": self.src, "dest": self.dest, "id": self.id, "type": self.type}
        if self.data is not None:
            fields["data"] = self.data
        if self.reply:
            # The dialect's own page calls it by both names.
            fields |= {"reply": self.reply, "parent": self.reply}
        if self.silent:
            fields["silent"] = True
        try:
            frame = json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise LocalProtocolError(f"the data of {self.type!r} cannot be said in JSON: {error}") from error
        if len(frame) > MAX_MESSAGE:
            raise TooLarge(
                f"the message {self.type!r} of {len(frame)} bytes is longer than {MAX_MESSAGE}",
                {"size": len(frame), "limit": MAX_MESSAGE},
            )
        return frame

    @property
    def wants_reply(self) -> bool:
        """Whether somebody waits for a reply."""
        return self.dest != ALL and not self.silent

    def reply_with(self, src: str, id: str, data: Any) -> Message:
        """Return the reply of the node `src` to this message."""
        return Message(src, self.src, id, REPLY, data, reply=self.id)

    @classmethod
    def decode(cls, frame: bytes) -> Message:
        """Read a frame. Raises RemoteProtocolError for what is no message."""
        if len(frame) > MAX_MESSAGE:
            raise RemoteProtocolError(f"a message of {len(frame)} bytes, allowed are {MAX_MESSAGE}")
        try:
            fields = json.loads(frame, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            raise RemoteProtocolError(f"a message that is no JSON: {str(error)[:MAX_NAME]}") from error
        match fields:
            case {"src": str(src), "id": str(id), "type": str(type)} if is_name(src) and is_name(id):
                dest = fields.get("dest")
                reply = fields.get("reply") or fields.get("parent") or ""
                if dest is None and type in TO_ANYBODY:
                    dest = ""
                if isinstance(dest, str) and isinstance(reply, str) and is_name(type):
                    return cls(src, dest, id, type, fields.get("data"), reply, fields.get("silent") is True)
        raise RemoteProtocolError("a message that lacks src, dest, id or type, or has one that is not printable text")


def is_name(text: str) -> bool:
    """Whether this can be an id or a type: half a surrogate pair, for one, cannot be a topic of ZeroMQ."""
    return 0 < len(text) <= MAX_NAME and text.isprintable()


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number[:MAX_NAME]} is too big for a number")
    return value


def new_id() -> str:
    """Return an id that nothing else has."""
    return str(uuid.uuid4())


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
