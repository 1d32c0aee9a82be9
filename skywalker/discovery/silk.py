"""Addresses from Silk, for who is no member: nodes of skywalker among the members of a cluster, as one of them tells.

ZeroMQ is loaded once something is asked.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import random
import socket
import threading
from typing import Final

from skywalker import extras
from skywalker.address import is_numeric
from skywalker.discovery.source import Finding, Source
from skywalker.errors import DiscoveryError, LocalProtocolError, SkywalkerError
from skywalker.limits import DEFAULT_SILK_PORT
from skywalker.silk import endpoints
from skywalker.silk.endpoints import IPC, TCP, address_of


@dataclasses.dataclass(frozen=True, slots=True)
class SilkAccess:
    """Some members of one cluster, any of which will do."""

    endpoints: tuple[str, ...]  # none of them if nobody is known yet
    keys_file: str = ""  # empty: whoever comes is let in

    @classmethod
    def parse(cls, text: str, keys_file: str = "") -> SilkAccess:
        """Read "host:3444,host:3444", where each may also be tcp://host:3444 or ipc:///path. Raises LocalProtocolError.

        An empty text is nobody.
        """
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        if not all(parts):
            raise LocalProtocolError(
                f"an endpoint is missing in {text!r}: write one or more host:{DEFAULT_SILK_PORT}, with a comma between"
            )
        return cls(tuple(dict.fromkeys(map(_member, parts))), keys_file)

    def __str__(self) -> str:
        return f"Silk at {','.join(each.removeprefix(TCP) for each in self.endpoints)}"


def listening(text: str) -> str:
    """Return the endpoint to listen at that a text stands for. Raises LocalProtocolError."""
    endpoint = endpoints.endpoint(text)
    host = host_of(endpoint)
    if host is not None and not is_numeric(host):
        raise LocalProtocolError(
            f"{host} is not a numeric address to listen at: write 0.0.0.0:{DEFAULT_SILK_PORT} for all of this machine"
        )
    return endpoint


def host_of(endpoint: str) -> str | None:
    """Return the host of an endpoint to listen at, numeric as a rule; None if it is not of TCP."""
    address = address_of(endpoint)
    if address is None:
        return None
    return "0.0.0.0" if address.host == "*" else address.host


def _member(text: str) -> str:
    """Return an endpoint as members write their own."""
    endpoint = endpoints.endpoint(text)
    address = address_of(endpoint)
    if address is None:
        return endpoint
    if not address.port or address.host in endpoints.WILDCARDS or "/" in address.host:
        raise LocalProtocolError(f"{text} is nowhere in particular: write host:{DEFAULT_SILK_PORT}")
    return f"{TCP}{address}"


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
