"""What connect() was asked for, checked once: where the nodes are and how to speak with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import msgpack

from skywalker.address import Address
from skywalker.clients.requests import Requests, milliseconds
from skywalker.discovery.source import Source, StaticSource
from skywalker.discovery.url import asks_for_tls, source_of
from skywalker.errors import Forbidden, LocalProtocolError, RequestError, Unauthorized
from skywalker.limits import DEFAULT_ADDRESS, MAX_FRAME
from skywalker.wire import values
from skywalker.wire.junction import CLOJURE_TIMED_OUT

if TYPE_CHECKING:
    from skywalker.clients.tls_choice import Context, Tls

Dialect = Literal["current", "first"]

CONNECT_TIMEOUT_S: Final = 5.0
MEET_S: Final = 2.0
"""Seconds for a node to say what it can do, before serve() goes on without knowing: it is an original one."""

MIN_FRAME: Final = 64
"""Bytes; with a smaller limit not even a :cancel would fit."""

CLOJURE_KEYWORD: Final[Any] = msgpack.unpackb(CLOJURE_TIMED_OUT)
"""The default timeout value of the first dialect: what the original client names."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Where the nodes are, and how to speak with them."""

    where: str  # as it may be shown: no secret is in it
    url: str = dataclasses.field(repr=False)  # as it was given
    addresses: frozenset[Address] = frozenset()  # those that were given; none where a source is to be asked
    timeout_value: bytes = b""  # canonical; empty in the current dialect, where the node chooses it
    # What the client has to say in the :hello that opens every connection; a secret may be among that. None where it
    # has nothing to say, and a node that knows no :hello will do.
    hello: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    max_frame: int = MAX_FRAME
    direct: bool = True  # whether to have connections to the workers that own the topics
    resends: bool = True  # whether a send goes out again that a lost connection may have taken to its node
    tls: Context | None = dataclasses.field(default=None, repr=False)  # how to speak TLS, if it is spoken

    @property
    def acks(self) -> bool:
        """Whether received values are to be confirmed."""
        return bool(self.hello and self.hello.get("ack"))

    @property
    def is_plain(self) -> bool:
        """Whether there is one address, at which any node may be, an original one too."""
        return len(self.addresses) == 1

    @property
    def is_local(self) -> bool:
        """Whether there is only the Unix socket of a node on this machine, and no way to another node."""
        return any(address.is_unix for address in self.addresses)

    def refuses_us(self, error: RequestError) -> bool:
        """Whether an error in answer to :hello is about us, and not merely that an original node knows no :hello."""
        return is_about_us(error) or (self.hello is not None and not error.retryable)

    def source(self) -> Source:
        """Return a new source of addresses. Raises DiscoveryError if a library is missing."""
        return StaticSource(self.addresses) if self.addresses else source_of(self.url)

    @classmethod
    def of(
        cls,
        where: str,
        *,
        dialect: Dialect,
        timeout_value: Any,
        name: str | None,
        ack: bool,
        token: str | bytes | None,
        max_frame: int,
        direct: bool,
        resend: bool = True,
        tls: Tls = None,
    ) -> Settings:
        """Check what connect() was given. Raises LocalProtocolError or TooLarge, naming what is allowed.

        Raises DiscoveryError if a library is missing.
        """
        check_where(where, DEFAULT_ADDRESS)
        if dialect not in ("current", "first"):
            raise LocalProtocolError(f"dialect {dialect!r} is neither 'current' nor 'first'")
        if not MIN_FRAME <= max_frame <= MAX_FRAME:
            raise LocalProtocolError(f"max_frame of {max_frame} bytes, allowed are {MIN_FRAME} to {MAX_FRAME}")
        if not isinstance(token, (str, bytes, type(None))):
            raise LocalProtocolError(f"the token is of type {type(token).__name__}, allowed are str and bytes")
        # A file that holds one ends with a newline, and so may what was read of it.
        token = None if token is None else token.strip()
        if token is not None and not token:
            raise LocalProtocolError("the token is empty: leave it out, or see whether its file is the right one")
        options = {"name": name, "token": token, "ack": ack or None}
        hello = {option: value for option, value in options.items() if value is not None}
        # Nothing is a way to say "the default", but not within a list.
        source = source_of(where) if where.strip() else StaticSource(frozenset({Address.parse("")}))
        addresses = source.look().addresses if isinstance(source, StaticSource) else frozenset()
        is_local = any(address.is_unix for address in addresses)
        settings = cls(
            where=str(source),
            url=where,
            addresses=addresses,
            timeout_value=values.canonical(values.pack(timeout_value)) if dialect == "first" else b"",
            hello=hello or None,
            max_frame=max_frame,
            direct=direct and not is_local,
            resends=resend,
            tls=context_of(where, tls, is_local),
        )
        settings.requests().encode(0, "hello", ({**hello, "ring": True},), 0)  # raises if that could not be said
        return settings

    def requests(self) -> Requests:
        """Return a new encoder of calls."""
        return Requests(self.timeout_value, self.max_frame)


def check_where(where: object, example: str) -> None:
    """Raise LocalProtocolError for what is no text, as a port or a pair of host and port."""
    if not isinstance(where, str):
        raise LocalProtocolError(
            f"where is of type {type(where).__name__}: write host:port as a str, such as {example!r}"
        )


def check_patience(connect_timeout: float, timeout: object) -> None:
    """Raise LocalProtocolError unless connect() was told in the right way for how long to try."""
    if timeout is not None:
        raise LocalProtocolError(
            "connect() has no timeout: connect_timeout says how long it tries, and each call has a timeout of its own"
        )
    milliseconds(connect_timeout)


def is_about_us(error: RequestError) -> bool:
    """Whether a node says by this that it does not want us, as who we are or as what we speak."""
    return isinstance(error, (Unauthorized, Forbidden))


def context_of(where: str, tls: Tls, is_local: bool = False) -> Context | None:
    """Return how to speak TLS with the nodes at `where`, None if it is not spoken. Raises LocalProtocolError."""
    if tls is False and asks_for_tls(where):
        raise LocalProtocolError("skywalkers:// means TLS, and tls=False forbids it: leave out one of them")
    if not (tls or asks_for_tls(where)):
        return None
    if is_local:
        raise LocalProtocolError("a Unix socket knows no TLS, since nothing leaves the machine by it: leave out tls")
    from skywalker.clients.tls_choice import chosen  # only now: it loads OpenSSL

    return chosen(tls)
