"""What is said of TLS that failed."""

from __future__ import annotations

import ssl

import pytest

from skywalker.errors import Why
from skywalker.tls.causes import tls_cause


def unverified(code: int, text: str) -> ssl.SSLCertVerificationError:
    """Return the error of a certificate that does not hold."""
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] (_ssl.c:1000)")
    error.verify_code, error.verify_message = code, text
    return error


@pytest.mark.parametrize(
    ("code", "text", "says", "why"),
    [
        (64, "IP address mismatch, it is not valid for '::1'.", "(IP address mismatch, it", Why.UNVERIFIED),
        (62, "Hostname mismatch", "(hostname mismatch)", Why.UNVERIFIED),
        (68, "CA signature digest algorithm too weak", "not accepted: CA signature", Why.UNVERIFIED),
        (19, "self-signed certificate in certificate chain", "trusted here (self-signed", Why.STRANGE_AUTHORITY),
        (10, "certificate has expired", "has expired", Why.UNVERIFIED),
    ],
)
def test_a_certificate_that_does_not_hold_is_told_in_a_sentence(code: int, text: str, says: str, why: Why) -> None:
    cause = tls_cause(unverified(code, text))
    assert says in cause
    assert cause.why is why
    assert cause.lasts


def test_what_has_no_name_is_told_without_the_lines_of_a_library() -> None:
    cause = tls_cause(ssl.SSLError(1, "[SSL] PEM lib (_ssl.c:3926)"))
    assert cause == "TLS failed: PEM lib"
    assert cause.why is None
    assert not cause.lasts
