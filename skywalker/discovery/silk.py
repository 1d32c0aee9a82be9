"""Addresses from Silk, for who is no member: nodes of skywalker among the members of a cluster, as one of them tells.

ZeroMQ is loaded once something is asked.
"""

from __future__ import annotations

import importlib.util
import random
import socket
import threading
from typing import Final

from skywalker import extras
from skywalker.discovery.silk_access import SilkAccess
from skywalker.discovery.source import Finding, Source
from skywalker.errors import DiscoveryError, SkywalkerError
from skywalker.silk.endpoints import IPC, address_of

PAUSE_S: Final = 2.0
"""Seconds between looks: members tell each other of changes, and a stranger has to ask."""

KNOCK_S: Final = 1.0
"""Seconds for a member's machine to take a connection."""

ANSWER_S: Final = 2.0
"""Seconds for a member to answer."""


class SilkSource(Source):
    """What one of some members tells, whichever answers. Joins nothing."""

    def __init__(self, access: SilkAccess) -> None:
        """Raises DiscoveryError where pyzmq is not installed."""
        require()
        self._access = access
        self._closed = threading.Event()

    def look(self) -> Finding:
        from skywalker.silk.asking import ask

        causes = []
        endpoints = self._access.endpoints
        for endpoint in random.sample(endpoints, len(endpoints)):
            if self._closed.is_set():
                raise DiscoveryError(f"{self}: closed")
            try:
                # ZeroMQ by itself tries again and again, and does not say what the matter is.
                knock(endpoint)
                nodes = ask(endpoint, keys=self._access.keys_file or None, timeout=ANSWER_S)
            except OSError as error:
                causes.append(
                    str(error) if isinstance(error, SkywalkerError) else f"{endpoint}: {error.strerror or error}"
                )
            except SkywalkerError as error:
                causes.append(str(error))
            else:
                return Finding(frozenset(node.serves for node in nodes if node.serves is not None), PAUSE_S)
        raise DiscoveryError(f"{self}: {'; '.join(causes)}")

    def close(self) -> None:
        self._closed.set()

    def __str__(self) -> str:
        return str(self._access)


def require() -> None:
    """Raise DiscoveryError where pyzmq is not installed. Does not load it, or a fork would inherit it."""
    if importlib.util.find_spec("zmq") is None:
        raise DiscoveryError(f"finding nodes by Silk needs pyzmq: {extras.command_for('silk')}")


def knock(endpoint: str) -> None:
    """Return if somebody takes connections there, whoever it is. Raises OSError."""
    address = address_of(endpoint)
    if address is None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(KNOCK_S)
            sock.connect(endpoint.removeprefix(IPC))
    else:
        try:
            socket.create_connection((address.host, address.port), KNOCK_S).close()
        except UnicodeError as error:
            raise OSError(f"{address.host!r} cannot be a host name") from error
