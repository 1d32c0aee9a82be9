"""What the certificate says that a node shows: whose it is, and how long it is good."""

from __future__ import annotations

import dataclasses
import ssl
import time
from typing import Any, Final

from skywalker.errors import ConfigError
from skywalker.tls.contexts import server_context
from skywalker.tls.records import Records

_NO_CHECK_TIME: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which Python has no name for."""


@dataclasses.dataclass(frozen=True, slots=True)
class Certificate:
    """One that clients could be shown; times are seconds since 1970."""

    names: tuple[str, ...]
    good_from: float
    good_until: float

    @classmethod
    def read(cls, cert: str, key: str = "") -> Certificate:
        """Return that of the file `cert`.

        Raises ConfigError if it, or its `key`, is not what a node can show, or no client would ever take it.
        """
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname = False
        # Python tells what is in a certificate only to who trusts it: so one does, in memory, and nothing else.
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
        server = Records(server_context(cert, key), server_side=True)
        ours = Records(client)
        try:
            client.load_verify_locations(cert)
            while not (ours.shake_hands() and server.shake_hands()):
                server.feed(ours.output())
                server.shake_hands()
                ours.feed(server.output())
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(f"{cert}: no client takes this certificate: {error.verify_message}") from error
        except OSError as error:  # those of ssl, too
            raise ConfigError(f"{cert}: it was read twice, and was not the same: is it being written?") from error
        found: Any = ours.certificate()
        return cls(ours.names(), *(ssl.cert_time_to_seconds(found[name]) for name in ("notBefore", "notAfter")))

    def fault(self, now: float) -> str:
        """Return why no client takes it at a time, empty if that is no reason."""
        if now < self.good_from:
            return f"is good only from {_date(self.good_from)} on"
        return f"expired on {_date(self.good_until)}" if now > self.good_until else ""


def fault_of(cert: str, key: str = "") -> str:
    """Return why no client takes the certificate of a file now, empty if that is no reason.

    Raises ConfigError if it, or its `key`, is not what a node can show.
    """
    fault = Certificate.read(cert, key).fault(time.time())
    return fault and f"the certificate in {cert} {fault}: no client takes it"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
