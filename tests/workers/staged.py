"""Nodes of a simulation, for tests that block: see tests/simulation/stage.py."""

from __future__ import annotations

import dataclasses
import signal
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from skywalker import config
from skywalker.config import Config
from skywalker.limits import DEFAULT_PORT
from skywalker.members import Snapshot
from skywalker.ring import token_of
from tests.helpers import written_to
from tests.simulation import node as simulation
from tests.simulation.machine import Net, Socket
from tests.simulation.membership import TOKENS, Directory, assembler
from tests.simulation.plan import tokens
from tests.simulation.processes import Process
from tests.simulation.stage import Line, Stage, stage
from tests.workers.pubsub_bus import Bus, Place
from tests.workers.pubsub_client import PubSubClient
from tests.workers.running_nodes import Owners
from tests.workers.wire_client import WireClient, packed
from workers.setup.ground import JUNCTION, PUBSUB
from workers.stats.log import Log
from workers.stats.metrics import BUCKETS, Metric

START_S: Final = 5.0
"""Seconds for a node to serve."""

MEET_S: Final = 15.0
"""Seconds for nodes to find each other."""

RELOAD_S: Final = 60.0

DRAIN_S: Final = 0.2


class LoggingNode(simulation.Node):
    """A node whose log is a file."""

    def __init__(self, net: Net, name: str, host: str, workers: int, config: Config) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  # it closes with the node
        spread = tokens(net.kernel.luck, "even", TOKENS)
        super().__init__(net, name, host, workers, config, spread, assembler(Directory(net.kernel)))

    def log_of(self, who: str) -> Any:
        log = Log(self.kernel.time, self.log.fileno())
        log.use(self.config.log_level, self.config.log_format)
        return log

    def close(self) -> None:
        super().close()
        ring = self.supervisor._agent.snapshot  # a real file, which a real process would have closed with its end
        if ring is not None:
            ring.close()
        self.log.close()


