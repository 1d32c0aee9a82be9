"""How a command shows who it is to a node, and which nodes it trusts. No secret stands on the command line."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.access import token
from skywalker.errors import Forbidden, SkywalkerError, Unauthorized, Why

if TYPE_CHECKING:
    import ssl

TOKEN: Final = "SKYWALKER_TOKEN"
"""The variable that may hold the token itself."""

_ADVICE: Final[Mapping[Why, str]] = {
    Why.TLS_WANTED: "give that address, and by --tls-ca its authority if this machine does not know that",
    Why.CERTIFICATE_WANTED: "show one by --tls-cert and --tls-key",
    Why.CERTIFICATE_REFUSED: "show another by --tls-cert and --tls-key",
    Why.MUTE: "its log says why; show who you are by --tls-cert and --tls-key",
    Why.NO_TLS: "leave out skywalkers:// or https://, and --tls-ca and --tls-cert; or give its address for TLS",
    Why.STRANGE_AUTHORITY: "name the file of that authority by --tls-ca",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a command was told of that."""

    token: str | None = field(default=None, repr=False)
    ca: str = ""
    cert: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext | None:
        """Return how to speak TLS if any option asks for it, else None. Raises ConfigError for what is in a file."""
        return self.made_context() if self.ca or self.cert else None

    def made_context(self) -> ssl.SSLContext:
        """Return how to speak TLS. Raises ConfigError for what is in a file."""
        return _context(self.ca, self.cert, self.key)

    def tls(self, where: str) -> ssl.SSLContext | bool | None:
        """Return what is `tls` to reach the nodes at `where`, and others of their cluster. Raises ConfigError."""
        from skywalker.discovery.url import asks_for_tls  # only now: help should be quick

        return self.context() or asks_for_tls(where) or None


@functools.cache
def _context(ca: str, cert: str, key: str) -> ssl.SSLContext:
    from skywalker.tls.contexts import client_context  # only now: help should be quick

    return client_context(ca, cert, key)


def hinted(error: SkywalkerError) -> SkywalkerError:
    """Have an error say what to do about it, by options, if it is about who we are, or about whom we trust."""
    if error.why is not None:
        error.advice = _ADVICE.get(error.why, "")
    elif isinstance(error, Unauthorized):
        error.advice = f"show who you are by --token-file, {TOKEN} or --tls-cert"
    elif isinstance(error, Forbidden):
        error.advice = "only the [access] of the node's config can change that"
    return error


def _text(ctx: click.Context, param: click.Parameter, path: Path | None) -> str | None:
    """Return the token in a file, or in the variable; None if there is neither. It is never repeated."""
    if path is None:
        data, where = os.fsencode(os.environ.get(TOKEN, "")), TOKEN
        if not data:
            return None
    else:
        where = str(path)
        try:
            with path.open("rb") as file:
                data = file.read(token.MAX_BYTES + 1)
        except OSError as error:
            raise click.BadParameter(f"{path} cannot be read: {error.strerror}", ctx, param) from error
    try:
        return token.parse(data)
    except ValueError as error:
        raise click.BadParameter(
            f"{where} holds no token: it is one word, as `skywalker token new` prints it", ctx, param
        ) from error


def tls_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add --tls-ca, --tls-cert and --tls-key; the command gets them as `credentials`, and may get a token in these."""

    @_file("--tls-ca", "trust the authorities in this file, instead of the system's")
    @_file("--tls-cert", "show the certificate in this file")
    @_file("--tls-key", "the key of that certificate, if it is in a file of its own")
    @functools.wraps(command)
    def with_credentials(*args: Any, tls_ca: str, tls_cert: str, tls_key: str, **rest: Any) -> int:
        if tls_key and not tls_cert:
            raise click.UsageError("--tls-key is of use with its certificate only: give --tls-cert too")
        credentials = Credentials(rest.pop("token", None), tls_ca, tls_cert, tls_key)
        return command(*args, credentials=credentials, **rest)

    return with_credentials


def credential_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add --token-file and the options of TLS; the command gets them as `credentials`."""
    return click.option(
        "--token-file",
        "token",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_text,
        help=f"show who you are by the token in this file; without it, by {TOKEN}",
    )(tls_options(command))


def _file(flag: str, help: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    variable = "SKYWALKER" + flag.removeprefix("-").replace("-", "_").upper()
    return click.option(flag, metavar="FILE", default="", envvar=variable, show_envvar=True, help=help)
