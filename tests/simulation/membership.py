"""How the nodes of a run find each other: by a list, or by somebody whom they ask, whose answers are made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final

from skywalker.address import Address
from skywalker.config import Cluster, Config
from skywalker.discovery.source import Finding, Source
from skywalker.discovery.watch import Trouble, repeat
from skywalker.errors import DiscoveryError
from skywalker.limits import Limits
from skywalker.members import Member
from tests.simulation.kernel import Kernel
from tests.simulation.machine import Net
from tests.simulation.node import PORTS, Node
from tests.simulation.plan import NODE, Plan, tokens
from tests.simulation.processes import ProcessMachine
from tests.simulation.silk_member import SimulatedSurroundings
from tests.simulation.threads import Event, sleep
from tests.simulation.zeromq import LATE, LOST, TWICE, ZeroMQ
from workers.agent.agent import Agent
from workers.agent.assembly import silk_source
from workers.ipc.control import Channel
from workers.setup.cluster import source, trust
from workers.setup.ground import JUNCTION

LOOK_S: Final = 1.0
"""Seconds between two looks at a directory, at most."""

TOKENS: Final = 16
"""Of each node."""

ANSWER_S: Final = 0.3
"""Seconds that an answer of it takes, at most."""

NOBODY: Final = Address("10.9.9.9", 3443)
"""Where there is no machine."""


TROUBLES: Final = ("fails", "empty", "stale", "wrong")
"""What may be wrong with a directory: it does not answer, or says less, older or other things than are so."""


FATES: Final[Mapping[str, str]] = {"fails": LOST, "empty": LOST, "stale": LATE, "wrong": TWICE}
"""What becomes meanwhile of all that is said by Silk, which is its own directory."""


class Directory:
    """A name server, or Consul, as nodes know it: who is listed there, and what is wrong with its answers."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.listed: dict[Address, None] = {}
        self.trouble = ""
        """One of TROUBLES, or none."""
        self._before: frozenset[Address] = frozenset()

    @property
    def luck(self) -> Random:
        """That of whoever asks."""
        return (self.kernel.running or self.kernel).luck

    def have(self, trouble: str, seconds: float) -> None:
        """Have something be wrong with it for so long."""
        self.kernel.note("the directory", f"{trouble} for {seconds:.3f} s")
        self.trouble = trouble
        self.kernel.at(self.kernel.now + seconds, self._be_right)

    def _be_right(self) -> None:
        self.trouble = ""

    def list(self, address: Address) -> None:
        """Have a node found."""
        self._before = frozenset(self.listed)
        self.listed[address] = None

    def forget(self, address: Address) -> None:
        """Have it found no more."""
        self._before = frozenset(self.listed)
        self.listed.pop(address, None)

    def answer(self) -> frozenset[Address]:
        """Return whom it lists, sooner or later, or raise DiscoveryError. Called in a thread."""
        sleep(self.kernel, ANSWER_S * self.luck.random() ** 4)
        if self.trouble == "fails":
            raise DiscoveryError("it does not answer")
        if self.trouble == "empty":
            return frozenset()
        if self.trouble == "stale":
            return self._before
        return frozenset(self.listed) | ({NOBODY} if self.trouble == "wrong" else set())


