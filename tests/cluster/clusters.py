"""A cluster of real nodes, and what its operator, or bad luck, may do to each of them.

Everything ends with its `with` block, whatever became of it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import psutil

from skywalker import embedding
from skywalker.address import Address
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.members import Member, Snapshot
from skywalker.ring import token_of
from tests.cluster.network import Loopback, Machine
from tests.discovery.dns_server import DnsServer
from tests.helpers import eventually, time_factor
from tests.workers.wire_client import WireClient, packed

SETTLE_S: Final = 8.0
"""Seconds within which all nodes agree after anything: what falls silent is out within 5 s on an idle machine."""


class Discovery(Protocol):
    """How the nodes of a cluster find each other, and `where` a client is to look for them."""

    where: str

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        """Return what a node must be told."""


class Static:
    """By a list of where they are."""

    def __init__(self, nodes: Iterable[ClusterNode]) -> None:
        self.where = ",".join(node.address for node in nodes)

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        return {"join": self.where}


class Silk:
    """By Silk, in which each node is a member, and told of all of them."""

    def __init__(self, nodes: Iterable[ClusterNode], *, keys: Path | None = None) -> None:
        nodes = [*nodes]
        ports = free_ports(len(nodes))
        self._at = {node.name: f"{node.machine.address}:{port}" for node, port in zip(nodes, ports, strict=True)}
        self._seeds = ",".join(self._at.values())
        self._keys = keys
        self.where = f"silk://{','.join(self._at.values())}{f'?keys={keys}' if keys else ''}"

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        keys = {"silk_keys": str(self._keys)} if self._keys else {}
        return {"silk": self._at[node.name], "silk_join": self._seeds, **keys}


class Dns:
    """By SRV records, which name every node, whether it lives or not."""

    NAME = "_skywalker._tcp.test"

    def __init__(self, server: DnsServer, nodes: Iterable[ClusterNode]) -> None:
        self._server = server
        self.where = f"dns://{self.NAME}?server={server.address}"
        nodes = [*nodes]
        server.serve(
            [(f"{node.name}.test", node.machine.address) for node in nodes],
            [(self.NAME, f"{node.name}.test", node.port) for node in nodes],
        )

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        return {"dns": self.NAME, "dns_server": self._server.address}


class Consul:
    """By a Consul, in which each node registers."""

    def __init__(self, address: Address, service: str) -> None:
        self._url = f"http://{address}"
        self._service = service
        self.where = f"consul://{address}/{service}"

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        # Asked for by Consul, which may be on another machine.
        health = {"health_bind": node.machine.address}
        return {"consul": True, "register": True, "service": self._service, "consul_url": self._url, **health}


class ClusterNode:
    """One node, through all its lives: its name, port and state directory stay."""

    def __init__(self, name: str, port: int, machine: Machine, state_dir: Path, settings: Mapping[str, object]) -> None:
        self.name = name
        self.port = port
        self.machine = machine
        self.address = f"{machine.address}:{port}"
        self._settings = {"state_dir": str(state_dir), "name": name, **settings}
        self._node: embedding.Node | None = None
        self._logs: list[str] = []

    def start(self, **settings: object) -> None:
        """Begin a life."""
        assert self._node is None, f"{self.name} lives"
        told = {"port": self.port, "bind": self.machine.address, "open": True, **self._settings, **settings}
        with self.machine.inside():
            self._node = embedding.start(start_timeout=embedding.START_S * time_factor(), **told)

    @property
    def lives(self) -> bool:
        """Whether it was started, and has not ended since."""
        node = self._node  # which another thread may be about to bury
        return node is not None and not _has_ended(node.pid)

    @property
    def pid(self) -> int:
        """Its supervisor, which leads its process group."""
        assert self._node is not None, f"{self.name} does not live"
        return self._node.pid

    @property
    def admin_address(self) -> str:
        """Where it shows what it does, if it was started so."""
        assert self._node is not None, f"{self.name} does not live"
        return self._node.admin_address

    def worker_pids(self) -> list[int]:
        """Return its workers."""
        assert self._node is not None
        return self._node.worker_pids()

    def agent_pid(self) -> int | None:
        """Return the process of its agent, if it has one now."""
        for child in psutil.Process(self.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.name() == embedding.AGENT and child.status() != psutil.STATUS_ZOMBIE:
                    return child.pid
        return None

    # What happens to it.

    def kill(self) -> None:
        """End all its processes at once, as when the power fails."""
        os.killpg(self.pid, signal.SIGKILL)
        self._bury()

    def kill_agent(self) -> None:
        """End its agent at once, if it has one now."""
        if pid := self.agent_pid():
            os.kill(pid, signal.SIGKILL)

    def drain(self) -> None:
        """Tell it to end, and let it take the time that it takes."""
        os.kill(self.pid, signal.SIGTERM)

    def wait_for_end(self, within: float) -> None:
        """Wait until it has ended by itself."""
        eventually(lambda: _has_ended(self.pid), within)
        self._bury()

    def end(self) -> None:
        """End it, in whatever state it is."""
        if self._node is not None:
            if not _has_ended(self.pid):
                os.killpg(self.pid, signal.SIGKILL)
            self._bury()

    def _bury(self) -> None:
        assert self._node is not None
        node, self._node = self._node, None
        node.stop()
        self._logs.append(node.log)
        # Its agent, whom nobody but init reaps, may hold its ports for a while longer than it.
        eventually(lambda: not _lives_group(node.pid), 10.0)

    # What it says.

    @property
    def log(self) -> str:
        """What all its lives have logged."""
        node = self._node
        return "".join([*self._logs, node.log if node is not None else ""])

    def client(self, machine: Machine | None = None) -> WireClient:
        """Return a connection to it, from its own machine unless another is named."""
        with (machine or self.machine).inside():
            return WireClient.open((self.machine.address, self.port))

    def snapshot(self) -> Snapshot:
        """Return the cluster as it sees it; of one page, as these are small."""
        with self.client() as client:
            told = client.ask(":nodes", 1)
        assert not told["more"]
        snapshot = Snapshot(member for member in map(Member.parse, told["nodes"]) if member is not None)
        assert snapshot.version == told["version"]
        return snapshot

    def sees(self) -> set[str]:
        """Return the names of those that it counts to the cluster."""
        return {member.name for member in self.snapshot()}


class Cluster:
    """Nodes, of which none is started at first; for a `with` block."""

    def __init__(
        self, count: int, *, machines: Sequence[Machine] = (), workers: int = 2, drain_timeout_s: float = 5.0
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="skywalker-cluster-")
        ports = free_ports(count)
        where = machines or [Loopback()] * count
        settings = {"workers": workers, "drain_timeout_s": drain_timeout_s}
        self.nodes = [
            ClusterNode(f"n{number}", port, machine, Path(self._directory.name, f"n{number}"), settings)
            for number, port, machine in zip(itertools.count(1), ports, where)
        ]
        self.discovery: Discovery = Static(self.nodes)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for node in self.nodes:
            node.end()
        self._directory.cleanup()
        if error is not None:
            error.add_note("\n".join(f"the log of {node.name}:\n{node.log}" for node in self.nodes))

    def start(self, *nodes: ClusterNode) -> None:
        """Start nodes, all unless some are named, and wait until they are one cluster."""
        for node in nodes or self.nodes:
            self.revive(node)
        self.settle()

    def revive(self, node: ClusterNode) -> None:
        """Start a node, and do not wait for the others to see it."""
        node.start(**self.discovery.settings(node))

    @property
    def live(self) -> list[ClusterNode]:
        """Those that live."""
        return [node for node in self.nodes if node.lives]

    def is_settled(self, among: Iterable[ClusterNode] | None = None) -> bool:
        """Whether these nodes, those that live unless told otherwise, see each other and nobody else."""
        nodes = [*(self.live if among is None else among)]
        names = {node.name for node in nodes}
        snapshots = [node.snapshot() for node in nodes]
        return len({each.version for each in snapshots}) == 1 and {member.name for member in snapshots[0]} == names

    def settle(self, among: Iterable[ClusterNode] | None = None, within: float = SETTLE_S) -> float:
        """Wait until they do; return the seconds that it took."""
        began = time.monotonic()
        nodes = [*(self.live if among is None else among)]
        try:
            eventually(lambda: self.is_settled(nodes), within)
        except AssertionError as error:
            error.add_note(f"sees: { {node.name: _attempted(node) for node in nodes} }")
            raise
        return time.monotonic() - began

    def snapshot(self) -> Snapshot:
        """Return the ring that all who live use; they must have settled."""
        return self.live[0].snapshot()

    def topic_of(self, owner: ClusterNode, about: str = "topic", ring: Snapshot | None = None) -> str:
        """Return a topic that a node owns, in the ring of now unless another is given."""
        return next(self.topics_of(owner, about, ring))

    def topics_of(self, owner: ClusterNode, about: str = "topic", ring: Snapshot | None = None) -> Iterator[str]:
        """Yield such topics without end."""
        ring = ring or self.snapshot()
        names = {member.id: member.name for member in ring}
        for number in itertools.count():
            topic = f"{about}-{number}"
            if names[ring.ring.owner(token_of(packed(topic))).node] == owner.name:
                yield topic


def _attempted(node: ClusterNode) -> Any:
    try:
        return sorted(node.sees())
    except Exception as error:
        return repr(error)


def _has_ended(child: int) -> bool:
    """Tell whether a process has; it is left for whoever buries it to reap, if nobody has done so."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _lives_group(leader: int) -> bool:
    """Tell whether a process of this group has not ended."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False
