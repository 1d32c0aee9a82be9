"""What is said where TLS fails; of the two ends, "it" is the other one. Loads no OpenSSL: see causes.py for that."""

from __future__ import annotations

from typing import Final

MINIMUMS: Final = ("1.2", "1.3")
"""The versions that may be the oldest one accepted, as people write them."""

NO_TLS: Final = "it speaks no TLS: connect without, or to its TLS port"

CLOSED: Final = "it closed the connection while shaking hands by TLS, as one may that speaks none"

SILENT: Final = "no answer by TLS in time: does it speak TLS?"

SPEAKS_TLS: Final = "it speaks TLS and nothing else: connect to skywalkers://, or give tls="

WANTS_CERTIFICATE: Final = "it wants a certificate: load ours into the context given as tls="

STRANGE_CERTIFICATE: Final = "our certificate is of an authority that it does not trust"

BAD_CERTIFICATE: Final = "it refuses our certificate"

OLD_CERTIFICATE: Final = "our certificate has expired: have a new one made"

REVOKED_CERTIFICATE: Final = "our certificate was revoked: have a new one made"

ABOUT_US: Final[frozenset[str]] = frozenset(
    (SPEAKS_TLS, WANTS_CERTIFICATE, STRANGE_CERTIFICATE, BAD_CERTIFICATE, OLD_CERTIFICATE, REVOKED_CERTIFICATE)
)
"""What another attempt would only be told again."""

_ALERT: Final = b"\x15\x03"


def is_alert(data: bytes) -> bool:
    """Whether what came over a connection without TLS, and was not understood, is what TLS answers to that.

    In both dialects no answer begins so: it would be a frame of no array, or a code that there is not.
    """
    return data.startswith(_ALERT)
