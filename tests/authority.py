"""A certificate authority for a test, and what it signs, in files."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from skywalker.tls import authority

DAYS: Final = 30
"""How long an authority counts; what it signs does for one day."""


class Authority:
    """Its certificate is in the file `ca`; what it signs is written to the same directory.

    All have one name, as those that `skywalker certs` makes: it is by their keys that they differ.
    """

    def __init__(self, directory: Path, file: str = "ca") -> None:
        self.directory = directory
        self._signer = authority.Authority.new(DAYS)
        self.ca = self._written(f"{file}.pem", self._signer.pair().certificate)

    def sign(self, name: str, *names: str, file: str = "") -> tuple[str, str]:
        """Return the files of a certificate with these DNS names or addresses, and of its key.

        It is good for a node and for a client.
        """
        pair = self._signer.for_node((name, *names), days=1)
        file = file or name
        return self._written(f"{file}.pem", pair.certificate), self._written(f"{file}-key.pem", pair.key)

    def context(self, cert: str = "", key: str = "") -> ssl.SSLContext:
        """Return a client's context that trusts this authority alone."""
        context = ssl.create_default_context(cafile=self.ca)
        if cert:
            context.load_cert_chain(cert, key)
        return context

    def _written(self, file: str, content: bytes) -> str:
        path = self.directory / file
        path.write_bytes(content)
        return str(path)
