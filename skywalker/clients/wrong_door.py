"""What there is at an address where no node answers, found out for the sake of an error that says so.

It is asked in the words of those that people mistake for a node's door, over a connection of its own for each, with
blocking sockets: whoever has an event loop asks in a thread.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Final

from skywalker.address import Address
from skywalker.dialling import server_name
from skywalker.limits import DEFAULT_ADMIN_PORT, DEFAULT_PORT, DEFAULT_PUBSUB_PORT
from skywalker.tls.words import is_alert
from skywalker.wire.frames import split
from skywalker.wire.junction import ERROR, NIL
from skywalker.wire.pubsub import ACKED, unsubscribe

if TYPE_CHECKING:
    import ssl

ANSWER_S: Final = 1.2
"""Seconds that a node has to answer the first question of a client, which takes less than a thousandth of one."""

LOOK_S: Final = 0.75
"""Seconds to find out what is there, if there is time for that; so connect() has failed after two."""

_QUESTIONS: Final = 3
"""Connections on which that is asked, one after the other."""

_HTTP_REQUEST: Final = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

_MAX_ANSWER: Final = 4096

OURS: Final = f"a node's door for clients is usually port {DEFAULT_PORT}"

SILENT: Final = f"what is there takes connections, but does not answer like a node: it hangs, or is not a node; {OURS}"
"""Said of what says nothing at all. That may be a node whose worker is only about to start, so it is given time."""


def what_is_at(address: Address, tls: ssl.SSLContext | None, within: float = LOOK_S) -> str:
    """Return in words what took our connection and does not answer as a node; empty if nothing takes any, or a node did
    and says itself why it does not answer. What says nothing `within` so many seconds is silent."""
    patience = within / _QUESTIONS
    try:
        said = _ask(address, tls, _HTTP_REQUEST, patience)
        if any(frame[:2] == [ERROR, NIL] for frame in split(said)[0]):  # which says why it serves nobody more, say
            return ""
        if said.startswith(b"HTTP/"):
            if b'"status":"OK"' in said or b'"status":"ERROR"' in said:
                return f"this is the admin door of a node (usually port {DEFAULT_ADMIN_PORT}), or one like it; {OURS}"
            return f"this is an HTTP server; {OURS}"
        if _ask(address, tls, unsubscribe(b"skywalker"), patience) == ACKED:
            return (
                f"this is a pub/sub door (usually {DEFAULT_PUBSUB_PORT}): use skywalker.pubsub.connect() there; {OURS}"
            )
        if tls is None and not address.is_unix and (is_alert(said) or (not said and _speaks_tls(address, patience))):
            return f"it speaks TLS: if it is a node's door for clients, connect to skywalkers://{address}; {OURS}"
    except OSError:
        return ""
    if said:
        return f"what is there says {said[:40]!r} and is not a node; {OURS}"
    return SILENT


def _speaks_tls(address: Address, patience: float) -> bool:
    import ssl  # only now: it loads OpenSSL

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is told to it, and nothing that it says is believed
    try:
        _ask(address, context, b"", patience)
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
    return True


def _ask(address: Address, tls: ssl.SSLContext | None, question: bytes, patience: float) -> bytes:
    """Return what is answered in its time, as far as it is read at once. Raises OSError if there is no connection."""
    with contextlib.ExitStack() as stack:
        if address.is_unix:
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.settimeout(patience)
            sock.connect(address.path)
        else:
            sock = stack.enter_context(socket.create_connection((address.host, address.port), patience))
            if tls is not None:
                sock = stack.enter_context(tls.wrap_socket(sock, server_hostname=server_name(address.host)))
        said = b""
        with contextlib.suppress(OSError):
            sock.sendall(question)
            while question and len(said) < _MAX_ANSWER and (more := sock.recv(_MAX_ANSWER)):
                said += more
                if said == ACKED:
                    break
        return said
