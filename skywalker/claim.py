"""What a node on this machine claims an address by: a name among the abstract Unix sockets, which is one process's."""

from __future__ import annotations

from typing import Final

_PREFIX: Final = "skywalker/"


def claim_name(host: str, port: int) -> str:
    """Return the name to bind for an address to listen on, its host as the setting has it."""
    return f"\0{_PREFIX}{host}/{port}"


def claimed(listed: str) -> tuple[str, int] | None:
    """Return the host and port that a name stands for as /proc/net/unix lists it; None if it is no claim."""
    if not listed.startswith(f"@{_PREFIX}"):
        return None
    host, _, port = listed.removeprefix(f"@{_PREFIX}").rpartition("/")
    return (host, int(port)) if host and port.isascii() and port.isdecimal() else None
