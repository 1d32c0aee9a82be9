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
from typing import Final

from skywalker.address import Address
from skywalker.cli.demo_cluster.discovery import Discovery
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
    """Nodes by name, at these addresses, which find each other in some way."""

    def __init__(self, addresses: Mapping[str, Address], discovery: Discovery) -> None:
        self.ships = {name: Ship(name, address) for name, address in addresses.items()}
        self.where = discovery.where
        """What a client connects to."""
        self._settings = discovery.settings

    @classmethod
    @contextlib.contextmanager
    def sailing(cls, addresses: Mapping[str, Address], discovery: Discovery, first: Iterable[str]) -> Iterator[Fleet]:
        """Start the `first` of the nodes for a `with` block. Raises StartError if one does not start."""
        fleet = cls(addresses, discovery)
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
                **self._settings[name],
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
