"""The socket that the admin server listens on."""

from __future__ import annotations

import socket
from typing import Final

from workers.engine import sockets

BACKLOG: Final = 128
"""Connections that may wait to be accepted, also while the agent is replaced."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listener that is the only one on its address. Raises AddressError if that cannot be had."""
    family, address = sockets.resolve(host, port)
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise sockets.unavailable(error, host, port) from error
    return made
