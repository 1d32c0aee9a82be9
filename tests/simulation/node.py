"""A node of the simulated cluster: its supervisor and all that comes of it, as they are, and what happens to it."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Iterable
from typing import Any, Final

from skywalker.address import Address
from skywalker.config import Config
from skywalker.members import Member, Snapshot
from skywalker.ring import SLICING
from tests.promises.history import Trouble
from tests.simulation.kernel import NEVER
from tests.simulation.machine import Net
from tests.simulation.processes import Process
from workers.agent.agent import Agent
from workers.ipc import snapshots
from workers.process.notify import Notifier
from workers.process.supervisor import State, Supervisor
from workers.setup.ground import JUNCTION, PUBSUB
from workers.worker.worker import Worker

PORTS: Final = {JUNCTION: 3443, PUBSUB: 27022}


class Log:
    """Takes what is logged for something that happened; a bug ends the run."""

    def __init__(self, node: Node, who: str) -> None:
        self._node = node
        self._who = who

    def bind(self, **fields: object) -> Log:
        """Return the log of a process that is to be forked."""
        log: Log = self._node.log_of(f"{self._node.name}/{fields['process']} {fields.get('worker', '')}".strip())
        return log

    def use(self, level: str, form: str) -> None:
        """All levels are of interest."""

    def info(self, event: str, **fields: object) -> None:
        """Note it."""
        self._node.kernel.note(self._who, f"says {event}: {fields.get('reason') or fields.get('changes') or ''}")
        self._node.told(event)

    warning = info

    def error(self, event: str, **fields: object) -> None:
        """Note it, too, unless it is a mistake of the program."""
        assert event != "bug", fields
        self.info(event, **fields)


class Ground:
    """What there is before a supervisor is, as setup/ground.py has it."""

    outlived: Final[list[str]] = []
    steering = True
    admin = None

    def __init__(self, net: Net, member: Member, process: Process) -> None:
        host, workers = member.address.host, member.workers
        doors = {door: net.listen((host, port), workers, process.task) for door, port in PORTS.items()}
        self.listeners = [{door: each[slot] for door, each in doors.items()} for slot in range(workers)]
        self.addresses = {door: (host, port) for door, port in PORTS.items()}
        self.member = member
        self.near = member.address

    def close(self) -> None:
        """Its listeners are closed with the process."""


class Node:
    """One of a cluster."""

    def __init__(
        self,
        net: Net,
        name: str,
        host: str,
        workers: int,
        config: Config,
        tokens: tuple[int, ...],
        assemble: Callable[..., Agent],
        older: float = 0.0,
    ) -> None:
        """`assemble` puts its agent together; `older` is that of Conditions."""
        self.net = net
        self.kernel = net.kernel
        self.name = name
        self.host = host
        self.troubles: list[Trouble] = []
        """What happened to it."""
        self.config = dataclasses.replace(config, open=True, admin=False)
        """Its settings as they are when they are read the next time."""
        self._reloading: Trouble | None = None
        self._assemble = assemble
        self._lives = 0
        self._back_s = 0.0  # after its end
        self._is_dying = False
        self.member = Member(name, name, Address(host, PORTS[JUNCTION]), workers, True, tokens)
        self._older = older
        self.start()

    def start(self) -> None:
        """Begin to live, or to live again."""
        if self._older:
            is_older = self.kernel.luck.random() < self._older
            self.member = dataclasses.replace(self.member, slicing=0 if is_older else SLICING)
        self._lives += 1
        self._is_dying = False
        name = self.name if self._lives == 1 else f"{self.name}.{self._lives}"
        process = Process(self.net, name, self.host, self._ended)
        given: Any = Ground(self.net, self.member, process), None, self._assemble, self.log_of(self.name)
        self.supervisor = Supervisor(
            self.config, *given, process.machine, notifier=Notifier(), read_again=lambda: self.config
        )
        process.begin(self.supervisor, self.kernel.now)
        self.process = process

    def log_of(self, who: str) -> Any:
        """Return what one of its processes logs to."""
        return Log(self, who)

    def _ended(self, process: Process) -> None:
        if process is self.process:
            self._is_dying = True
            if (keeper := getattr(self.supervisor, "_agent", None)) is not None:
                keeper.close()  # a file with a ring that it has is a real one
            self.kernel.at(self.kernel.time() + self._back_s, self.start)
        elif process.status is not None and process.status < 0 and not self._is_dying:
            is_agent = isinstance(process.program, Agent)
            self.suffer("agent kill" if is_agent else "kill", self.kernel.time()).worker = process.slot

    def told(self, event: str) -> None:
        """Its log says that this has happened."""
        if event == "reloading":
            self._reloading = self.suffer("reload", NEVER)
        elif self._reloading is not None and event in ("reloaded", "reload-failed", "draining"):
            self._reloading.until = self.kernel.time()
            self._reloading = None

    def suffer(self, kind: str, until: float) -> Trouble:
        """It has trouble of that kind from now on, until then."""
        trouble = Trouble(kind, self.name, self.kernel.time(), until)
        self.troubles.append(trouble)
        return trouble

    def stop(self, victim: Process, seconds: float, kind: str = "stop") -> None:
        """Have one of its processes stand still for so long."""
        self.suffer(kind, self.kernel.now + seconds)
        victim.stop(seconds)

    def leave(self, back_s: float) -> None:
        """Have it told to drain and end; it comes back so many seconds after that."""
        self._back_s = back_s
        self.kernel.note(self.name, "gets SIGTERM")
        self.process.signal(signal.SIGTERM)

    def die(self, back_s: float, loses_power: bool) -> None:
        """End all of it at once, and have it come back so many seconds later.

        What it has open is closed by its kernel, unless that is gone as well: then nobody hears of it until it is back.
        """
        self._back_s = back_s
        if loses_power:
            self.kernel.note(self.name, "loses power")
            self.net.turn_off(self.host)
            self.kernel.at(self.kernel.now + back_s, lambda: self.net.turn_on(self.host))
        self.process.signal(signal.SIGKILL)

    def part(self, other: Node, seconds: float, ways: str = "both ways") -> None:
        """Have nothing pass between this node and another for so long, or only not to that one."""
        self.suffer("part", self.kernel.now + seconds)
        self.kernel.note(self.name, f"is parted from {other.name} for {seconds:.3f} s, {ways}")
        self.net.part(self.host, other.host, seconds)
        if ways == "both ways":
            self.net.part(other.host, self.host, seconds)

    def address(self, door: str) -> tuple[str, int]:
        """Return where a door of it is."""
        return self.host, PORTS[door]

    def workers(self) -> list[Process]:
        """Return those that live."""
        return [each for each in self.process.children if each.status is None and isinstance(each.program, Worker)]

    @property
    def agent(self) -> Process | None:
        """Its agent, if one lives."""
        agents = [each for each in self.process.children if each.status is None and isinstance(each.program, Agent)]
        return agents[0] if agents else None

    @property
    def snapshot(self) -> Snapshot | None:
        """The ring that its workers go by, if its agent has told one."""
        file = self.supervisor._agent.snapshot
        return snapshots.content(file) if file is not None else None

    @property
    def rings(self) -> set[str]:
        """The versions of those that its workers go by: its agent may know better, and they not yet."""
        return {each.program._node.snapshot.version for each in self.workers()}

    @property
    def lives(self) -> bool:
        """Whether it has begun, and nobody has told it to end."""
        is_told = self.process.status is not None or self.process.has_signals
        return not is_told and State.SERVING <= self.supervisor.state < State.HIDING

    @property
    def serves(self) -> bool:
        """Whether there is a worker in each place that serves."""
        return self.supervisor.state is State.SERVING

    @property
    def reloads(self) -> bool:
        """Whether workers are being replaced."""
        return self.supervisor.state is State.RELOADING or self.process.has_signals

    def close(self) -> None:
        """Give back what is real of it."""
        self._is_dying, self._back_s = True, NEVER
        self.process.end(-signal.SIGKILL)

    def reload(self) -> None:
        """Have it told to reload."""
        self.kernel.note(self.name, "gets SIGHUP")
        self.process.signal(signal.SIGHUP)


def agree(nodes: Iterable[Node]) -> bool:
    """Return whether these live, and all their workers take them, and nobody else, for nodes."""
    nodes = [*nodes]
    ring = Snapshot([node.member for node in nodes]).version
    return all(node.lives and node.rings == {ring} for node in nodes)
