"""What connect() was asked for, checked once: where the node is and how to speak with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgpack

from skywalker.address import Address
from skywalker.clients.requests import Requests
from skywalker.errors import LocalProtocolError
from skywalker.limits import MAX_FRAME
from skywalker.wire import values
from skywalker.wire.junction import CLOJURE_TIMED_OUT

Dialect = Literal["current", "first"]

CONNECT_TIMEOUT_S: Final = 5.0
MIN_FRAME: Final = 64
"""Bytes; with a smaller limit not even a :cancel would fit."""

CLOJURE_KEYWORD: Final[Any] = msgpack.unpackb(CLOJURE_TIMED_OUT)
"""The default timeout value of the first dialect: what the original client names."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How to speak with a node."""

    address: Address
    timeout_value: bytes = b""  # canonical; empty in the current dialect, where the node chooses it
    hello: Mapping[str, Any] | None = None  # the options of the :hello that opens every connection, if one does
    max_frame: int = MAX_FRAME
    direct: bool = True  # whether to have a connection to each of the node's workers

    @property
    def acks(self) -> bool:
        """Whether received values are to be confirmed."""
        return bool(self.hello and self.hello.get("ack"))

    @classmethod
    def of(
        cls,
        address: str,
        *,
        dialect: Dialect,
        timeout_value: Any,
        name: str | None,
        ack: bool,
        token: str | bytes | None,
        max_frame: int,
        direct: bool,
    ) -> Settings:
        """Check what connect() was given. Raises LocalProtocolError or TooLarge, naming what is allowed."""
        if dialect not in ("current", "first"):
            raise LocalProtocolError(f"dialect {dialect!r} is neither 'current' nor 'first'")
        if not MIN_FRAME <= max_frame <= MAX_FRAME:
            raise LocalProtocolError(f"max_frame of {max_frame} bytes, allowed are {MIN_FRAME} to {MAX_FRAME}")
        # An original node does not know :hello, so it is said only if there is something to say.
        options = {"name": name, "token": token, "ack": ack or None}
        hello = {option: value for option, value in options.items() if value is not None}
        settings = cls(
            address=Address.parse(address),
            timeout_value=values.canonical(values.pack(timeout_value)) if dialect == "first" else b"",
            hello=hello or None,
            max_frame=max_frame,
            direct=direct,
        )
        settings.requests().encode(0, "hello", (hello,), 0)  # raises if that could not be said
        return settings

    def requests(self) -> Requests:
        """Return a new encoder of calls."""
        return Requests(self.timeout_value, self.max_frame)
