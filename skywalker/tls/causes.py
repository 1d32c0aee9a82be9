"""What it means that a TLS connection was not made or was broken off: in words, with what to do about it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

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


def tls_cause(error: Exception) -> str:
    """Return in a few words why TLS with another end failed; `error` is one of ssl."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error)
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return "it closed the connection"
    reason = getattr(error, "reason", None) or ""
    return _CAUSES.get(reason, f"TLS failed: {reason.replace('_', ' ').lower() or error}")


def _unverified(error: ssl.SSLCertVerificationError) -> str:
    code, text = error.verify_code, (error.verify_message or "not verified").rstrip(".")
    text = text[:1].lower() + text[1:]
    if code in _NAME_CODES:
        return f"its certificate is for other names ({text}): connect by one of those, or have one made for this"
    if code == _OLD_CODE:
        return "its certificate has expired: it needs a new one"
    if code == _YOUNG_CODE:
        return "its certificate is not valid yet: does the clock of this machine go right?"
    if code in _AUTHORITY_CODES:
        return f"its certificate is of no authority that is trusted here ({text}): give that authority's file"
    return f"its certificate was not accepted: {text}"
