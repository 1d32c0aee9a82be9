"""A simulated node for each test, a cluster for each module, and connections to them; authorities for each module."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.authority import Authority
from tests.simulation.stage import stage
from tests.workers.pubsub_bus import Bus, Doors, doors_of
from tests.workers.staged import Node, running_bus, simulated
from tests.workers.wire_client import Clients, clients_of


@pytest.fixture
def node() -> Iterator[Node]:
    """A node of two workers that no test may harm, in virtual time."""
    with simulated(2) as node:
        yield node


@pytest.fixture
def connect(node: Node) -> Iterator[Clients]:
    """Connects to the node; what is connected is closed after the test."""
    with clients_of(node.address) as clients:
        yield clients


@pytest.fixture(scope="module")
def bus(request: pytest.FixtureRequest) -> Iterator[Bus]:
    """Workers of three nodes, which a module shares: whatever way a call or a value may take, some take on it."""
    with stage(zlib.crc32(request.module.__name__.encode())), running_bus() as bus:
        yield bus


@pytest.fixture
def doors(bus: Bus) -> Iterator[Doors]:
    """Connects to the `bus`; what is connected is closed after the test."""
    with doors_of(bus) as doors:
        yield doors


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses."""
    name: str = request.node.nodeid
    return name


@pytest.fixture
def fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file by which the workers of a FAULTY node are told to fail as they start, from now on."""
    path = tmp_path / "fault"
    monkeypatch.setenv("FAULTY_NODE", str(path))
    return path


# For a module and no longer: what one test signs for a name takes the place of what another has, in the same files.


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom we trust."""
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom we do not."""
    return Authority(tmp_path_factory.mktemp("another"))
