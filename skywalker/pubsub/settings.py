"""What connect() and subscribe() were asked for, checked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skywalker.clients.settings import Settings, check_where, context_of
from skywalker.discovery.source import StaticSource
from skywalker.discovery.url import without_tls
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_HOST, DEFAULT_PUBSUB_PORT

if TYPE_CHECKING:
    from skywalker.clients.tls_choice import Tls

DEFAULT_BROKER: Final = f"{DEFAULT_HOST}:{DEFAULT_PUBSUB_PORT}"

DEFAULT_BUFFER: Final = 1000
"""Messages that may wait in a subscription: of a usual size some 100 KiB, of the largest 64 MiB."""


def settings_of(where: str, tls: Tls = None) -> Settings:
    """Return where the nodes are, and how to speak with them. Raises LocalProtocolError naming what is not allowed."""
    check_where(where, DEFAULT_BROKER)
    if not where.strip():
        # Such as the address of a node that has no door for this: not to be taken for the usual one.
        raise LocalProtocolError(f"there is no address: write host:port, such as {DEFAULT_BROKER}")
    source = StaticSource.parse(without_tls(where), DEFAULT_PUBSUB_PORT)
    return Settings(where=str(source), url=where, addresses=source.look().addresses, tls=context_of(where, tls))


def checked_buffer(buffer: Any) -> int:
    """Return how many messages may wait. Raises LocalProtocolError unless it is a whole number from 1."""
    if isinstance(buffer, int) and buffer >= 1:
        return buffer
    raise LocalProtocolError(f"buffer of {buffer!r} messages, allowed are whole numbers from 1")
