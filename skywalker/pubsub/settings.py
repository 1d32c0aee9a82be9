"""What connect() and subscribe() were asked for, checked once."""

from __future__ import annotations

from typing import Any, Final

from skywalker.address import Address
from skywalker.clients.settings import Settings
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_HOST, DEFAULT_PUBSUB_PORT

DEFAULT_BROKER: Final = f"{DEFAULT_HOST}:{DEFAULT_PUBSUB_PORT}"

DEFAULT_BUFFER: Final = 1000
"""Messages that may wait in a subscription: of a usual size some 100 KiB, of the largest 64 MiB."""


def settings_of(where: str) -> Settings:
    """Return where the nodes are. Raises LocalProtocolError naming what is no address."""
    parts = [part.strip() for part in where.split(",")]
    if len(parts) > 1 and not all(parts):
        raise LocalProtocolError(
            f"an address is missing in {where!r}: write one or more host:port with a comma between them,"
            f" such as {DEFAULT_BROKER}"
        )
    addresses = frozenset(Address.parse(part, DEFAULT_PUBSUB_PORT) for part in parts)
    return Settings(where=",".join(map(str, sorted(addresses))), url=where, addresses=addresses)


def checked_buffer(buffer: Any) -> int:
    """Return how many messages may wait. Raises LocalProtocolError unless it is a whole number from 1."""
    if isinstance(buffer, int) and buffer >= 1:
        return buffer
    raise LocalProtocolError(f"buffer of {buffer!r} messages, allowed are whole numbers from 1")
