"""The options that say where the nodes are, how to get to them, and who we are there."""

from __future__ import annotations

import dataclasses
import ssl
from pathlib import Path
from typing import Final, Self

from skywalker.access import token
from skywalker.clients.settings import CLOJURE_KEYWORD, Settings
from skywalker.errors import ConfigError, LocalProtocolError
from skywalker.limits import DEFAULT_ADDRESS, MAX_FRAME
from skywalker.pipeline.options import Options
from skywalker.tls.contexts import client_context

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
