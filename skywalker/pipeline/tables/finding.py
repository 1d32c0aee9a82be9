"""How readers and writers get to a node: what their options say of it, and how another is found when it is lost."""

from __future__ import annotations

import dataclasses
import random
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from skywalker import backoff
from skywalker.access import token
from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.clients.blocking.connection import Connection, connection
from skywalker.clients.blocking.dialer import Dialer
from skywalker.clients.homes import Homes, no_node
from skywalker.clients.settings import CLOJURE_KEYWORD, Settings
from skywalker.dialling import cause_of
from skywalker.errors import ConfigError, LocalProtocolError, RemoteProtocolError, Unauthorized, Unreachable
from skywalker.limits import DEFAULT_ADDRESS, MAX_FRAME
from skywalker.pipeline.options import Options
from skywalker.tls.contexts import client_context
from skywalker.wire import values
from skywalker.wire.frames import split
from skywalker.wire.junction import HELLO, NIL, frame, refusal

ADDRESS: Final = "address"
"""Where the nodes are, as skywalker.connect() takes it: a list of hosts, silk://, dns:// or consul://."""

TOKEN: Final = "token"
TOKEN_FILE: Final = "tokenFile"
TLS_CA: Final = "tls_ca"
TLS_CERT: Final = "tls_cert"
TLS_KEY: Final = "tls_key"

OPTIONS: Final = (ADDRESS, TOKEN, TOKEN_FILE, TLS_CA, TLS_CERT, TLS_KEY)
"""All of them, which readers and writers have alike."""


