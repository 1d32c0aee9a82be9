"""The nodes of the demo: each is started, and may be killed or drained. All end with the demo."""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from skywalker.address import Address
from skywalker.cli.demo_cluster.ports import HOST, free_ports
from skywalker.embedding import Node, start

WORKERS: Final = 2
DRAIN_S: Final = 2.0
"""Seconds that calls which wait at a node that drains get; clients move them elsewhere long before."""


class State(enum.Enum):
    """What has become of a node."""

    ABSENT = "absent"
    STARTING = "starting"
    RUNNING = "running"
    KILLED = "killed"
    DRAINING = "draining"
    ENDED = "left"


@dataclass(slots=True)
class Ship:
    """One node of the fleet."""

    name: str
    address: Address
    state: State = State.ABSENT
    node: Node | None = None


class Fleet:
    """Nodes by name. They find each other in the Consul at `consul`, or else by a list of all of them."""

    SERVICE: Final = "skywalker-demo"

    def __init__(self, names: Iterable[str], consul: Address | None) -> None:
        names = list(names)
        self.ships = {
            name: Ship(name, Address(HOST, port)) for name, port in zip(names, free_ports(len(names)), strict=True)
        }
        everybody = ",".join(str(ship.address) for ship in self.ships.values())
        self.where = everybody if consul is None else f"consul://{consul}/{self.SERVICE}"
        """What a client connects to."""
        self._discovery: Mapping[str, Any] = (
            {"join": everybody}
            if consul is None
            else {"consul": True, "register": True, "service": self.SERVICE, "consul_url": f"http://{consul}"}
        )

    @classmethod
    @contextlib.contextmanager
    def sailing(cls, names: Iterable[str], consul: Address | None, first: Iterable[str]) -> Iterator[Fleet]:
        """Start the `first` of the nodes for a `with` block. Raises StartError if one does not start."""
        fleet = cls(names, consul)
        try:
            with ThreadPoolExecutor() as threads:
                list(threads.map(fleet.start, first))
            yield fleet
        finally:
            fleet.stop()

    def start(self, name: str) -> None:
        """Start a node, and return once it serves. Raises StartError."""
        ship = self.ships[name]
        ship.state = State.STARTING
        # A node uses its state directory only as it starts; gone by then, none outlives a demo that is killed later.
        with tempfile.TemporaryDirectory(prefix="skywalker-demo-") as state_dir:
            ship.node = start(
                name=name,
                bind=ship.address.host,
                port=ship.address.port,
                workers=WORKERS,
                state_dir=state_dir,
                drain_timeout_s=DRAIN_S,
                **self._discovery,
            )
        ship.state = State.RUNNING

    def kill(self, name: str) -> None:
        """End all processes of a node at once, as when the power fails, and return once they have."""
        ship = self.ships[name]
        assert ship.node is not None, f"{name} was not started"
        ship.state = State.KILLED
        os.killpg(ship.node.pid, signal.SIGKILL)
        ship.node.stop()

    def drain(self, name: str) -> None:
        """Tell a node to end, and return once it has."""
        ship = self.ships[name]
        assert ship.node is not None, f"{name} was not started"
        ship.state = State.DRAINING
        ship.node.stop()
        ship.state = State.ENDED

    def stop(self) -> None:
        """End all that run."""
        nodes = [ship.node for ship in self.ships.values() if ship.node is not None]
        if nodes:
            with ThreadPoolExecutor() as threads:
                list(threads.map(Node.stop, nodes))
