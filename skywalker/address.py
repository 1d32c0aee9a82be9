"""Where something listens: a host and a TCP port, as people write them, or the path of a Unix socket."""

from __future__ import annotations

import dataclasses
import re
from typing import Final

from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_HOST, DEFAULT_PORT

# A host in brackets, or one without a colon, then perhaps a port.
_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
UNIX: Final = "unix://"
MAX_PATH: Final = 107
"""Bytes of the path of a Unix socket: what the kernel has room for."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Address:
    """A host and a TCP port; or, where there is a path, a Unix socket, which has neither."""

    host: str
    port: int
    path: str = ""

    @classmethod
    def parse(cls, text: str, default_port: int = DEFAULT_PORT) -> Address:
        """Read "host:port", "host", "[::1]:port", "::1" or ":port". Raises LocalProtocolError for anything else."""
        if _is_ipv6(text):
            return cls(text, default_port)
        match = _ADDRESS.fullmatch(text)
        port = int(match["port"] or default_port) if match else 0
        is_host = match is not None and (":" not in (match["v6"] or "") or _is_ipv6(match["v6"]))
        if match is None or not is_host or not 0 < port < 65536:
            example = f"{DEFAULT_HOST}:{default_port}"
            raise LocalProtocolError(f"{shown(text)} is not an address of the form host:port, such as {example}")
        return cls(match["v6"] or match["name"] or DEFAULT_HOST, port)

    @classmethod
    def parse_unix(cls, text: str) -> Address:
        """Read "unix:///path", the rest being taken as it is. Raises LocalProtocolError."""
        path = text[len(UNIX) :]
        size = len(path.encode(errors="surrogateescape"))
        if not path.startswith("/") or "\0" in path:
            raise LocalProtocolError(f"{text!r} does not name the path of a Unix socket: write {UNIX}/path")
        if size > MAX_PATH:
            raise LocalProtocolError(f"the path in {text!r} has {size} bytes, that of a Unix socket {MAX_PATH} at most")
        return cls("", 0, path)

    @property
    def is_unix(self) -> bool:
        """Whether it is that of a Unix socket."""
        return self.path != ""

    def __str__(self) -> str:
        if self.path:
            return f"{UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_numeric(host: str) -> bool:
    """Whether a host is an IP address, for which no name server is asked."""
    import ipaddress  # only now: most addresses do without

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    """Whether this is an IPv6 address, perhaps with a zone."""
    if text.count(":") < 2:
        return False
    import ipaddress  # only now: most addresses do without

    number, _, zone = text.partition("%")
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return number.isascii() and not set(zone) & set("[]:")


def shown(text: str) -> str:
    """Return what was meant as an address, as errors show it: no more of it than what surely is no secret."""
    return "what has a user, a password or a query in it" if "@" in text or "?" in text else repr(text)
