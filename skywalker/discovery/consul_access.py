"""Where a Consul is, and what it takes to be let in."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Final
from urllib.parse import urlsplit

from skywalker.address import Address, shown
from skywalker.errors import LocalProtocolError

DEFAULT_PORT: Final = 8500
DEFAULT_TLS_PORT: Final = 8501


@dataclasses.dataclass(frozen=True, slots=True)
class ConsulAccess:
    """The HTTP API of one Consul. The files are PEM."""

    address: Address
    tls: bool = False
    token: str = dataclasses.field(default="", repr=False)
    ca_file: str = ""  # empty: the authorities that this machine trusts
    cert_file: str = ""
    key_file: str = ""  # empty: the key is in cert_file

    @classmethod
    def parse(
        cls, url: str, *, token: str = "", ca_file: str = "", cert_file: str = "", key_file: str = ""
    ) -> ConsulAccess:
        """Read "http://host:8500" or "https://host:8501". Raises LocalProtocolError."""
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            if (
                parts.scheme in ("http", "https")
                and parts.hostname
                and parts.port != 0
                and parts.path in ("", "/")
                and not (parts.username or parts.password or parts.query or parts.fragment)
            ):
                tls = parts.scheme == "https"
                address = Address(parts.hostname, parts.port or (DEFAULT_TLS_PORT if tls else DEFAULT_PORT))
                return cls(address, tls, token, ca_file, cert_file, key_file)
        raise LocalProtocolError(
            f"{shown(url)} is no URL of a Consul: write http://host:{DEFAULT_PORT} or https://host:8501"
        )

    def __str__(self) -> str:
        return f"Consul at {'https' if self.tls else 'http'}://{self.address}"
