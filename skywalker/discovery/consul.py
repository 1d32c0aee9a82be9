"""Addresses from Consul: the instances of a service whose health checks pass."""

from __future__ import annotations

from typing import Any, Final

from skywalker import limits
from skywalker.address import Address
from skywalker.discovery.consul_access import ConsulAccess
from skywalker.discovery.consul_api import ConsulApi
from skywalker.discovery.source import Finding, Source

WAIT_S: Final = 50.0
"""Seconds for which Consul is asked to wait for a change: less than what most proxies allow a request."""

PAUSE_S: Final = 0.1
"""Seconds between looks at least: a service whose checks flap changes all the time, and we need not see it all."""


class ConsulSource(Source):
    """The instances of a service that pass. A look waits, in Consul, for a change since the last one."""

    def __init__(self, access: ConsulAccess, service: str, *, wait_s: float = WAIT_S) -> None:
        """Raises DiscoveryError where python-consul2 is not installed."""
        self._access = access
        self._service = service
        self._wait_s = wait_s
        # Consul adds up to a sixteenth to what it waits, so that not all clients come back at once.
        self._patient = ConsulApi(access, wait_s=wait_s * 17 / 16)
        self._quick = ConsulApi(access)
        self._index = 0

    def look(self) -> Finding:
        # Where there was an error the Consul that answers next may count anew, and would have us wait for an index
        # that it reaches in a year: so from 0, which waits for nothing.
        index, self._index = self._index, 0
        newer, addresses = self._ask(self._patient if index else self._quick, index)
        # As Consul's documentation of blocking queries has it: back to 0 when it goes backwards, and an
        # index below 1, which some proxies make up, would never wait.
        self._index = 0 if 0 < newer < index else max(newer, 1)
        return Finding(addresses, PAUSE_S)

    def addresses(self) -> frozenset[Address]:
        return self._ask(self._quick, 0)[1]

    def close(self) -> None:
        pass  # the library cannot end a request from outside; one that waits ends with its thread's process

    def __str__(self) -> str:
        return f"{self._access}, service {self._service}"

    def _ask(self, api: ConsulApi, index: int) -> tuple[int, frozenset[Address]]:
        with api.errors():
            newer, entries = api.health.service(self._service, index=index, wait=f"{self._wait_s:.0f}s", passing=True)
            return int(newer), frozenset(map(_address, entries))


def _address(entry: dict[str, Any]) -> Address:
    # One that was registered without an address is where its Consul agent is; without a port, at the usual one.
    service = entry["Service"]
    host, port = service["Address"] or entry["Node"]["Address"], service["Port"] or limits.DEFAULT_PORT
    if not (isinstance(host, str) and host and isinstance(port, int) and 0 < port < 65536):
        raise ValueError(f"an instance at host {host!r}, port {port!r}")
    return Address(host, port)
