"""What it means that a TLS connection was not made or was broken off: in words, with what to do about it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Final

from skywalker.cause import Cause
from skywalker.errors import Why
from skywalker.tls import words
from skywalker.tls.words import NO_TLS

_NAME_CODES: Final = (62, 63, 64)  # of X509_V_ERR_*: host name, e-mail, IP address
_YOUNG_CODE: Final = 9
_OLD_CODE: Final = 10
_AUTHORITY_CODES: Final = (2, 18, 19, 20, 21)

_CAUSES: Final[Mapping[str, str]] = {
    "WRONG_VERSION_NUMBER": NO_TLS,
    "HTTP_REQUEST": NO_TLS,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": words.WANTS_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": words.STRANGE_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": words.BAD_CERTIFICATE,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": words.BAD_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": words.BAD_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": words.OLD_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_REVOKED": words.REVOKED_CERTIFICATE,
    "TLSV1_ALERT_PROTOCOL_VERSION": "no version of TLS is allowed at both ends: it may want 1.3",
    "UNSUPPORTED_PROTOCOL": "no version of TLS is allowed at both ends",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it found nothing that both ends allow, or wants a certificate of ours",
}

_PLACE: Final = re.compile(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$")
"""What stands before and behind the words of OpenSSL."""


def tls_cause(error: Exception) -> Cause:
    """Return in a few words why TLS with another end failed; `error` is one of ssl."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error)
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return Cause("it closed the connection")
    reason = getattr(error, "reason", None) or ""
    said = reason.replace("_", " ").lower() or _PLACE.sub("", str(error.args[-1] if error.args else error))
    return Cause.of(_CAUSES.get(reason, f"TLS failed: {said}"))


def _unverified(error: ssl.SSLCertVerificationError) -> Cause:
    code, text = error.verify_code, _in_a_sentence((error.verify_message or "not verified").rstrip("."))
    if code in _AUTHORITY_CODES:
        return Cause(f"its certificate is of no authority that is trusted here ({text})", Why.STRANGE_AUTHORITY)
    if code in _NAME_CODES:
        said = f"is for other names ({text}): connect by one of those, or have one made for this"
    elif code == _OLD_CODE:
        said = "has expired: it needs a new one"
    elif code == _YOUNG_CODE:
        said = "is not valid yet: does the clock of this machine go right?"
    else:
        said = f"was not accepted: {text}"
    return Cause(f"its certificate {said}", Why.UNVERIFIED)


def _in_a_sentence(text: str) -> str:
    """Return a text as it stands within a sentence: what begins with an abbreviation, such as IP, stays."""
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
