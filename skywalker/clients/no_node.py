"""What a client raises that has no node to speak with, and what its program can do about that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skywalker.cause import Cause
from skywalker.errors import RequestError, Unauthorized, Unreachable, Why
from skywalker.tls.words import SPEAKS_TLS

_ADVICE: Final[Mapping[Why, str]] = {
    Why.TLS_WANTED: "connect there, or give tls=",
    Why.CERTIFICATE_WANTED: "load one into the context given as tls=",
    Why.CERTIFICATE_REFUSED: "load another into the context given as tls=",
    Why.MUTE: "its log says why; who you are is known by your certificate, in the context given as tls=",
    Why.NO_TLS: "connect without TLS, or to its port for that",
    Why.STRANGE_AUTHORITY: "load that authority into the context given as tls=",
}


def no_node(where: str, cause: str, more: str = "") -> Unreachable | Unauthorized:
    """Return the error that says why there is no node at `where`, and `more`: Unauthorized if one refuses us."""
    cause = Cause.of(cause)
    why = cause.why
    # With a scheme it is no address, but what knows some.
    text = f"{cause}, at skywalkers://{where}" if why is Why.TLS_WANTED and "://" not in where else cause
    error: Unreachable | Unauthorized
    if why is not None and cause.lasts and why.is_about_us:
        error = Unauthorized(f"not let in at {where}: {text}{more}")
    elif cause.lasts:
        error = Unreachable(f"no node to trust at {where}: {text}{more}")
    else:
        error = Unreachable(f"no node reachable at {where}: {text}{more}")
    if why is not None:
        error.why = why
        error.advice = _ADVICE.get(why, "")
    return error


def refused(where: str, error: RequestError) -> RequestError:
    """Return what a node says of us who connected to `where`; if that is that it speaks TLS, with where it does."""
    is_tls_wanted = isinstance(error, Unauthorized) and error.details.get("tls") is True
    return no_node(where, SPEAKS_TLS) if is_tls_wanted else error  # type: ignore[return-value]  # it is about us
