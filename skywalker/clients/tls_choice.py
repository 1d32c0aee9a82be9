"""The context by which a client speaks TLS, as connect() was told."""

from __future__ import annotations

import ssl

from skywalker.errors import LocalProtocolError
from skywalker.tls.contexts import client_context

Context = ssl.SSLContext

Tls = ssl.SSLContext | bool | None
"""What connect() takes: True is the context of the authorities that this machine trusts."""


def chosen(tls: Tls) -> Context:
    """Return the context, the usual one if none was given. Raises LocalProtocolError for what can be none."""
    if tls is None or tls is True:
        return client_context()
    if not isinstance(tls, ssl.SSLContext) or tls.protocol is ssl.PROTOCOL_TLS_SERVER:
        kind = "a context for servers" if isinstance(tls, ssl.SSLContext) else f"of type {type(tls).__name__}"
        raise LocalProtocolError(f"tls is {kind}, allowed are True and an ssl.SSLContext for clients")
    return tls
