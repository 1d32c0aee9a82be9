"""What is said where TLS fails; of the two ends, "it" is the other one. Loads no OpenSSL: see causes.py for that."""

from __future__ import annotations

from typing import Final

from skywalker.cause import Cause
from skywalker.errors import Why

MINIMUMS: Final = ("1.2", "1.3")
"""The versions that may be the oldest one accepted, as people write them."""

NO_TLS: Final = Cause("it speaks no TLS", Why.NO_TLS)

CLOSED: Final = Cause("it closed the connection while shaking hands by TLS, as one may that speaks none")

SILENT: Final = Cause("no answer by TLS in time: does it speak TLS?")

SPEAKS_TLS: Final = Cause("it speaks TLS and nothing else", Why.TLS_WANTED)

WANTS_CERTIFICATE: Final = Cause("it wants a certificate", Why.CERTIFICATE_WANTED)

STRANGE_CERTIFICATE: Final = Cause("our certificate is of an authority that it does not trust", Why.CERTIFICATE_REFUSED)

BAD_CERTIFICATE: Final = Cause("it refuses our certificate", Why.CERTIFICATE_REFUSED)

OLD_CERTIFICATE: Final = Cause("our certificate has expired", Why.CERTIFICATE_REFUSED)

REVOKED_CERTIFICATE: Final = Cause("our certificate was revoked", Why.CERTIFICATE_REFUSED)

_ALERT: Final = b"\x15\x03"


def is_alert(data: bytes) -> bool:
    """Whether what came over a connection without TLS, and was not understood, is what TLS answers to that.

    In both dialects no answer begins so: it would be a frame of no array, or a code that there is not.
    """
    return data.startswith(_ALERT)
