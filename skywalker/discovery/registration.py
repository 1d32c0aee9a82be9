"""Having Consul know a node: registered with a health check while it serves, and not a moment longer."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import Final

from skywalker.address import Address
from skywalker.discovery.consul import ConsulAccess, ConsulApi
from skywalker.discovery.watch import Trouble, repeat
from skywalker.errors import DiscoveryError

VERIFY_S: Final = 10.0
"""Seconds between looks whether Consul still has it: a Consul that lost its state is told again that soon."""


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """A node, as Consul is told of it."""

    name: str  # the service that it is an instance of
    node_id: str
    address: Address  # where others reach it
    health_url: str  # answers 200 as long as it is well
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    interval_s: float = 5.0  # between health checks
    deregister_after_s: float = 300.0  # of failing checks; Consul takes no less than a minute

    @property
    def id(self) -> str:
        """What Consul knows this instance by."""
        return f"{self.name}-{self.node_id}"


class Registration:
    """One node at the Consul agent it asks. All methods block; any thread may call them."""

    def __init__(self, access: ConsulAccess, service: Service) -> None:
        """Raises DiscoveryError where python-consul2 is not installed."""
        self._service = service
        self._api = ConsulApi(access)
        self._told = False

    def keep(self, trouble: Trouble, stopped: threading.Event) -> None:
        """Have Consul know the node until `stopped` is set, then have it forget. What fails is told once an outage."""

        def ensure() -> float:
            self.register()
            return VERIFY_S

        repeat(ensure, trouble, stopped)
        try:
            self.deregister()
        except DiscoveryError as error:
            trouble(f"{error}; the node stays registered there until its health check has failed long enough")

    def register(self) -> None:
        """Make sure that Consul knows the node, as it is. Raises DiscoveryError."""
        service = self._service
        with self._api.errors():
            # Once in any case: what Consul has may be of an earlier life. And then only at need:
            # each time begins the check anew, and so puts off the moment that it fails.
            if self._told and service.id in self._api.agent.services():
                return
            accepted = self._api.agent.service.register(
                service.name,
                service_id=service.id,
                address=service.address.host,
                port=service.address.port,
                tags=list(service.tags),
                meta=dict(service.metadata),
                check={
                    "name": f"health of {service.id}",
                    "http": service.health_url,
                    "interval": _duration(service.interval_s),
                    "timeout": _duration(max(1.0, service.interval_s)),
                    "DeregisterCriticalServiceAfter": _duration(service.deregister_after_s),
                    # It serves, or would not register; else others wait for the first check to find it.
                    "status": "passing",
                },
            )
            if not accepted:
                raise ValueError("it knows of no services")
            self._told = True

    def deregister(self) -> None:
        """Make sure that Consul does not know the node. Raises DiscoveryError."""
        with self._api.errors():
            # What is not there it answers with 404, which the library does not take for an error, and rightly.
            self._api.agent.service.deregister(self._service.id)


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
