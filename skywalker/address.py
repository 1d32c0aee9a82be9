"""A host and a TCP port, as people write them."""

from __future__ import annotations

import dataclasses
import re
from typing import Final

from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_HOST, DEFAULT_PORT

# A host in brackets, or one without a colon, then perhaps a port; or an IPv6 address by itself, perhaps with a zone.
_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_BARE_IPV6: Final = re.compile(r"[0-9A-Fa-f.]*(?::[0-9A-Fa-f.]*){2,}(?:%[^\[\]:]+)?", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Address:
    """A host and a TCP port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, default_port: int = DEFAULT_PORT) -> Address:
        """Read "host:port", "host", "[::1]:port", "::1" or ":port". Raises LocalProtocolError for anything else."""
        if _BARE_IPV6.fullmatch(text):
            return cls(text, default_port)
        match = _ADDRESS.fullmatch(text)
        port = int(match["port"] or default_port) if match else 0
        if match is None or not 0 < port < 65536:
            example = f"{DEFAULT_HOST}:{default_port}"
            raise LocalProtocolError(f"address {text!r} is not of the form host:port, such as {example}")
        return cls(match["v6"] or match["name"] or DEFAULT_HOST, port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