@dataclasses.dataclass(frozen=True, slots=True)
class Nodes:
    """What they say. It goes to every task, where the files must be, too: nothing of them is kept here."""

    address: str
    token: str = dataclasses.field(default="", repr=False)
    token_file: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""

    @classmethod
    def parse(cls, options: Options) -> Self:
        """Take the options. Raises ConfigError for one that is wrong; no token is ever repeated."""
        # An empty one is a mistake: a variable not set.
        if options.is_blank(ADDRESS):
            raise options.wrong(ADDRESS, f"the address of a node; {DEFAULT_ADDRESS} is meant only where it is left out")
        if options.has(TOKEN) and options.has(TOKEN_FILE):
            raise ConfigError(f"the options {TOKEN!r} and {TOKEN_FILE!r} exclude each other")
        for name in (TOKEN, TOKEN_FILE):
            if options.is_blank(name):
                raise ConfigError(f"option {name!r} is empty: leave it out, or say who this is")
        if options.has(TLS_KEY) and not options.has(TLS_CERT):
            raise ConfigError(f"option {TLS_KEY!r} is of use with its certificate only: give {TLS_CERT!r} too")
        nodes = cls(
            address=options.text(ADDRESS, DEFAULT_ADDRESS),
            token=options.text(TOKEN),
            token_file=options.text(TOKEN_FILE),
            tls_ca=options.text(TLS_CA),
            tls_cert=options.text(TLS_CERT),
            tls_key=options.text(TLS_KEY),
        )
        nodes.settings(name="")  # raises what is wrong here, and not only in a task
        return nodes

    def settings(self, *, name: str, ack: bool = False) -> Settings:
        """Return how to get to the nodes, over one connection, and call ourselves `name` there.

        With `ack`, a sender hears True only once its value was acknowledged. Raises ConfigError for what is no address,
        and for a file that is not what it should be.
        """
        try:
            return Settings.of(
                self.address,
                dialect="current",
                timeout_value=CLOJURE_KEYWORD,
                name=name,
                ack=ack,
                token=self._read_token(),
                tls=self._context(),
                max_frame=MAX_FRAME,
                direct=False,
            )
        except LocalProtocolError as error:
            raise ConfigError(f"option {ADDRESS!r}: {error}") from error

    def _read_token(self) -> str | None:
        if not self.token_file:
            return self.token or None
        try:
            with Path(self.token_file).open("rb") as file:
                return token.parse(file.read(token.MAX_BYTES + 1))
        except OSError as error:
            raise ConfigError(f"option {TOKEN_FILE!r}: {self.token_file} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"option {TOKEN_FILE!r}: {self.token_file} holds no token: it is one word") from error

    def _context(self) -> ssl.SSLContext | None:
        if not (self.tls_ca or self.tls_cert):
            return None
        try:
            return client_context(self.tls_ca, self.tls_cert, self.tls_key)
        except ConfigError as error:
            raise ConfigError(f"options {TLS_CA!r}, {TLS_CERT!r} and {TLS_KEY!r}: {error}") from error


HELLO_S: Final = 2.0
"""Seconds that a node has to say who it is, after which another is tried."""

_SIZE_BYTES: Final = 2
"""Of a frame, before it."""


class Finder:
    """Dials and greets nodes, a step at a time, and hands over connections. Not for use by two threads at a time."""

    def __init__(self, settings: Settings, *, needs_ack: bool = False) -> None:
        """Find nodes of which we know by `settings`, and with `needs_ack` no others than know acknowledgements."""
        self._where = settings.where
        self._needs_ack = needs_ack
        self._hello = frame(HELLO, NIL, values.pack({**(settings.hello or {}), "ring": True}))
        self._homes = Homes()
        self._dialer = Dialer(settings, self._homes)
        self._greeted: Connection | None = None  # has yet to answer
        self._answer = b""
        self._answer_by = 0.0
        self._failures = 0  # connections and attempts lost in a row
        self.rest = b""
        """What came over the connection that was found last, behind the answer to :hello: to be taken first."""
        self._has_found = False
        self.cause = Cause("")
        """Why the last connection was lost, or could not be made."""

    @property
    def address(self) -> Address | None:
        """The node that was found, or is tried."""
        return self._dialer.address

    def learn(self, members: Iterable[Address]) -> None:
        """These are the nodes of the cluster."""
        self._homes.learn(members)

    def find(self, patience_s: float) -> Connection:
        """Return a connection to a node. Raises Unreachable if there is none after so long, or as advance() does.

        At once if none would let us in, however often it was asked.
        """
        deadline = time.monotonic() + patience_s
        while (found := self.advance(deadline)) is None:
            if time.monotonic() >= deadline or (self.cause.lasts and not self._has_found):
                raise self.unreachable()
        return found

    def advance(self, until: float) -> Connection | None:
        """Go on, to `until` at most; return the connection once there is one, to a node that knows us.

        Raises RequestError if a node refuses us for good, RemoteProtocolError if it knows no acknowledgements.
        """
        try:
            if self._greeted is None:
                opening = self._dialer.advance(until)
                if opening is None:
                    return None
                self._greeted = connection(opening)
                self._answer, self._answer_by = b"", time.monotonic() + HELLO_S
                self._greeted.write(self._hello)
            if not self._hear(self._greeted, until):
                return None
            self._judge()
        except (OSError, ValueError) as error:  # what answers may be anything
            self.lost(cause_of(error))
            return None
        found, self._greeted = self._greeted, None
        self._homes.settle()
        self._has_found = True
        return found

    def works(self) -> None:
        """The node that was found does what it is for: if it is lost, that is the first failure in a row."""
        self._failures = 0

    def lost(self, cause: str) -> None:
        """The node is of no use, or not any more: look elsewhere first, and after a pause."""
        self._drop()
        self.cause = Cause.of(cause)
        self._homes.avoid(self._dialer.address)
        self._dialer.pause(backoff.delay(self._failures, random.random()))
        self._failures += 1

    def unreachable(self) -> Unreachable | Unauthorized:
        """Return the error that says that there is no node."""
        return no_node(self._where, self.cause or self._dialer.cause)

    def close(self) -> None:
        """Stop looking."""
        self._drop()
        self._dialer.interrupt()
        self._dialer.close()

    def _drop(self) -> None:
        if self._greeted is not None:
            self._greeted.close()
            self._greeted = None

    def _hear(self, greeted: Connection, until: float) -> bool:
        """Take what is answered to :hello, to `until` at most; whether that is all of it.

        Raises OSError if it takes too long.
        """
        while self._missing() > 0:
            data = greeted.read(max(0.0, min(until, self._answer_by) - time.monotonic()))
            if data is not None:
                self._answer += data
            elif time.monotonic() >= self._answer_by:
                raise ConnectionError(f"the node at {self.address} does not answer :hello")
            elif time.monotonic() >= until:
                return False
        end = len(self._answer) + self._missing()
        self._answer, self.rest = self._answer[:end], self._answer[end:]
        return True

    def _missing(self) -> int:
        """Return how many bytes there must still be, as far as is known; less than 0 if there are more."""
        if len(self._answer) < _SIZE_BYTES:
            return _SIZE_BYTES - len(self._answer)
        return _SIZE_BYTES + int.from_bytes(self._answer[:_SIZE_BYTES], "big") - len(self._answer)

    def _judge(self) -> None:
        """Look at the answer. Raises OSError if another node may do, and what advance() does."""
        match split(self._answer)[0]:
            case [[method, _, packed]] if method == HELLO:
                greeting = values.unpack(packed)
            case _:
                raise ConnectionError(f"what is at {self.address} does not answer :hello as a node does")
        error = refusal(greeting)
        if error is not None and error.retryable:
            raise ConnectionError(str(error))
        if error is not None:
            raise error
        match greeting:
            case {"extensions": [*extensions]} if "ack" in extensions:
                pass
            case _ if self._needs_ack:
                raise RemoteProtocolError(f"the node at {self.address} knows no acknowledgements")
