"""What both ends of a TLS connection are told beforehand: which certificate to show, and which to trust."""

from __future__ import annotations

import contextlib
import os
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skywalker.errors import ConfigError

GROUP: Final = "prime256v1"
"""For the exchange of keys: the one that whoever speaks TLS 1.3 must know (RFC 8446, section 9.1)."""

_CERTIFICATE: Final = b"CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"
"""What the first and the last line of these end with, in PEM form."""


def client_context(ca: str = "", cert: str = "", key: str = "") -> ssl.SSLContext:
    """Return how a client speaks TLS: version 1.2 at least, to a node whose name its certificate has.

    `ca` is a file with the authorities to trust, empty for those of the system; `cert` one with a certificate of its
    own, to show to nodes that ask for it, and `key` with the key of that, if it is apart. Raises ConfigError for a
    file that is not what it should be.
    """
    with _reading_authorities(ca):
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert:
        _load(context, cert, key)
    return context


def own_context(cert: str, key: str = "") -> ssl.SSLContext:
    """Return how a node speaks TLS to itself: version 1.2 at least, and whoever answers there is trusted.

    It shows the same certificate as to others. Raises ConfigError as client_context() does.
    """
    # No authority is asked about it, and to read those of the system would take longer than all else.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, cert, key)
    return context


def server_context(
    cert: str, key: str = "", ca: str = "", *, minimum: str = "1.3", required: bool = False
) -> ssl.SSLContext:
    """Return how a node speaks TLS to those that connect to it, with the certificate chain in the file `cert`.

    The key may be in that file or in one of its own. With `ca`, clients are asked for certificates, which these
    authorities must have signed; one that has none is turned away only if it is `required`. `minimum` is one of
    words.MINIMUMS. Raises ConfigError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = getattr(ssl.TLSVersion, "TLSv" + minimum.replace(".", "_"))
    # A session could be resumed only at the worker that made it: a ticket would be bytes for nothing.
    context.num_tickets = 0
    # Any group would be a client's choice, and with the largest of them one handshake takes a fifth of a second.
    context.set_ecdh_curve(GROUP)
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    _load(context, cert, key)
    if ca:
        with _reading_authorities(ca):
            context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


@contextlib.contextmanager
def _reading_authorities(ca: str) -> Iterator[None]:
    if ca:
        _check_readable("the authorities to trust", ca)
    try:
        yield
    except ssl.SSLError as error:
        raise ConfigError(f"{ca} holds no certificate of an authority, in PEM form") from error
    except OSError as error:  # it was looked at, and is gone
        raise ConfigError(f"{ca} cannot be read: {error.strerror}") from error


def _load(context: ssl.SSLContext, cert: str, key: str) -> None:
    _check_readable("a certificate", cert)
    if key:
        _check_readable("the key of a certificate", key)
    try:
        _load_chain(context, cert, key)
    except OSError as error:  # it was looked at, and is gone
        raise ConfigError(f"{' or '.join(filter(None, (cert, key)))} cannot be read: {error.strerror}") from error


def _load_chain(context: ssl.SSLContext, cert: str, key: str) -> None:
    try:
        # Without a word for it OpenSSL would ask for that word at the terminal.
        context.load_cert_chain(cert, key or None, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"{key or cert} holds the key of another certificate than that in {cert}") from error
        content = Path(cert).read_bytes()
        if not key and _CERTIFICATE in content and _KEY not in content:
            raise ConfigError(f"{cert} holds no key: name the file of its key too, by tls_key (--tls-key)") from error
        holder = f"{cert} and {key} hold" if key else f"{cert} holds"
        reason = f": {error.reason.replace('_', ' ').lower()}" if error.reason else ""
        raise ConfigError(
            f"{holder} no certificate with its key, in PEM form and without a password{reason}"
        ) from error


def _check_readable(what: str, file: str) -> None:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            # To open a pipe would be to wait for somebody at its other end.
            raise ConfigError(f"{file}, which should hold {what}, is not a regular file")
        with Path(file).open("rb"):
            pass
    except OSError as error:
        raise ConfigError(f"{file}, which holds {what}, cannot be read: {error.strerror}") from error
