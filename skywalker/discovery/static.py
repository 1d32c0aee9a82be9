"""Addresses that somebody has written down."""

from __future__ import annotations

from skywalker.address import Address
from skywalker.discovery.source import Finding, Source
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_HOST, DEFAULT_PORT


class StaticSource(Source):
    """A list of addresses, always the same. Names in it are left to whoever dials them."""

    def __init__(self, addresses: frozenset[Address]) -> None:
        self._addresses = addresses

    @classmethod
    def parse(cls, text: str, default_port: int = DEFAULT_PORT) -> StaticSource:
        """Read addresses with commas between them. Raises LocalProtocolError naming the one that is none."""
        parts = [part.strip() for part in text.split(",")]
        if not all(parts):
            raise LocalProtocolError(
                f"an address is missing in {text!r}: write one or more host:port with a comma between them,"
                f" such as {DEFAULT_HOST}:{default_port}"
            )
        return cls(frozenset(Address.parse(part, default_port) for part in parts))

    def look(self) -> Finding:
        return Finding(self._addresses, None)

    def close(self) -> None:
        pass  # no look takes time

    def __str__(self) -> str:
        return ",".join(map(str, sorted(self._addresses)))