class Asked(Source):
    """A directory, as a source of addresses."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def look(self) -> Finding:
        return Finding(self._directory.answer(), LOOK_S * self._directory.luck.random())

    def close(self) -> None:
        """It has nothing open."""

    def __str__(self) -> str:
        return "a directory"


class Registered:
    """Has a directory list a node while it serves, as Registration does with Consul."""

    def __init__(self, directory: Directory, member: Member) -> None:
        self._directory = directory
        self._address = member.address

    def keep(self, trouble: Trouble, stopped: Event) -> None:
        """Have it listed until that is set."""

        def ensure() -> float:
            self._directory.answer()
            self._directory.list(self._address)
            return LOOK_S

        given: Any = stopped
        repeat(ensure, trouble, given, self._directory.luck.random)
        self._directory.forget(self._address)


class Health:
    """Answers for a node over HTTP, if anybody asked."""

    ready = False

    def __init__(self, address: Address) -> None:
        self.bind = address

    def open(self) -> Address:
        """Return where."""
        return self.bind


class Founder:
    """Makes the nodes of a run. Their doors are where clients may go."""

    def __init__(self, net: Net, plan: Plan) -> None:
        self.doors: dict[str, list[tuple[str, int]]] = {door: [] for door in PORTS}
        self.directory = Directory(net.kernel)
        self.zeromq = ZeroMQ(net)
        self.zeromq.fate = self._fate
        self.strays = 0.0
        """How often a message of Silk goes astray: not before the first nodes have met."""
        self._net = net
        self._plan = plan
        self._first = [_address(number) for number in range(plan.nodes)]
        self._seeds = self._first[: net.kernel.luck.randint(1, plan.nodes)] if plan.way == "silk" else []

    def have(self, trouble: str, seconds: float) -> None:
        """Have something be wrong for so long with what nodes find each other by."""
        self.directory.have(trouble, seconds)

    def unfound(self, nodes: Iterable[Node]) -> list[str]:
        """Return which of these are not known by Silk to whom, a line each."""
        nodes = [*nodes] if self._plan.way == "silk" else []
        return [
            f"nodes_find_each_other: {node.name} is not told of {other.name}"
            for node in nodes
            for other in nodes
            if node is not other and node.agent is not None
            if other.member.address not in node.agent.program._source._last
        ]

    def _fate(self, *_: object) -> str:
        """Return what becomes of a message of Silk."""
        if self.directory.trouble:
            return FATES[self.directory.trouble]
        luck = self._net.luck
        return luck.choice([LOST, TWICE, LATE]) if self.strays and luck.random() < self.strays else ""

    def node(self, name: str) -> Node:
        """Return the one of that name, which begins."""
        address = _address(int(name.removeprefix(NODE)))
        if self._plan.way == "dns":
            self.directory.list(address)
        conditions = self._plan.conditions
        limits = Limits(link_idle_s=conditions.link_idle_s, max_links=conditions.max_links, max_moves=100_000)
        config = Config(drain_timeout_s=0.5, cluster=self._cluster(address), limits=limits)
        assemble = assembler(self.directory, self.zeromq)
        spread = tokens(self._net.kernel.luck, conditions.tokens, TOKENS)
        node = Node(self._net, name, address.host, self._plan.workers, config, spread, assemble, conditions.older)
        for door, known in self.doors.items():
            known.append(node.address(door))
        return node

    def _cluster(self, address: Address) -> Cluster:
        """Return what the node there is told of how to find others."""
        match self._plan.way:
            case "join":
                return Cluster(join=",".join(map(str, self._first)))
            case "dns":
                return Cluster(dns="nodes.test")
            case "consul":
                return Cluster(consul=True, register=True)
            case way:
                assert way == "silk", "there is no other"
                return Cluster(silk=address.host, silk_join=",".join(each.host for each in self._seeds))


def _address(number: int) -> Address:
    return Address(f"10.0.0.{number + 1}", PORTS[JUNCTION])


def assembler(directory: Directory, zeromq: ZeroMQ | None = None) -> Callable[..., Agent]:
    """Return what puts the agents of nodes together that ask this directory, or talk by this ZeroMQ."""

    def assemble(
        config: Config, ground: Any, _: None, last: Iterable[Member], channel: Channel, log: Any, shared: Any,
        machine: ProcessMachine,
    ) -> Agent:  # fmt: skip
        settings, member = config.cluster, ground.member
        health: Any = Health(member.address) if settings.register else None
        registration: Any = (lambda _: Registered(directory, member)) if settings.register else None
        if settings.silk:
            assert zeromq is not None, "there is one"
            task, threads = machine.process.task, machine.process.threads
            around = SimulatedSurroundings(zeromq, task.name, task.host, threads)
            found: Source | None = silk_source(settings, member, last, around)
        else:
            found = source(settings) if settings.join else Asked(directory)
        return Agent(
            member,
            found,
            learning=bool(settings.join),
            trust=trust(config),
            registration=registration,
            health=health,
            channel=channel,
            log=log,
            machine=machine,
            last=last,
            alive=lambda: shared.agent_lives(machine.monotonic()),
        )

    return assemble
