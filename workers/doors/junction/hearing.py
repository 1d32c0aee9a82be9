"""Which errors a client hears of: one of the published dialects takes them for values."""

from __future__ import annotations

from typing import Final

from skywalker.errors import (
    BadArity,
    BadFrame,
    BadId,
    BadTimeout,
    Cancelled,
    Forbidden,
    RequestError,
    Unauthorized,
)
from skywalker.wire import junction as wire
from skywalker.wire.junction import RECV, SEND, TOKENS
from workers.access.admission import Impostor
from workers.doors.connection import Connection

PUBLISHED: Final = (SEND, RECV, TOKENS)
"""The methods of the published dialects, whose clients take an error for a value."""

KNOWN: Final = (BadArity, BadTimeout, Cancelled)
"""Errors that such a client may hear: of calls that the server of these dialects, too, answered with a mistake, and of
one that its client has cancelled, as none of them can."""


def may_hear(method: bytes, error: RequestError) -> bool:
    """Whether even a client that knows no errors is told of this one: of calls that only others make it is."""
    return method not in PUBLISHED or isinstance(error, KNOWN)


def is_beyond_time(method: bytes, error: RequestError) -> bool:
    """Whether it would be no answer that the time is over: there is none, or nobody can tell whose."""
    return method == TOKENS or isinstance(error, BadFrame | BadId)


def note(connection: Connection, method: bytes, error: RequestError, is_heard: bool) -> None:
    """Tell of a refusal in the log: that of a right, and any that its client does not hear.

    That of a greeting which says nothing is none: some only see whether we live.
    """
    is_about_rights = isinstance(error, Unauthorized | Forbidden)
    if not is_heard or (is_about_rights and (isinstance(error, Impostor | Forbidden) or method != wire.HELLO)):
        connection.commons.admission.refusals.note(connection.peer, error)