class Node(Owners):
    """A node of a simulation. Made by simulated()."""

    def __init__(self, on: Stage, host: str, workers: int, settings: Config) -> None:
        self.stage = on
        name = f"node-{host}"
        self._node = LoggingNode(on.net, name, host, workers, settings)
        self.member = self._node.member
        self.address = self._node.address(JUNCTION)
        self.pubsub = self._node.address(PUBSUB)
        self.tokens = [*self.member.tokens]
        super().__init__(workers)
        assert on.until(lambda: self._node.serves, START_S), self.log
        self.process = self._node.process
        """Its supervisor."""
        self.first_pids = self.pids()
        self.bus = Bus(self.places(), self.owner)

    def places(self) -> list[Place]:
        """Return where its workers are."""
        return [Place(self.pubsub, self.address, worker, self.workers) for worker in range(self.workers)]

    @property
    def log(self) -> str:
        """What was logged so far."""
        return written_to(self._node.log)

    @property
    def agent(self) -> int:
        """Return the process of its agent, 0 if there is none."""
        return self._node.agent.pid if self._node.agent is not None else 0

    def pids(self) -> list[int]:
        """Return the processes of the workers that live now."""
        return sorted(process.pid for process in self._node.workers())

    def _process(self, pid: int) -> Process:
        return next(each for each in self._node.workers() if each.pid == pid)

    def _sockets(self, process: Process) -> list[Socket]:
        files = self.stage.net.files.values()
        return [each for each in files if each.owner is process.task and each.end.peer and not each.end.packets]

    def pid_behind(self, client: WireClient | PubSubClient) -> int:
        """Return the process that has the other end of a connection, once one has."""
        line: Any = client.socket
        assert isinstance(line, Line)
        found: list[int] = []

        def has_one() -> bool:
            found[:] = [
                process.pid
                for process in self._node.workers()
                for each in self._sockets(process)
                if each.end is line.end.peer
            ]
            return bool(found)

        assert self.stage.until(has_one, START_S)
        return found[0]

    def connections(self) -> int:
        """Return how many connections the workers have open."""
        return sum(len(self._sockets(process)) for process in self._node.workers())

    def open_files(self, pid: int) -> int:
        """Return how many descriptors a worker has open."""
        task = self._process(pid).task
        return sum(each.owner is task for each in self.stage.net.files.values())

    def counted(self, metric: Metric) -> Counter[str]:
        """Return what its workers have counted of a figure, a histogram by how many times, by its labels."""
        cells = self._node.supervisor._shared.read().total()
        return Counter({" ".join(labels): sum(row[:BUCKETS]) for labels, row in metric.rows(cells)})

    @property
    def figures(self) -> memoryview[int]:
        """What its supervisor counts, in the cells of the metrics of a node."""
        return self._node.supervisor._shared.node

    def resident(self) -> int:
        """Return the bytes of memory that this program takes for itself, of which its workers are a part."""
        taken: int = psutil.Process().memory_full_info().uss
        return taken

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a worker a signal, which it hears of or ends by."""
        process = self._process(pid)
        if number == signal.SIGTERM:
            process.signal(number)
        else:
            process.end(-number)

    @contextmanager
    def hung_process(self, pid: int) -> Iterator[None]:
        """Have a worker hang for a while."""
        task = self._process(pid).task
        task.stop(float("inf"))
        try:
            yield
        finally:
            task.go_on()

    @contextmanager
    def hung(self, client: WireClient | PubSubClient) -> Iterator[None]:
        """Have the worker of this connection hang for a while."""
        with self.hung_process(self.pid_behind(client)):
            yield

    def configure(self, **settings: Any) -> None:
        """Have these settings be read by the next reload, besides those that it has."""
        self._node.config = dataclasses.replace(self._node.config, **settings)

    def limit(self, **limits: int) -> None:
        """The same of limits."""
        self.configure(limits=dataclasses.replace(self._node.config.limits, **limits))

    def begin_reload(self) -> None:
        """Have all workers replaced."""
        self._node.reload()

    @property
    def reloads(self) -> bool:
        """Whether workers are being replaced."""
        return self._node.reloads

    def reload(self) -> None:
        """Have all workers replaced, and wait until they are."""
        self.begin_reload()
        assert self.stage.until(lambda: not self.reloads, RELOAD_S), self.log

    def signal(self, number: signal.Signals) -> None:
        """Send the supervisor a signal."""
        self.process.signal(number)

    def wait(self, within: float) -> int:
        """Return the status with which it ends; AssertionError if it does not in time."""
        assert self.stage.until(lambda: self.process.status is not None, within), self.log
        assert self.process.status is not None
        return self.process.status

    def ring(self) -> list[int]:
        """Return how many nodes each worker counts as the ring."""
        return [len(each.program._node.snapshot.by_id) for each in self._node.workers()]

    def assert_unharmed(self) -> None:
        """Assert that no worker has died, or said anything of an exception."""
        assert "Traceback" not in self.log, self.log
        assert self.pids() == self.first_pids, self.log

    def close(self) -> None:
        """Give back what is real of it."""
        self._node.close()


def config_of(settings: Mapping[str, Any], tables: str) -> Config:
    """Return these settings, named as those of embedded(), and those of the `tables` of a config file."""
    document: dict[str, Any] = {"limits": {}, "cluster": {}, **tomllib.loads(tables)}
    for key, value in {"drain_timeout_s": DRAIN_S, **settings}.items():
        known = config.BY_KEY.get(key)
        (document[known.table] if known is not None and known.table else document)[key] = value
    return config.of_document(document, Path("of the test"))


@contextmanager
def simulated(
    workers: int = 1, *, harmed: bool = False, host: str | None = None, tables: str = "", **settings: Any
) -> Iterator[Node]:
    """Yield a node that serves, on the stage that is on or one of its own.

    The settings are those of embedded(), and what the `tables` of its config file say. At the end it must be unharmed,
    unless the test is to harm it.
    """
    with stage() as on:
        node = Node(on, host or on.host(), workers, config_of(settings, tables))
        try:
            yield node
            if not harmed:
                node.assert_unharmed()
        finally:
            node.close()


@contextmanager
def simulated_nodes(count: int, workers: int = 2, **settings: Any) -> Iterator[list[Node]]:
    """Yield nodes that have found each other, and may be harmed."""
    with stage() as on, ExitStack() as stack:
        hosts = [on.host() for _ in range(count)]
        join = ",".join(f"{host}:{DEFAULT_PORT}" for host in hosts)
        nodes = [
            stack.enter_context(simulated(workers, harmed=True, host=host, join=join, **settings)) for host in hosts
        ]
        assert on.until(lambda: all(node.ring() == [count] * workers for node in nodes), MEET_S)
        yield nodes


def bus_of(nodes: list[Node]) -> Bus:
    """Return nodes that have found each other as one bus."""
    ring = Snapshot([node.member for node in nodes]).ring
    first = {node.member.id: number * node.workers for number, node in enumerate(nodes)}

    def owner(topic: str) -> int:
        place = ring.owner(token_of(packed(topic)))
        return first[place.node] + place.worker

    return Bus([place for node in nodes for place in node.places()], owner)


@contextmanager
def running_bus() -> Iterator[Bus]:
    """Yield a bus of three nodes with two workers each; at the end it must be unharmed."""
    with simulated_nodes(3) as nodes:
        yield bus_of(nodes)
        for node in nodes:
            node.assert_unharmed()
