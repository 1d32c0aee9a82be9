"""Programs with a Silk node each, which ask and tell each other what luck has them say, and what became of all that."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from skywalker import silk
from skywalker.errors import SkywalkerError
from skywalker.wire.silk import FAIL
from tests.simulation.eventloop import EventLoop, Program
from tests.simulation.kernel import NEVER, Kernel, Task
from tests.simulation.machine import Net
from tests.simulation.silk_machine import Simulated
from tests.simulation.zeromq import Frames, ZeroMQ

PORT: Final = 3444

QUICK: Final = "quick"
SLOW: Final = "slow"
FAILS: Final = "fails"
TYPES: Final = (QUICK, QUICK, QUICK, SLOW, FAILS)

SLOW_S: Final = 4.0
"""Seconds that a slow handler takes, at most: longer than anybody asks for."""

PAUSE_S: Final = 0.6
"""Seconds between two sayings of one program, at most."""

Span = tuple[float, float]
"""From when until when."""


@dataclasses.dataclass(eq=False)
class Saying:
    """What a program said to others."""

    by: Life
    how: str
    type: str
    data: str
    at: float
    members: dict[str, silk.NodeInfo]  # whom its node knew then
    to: str = ""  # the id of whom it was for, if that is one
    ended_at: float = NEVER
    replies: list[tuple[str, Any]] = dataclasses.field(default_factory=list)  # who said it, and what
    error: str = ""

    def __str__(self) -> str:
        return f"{self.how} {self.type} {self.data!r} at {self.at:.3f} by {self.by}"


@dataclasses.dataclass(eq=False)
class Life:
    """One node, from its beginning to its end; whoever starts where it was is another."""

    name: str
    host: str
    id: str = ""
    began_at: float = NEVER
    ended_at: float = NEVER
    stops: list[Span] = dataclasses.field(default_factory=list)
    aways: list[Span] = dataclasses.field(default_factory=list)  # when it had left
    cuts: list[float] = dataclasses.field(default_factory=list)  # when it lost its connections
    events: list[tuple[float, str, str]] = dataclasses.field(default_factory=list)  # what happened to whom
    ran: Counter[str] = dataclasses.field(default_factory=Counter)  # how often its handlers did, by data
    blamed: list[float] = dataclasses.field(default_factory=list)  # when it heard of its own failure
    introduced: list[float] = dataclasses.field(default_factory=list)  # when it said who it is
    said_while_away: list[str] = dataclasses.field(default_factory=list)

    @property
    def is_away(self) -> bool:
        """Whether it has left."""
        return bool(self.aways) and self.aways[-1][1] == NEVER

    def __str__(self) -> str:
        return f"{self.name} ({self.id[:8]})"


@dataclasses.dataclass(eq=False)
class History:
    """What happened in one run."""

    lives: list[Life] = dataclasses.field(default_factory=list)
    sayings: list[Saying] = dataclasses.field(default_factory=list)
    parts: list[tuple[frozenset[str], Span]] = dataclasses.field(default_factory=list)  # of two hosts each
    checks: list[tuple[float, dict[Life, set[str]]]] = dataclasses.field(default_factory=list)
    """Whom each that is there knows, after a while in which nothing happened."""
    is_lossy: bool = False
    """Direct messages are lost."""
    complaints: list[str] = dataclasses.field(default_factory=list)

    def troubles(self, one: Life, other: Life) -> Iterator[Span]:
        """Yield when one of two, or what is between them, was not as it should be."""
        for life in (one, other):
            yield from life.stops
            yield from life.aways
            yield -NEVER, life.began_at
            yield life.ended_at, NEVER
        for hosts, span in self.parts:
            if hosts == {one.host, other.host}:
                yield span

    def is_calm(self, one: Life, other: Life, since: float, until: float) -> bool:
        """Whether nothing was in the way of two from then to then."""
        return not any(begin <= until and since <= end for begin, end in self.troubles(one, other))

    def are_cut(self, one: Life, other: Life, since: float, until: float) -> bool:
        """Whether connections of theirs were lost."""
        return any(since <= at <= until for life in (one, other) for at in life.cuts)


class Member:
    """A program with a node; told() of what happens it writes in a history."""

    def __init__(self, cluster: Cluster, life: Life, seeds: list[str]) -> None:
        self.life = life
        self.node: silk.Node | None = None
        self._cluster = cluster
        self._luck = cluster.kernel.luck
        self._seeds = seeds
        self._count = 0
        self.program = Program(cluster.net, life.name, life.host, self._main)
        self.task = self.program.task

    async def _main(self, loop: EventLoop) -> None:
        machine = Simulated(self._cluster.zeromq, loop, self.task)
        places = (f"tcp://{self.life.host}:{PORT}", f"tcp://{self.life.host}:{PORT + 1}")
        self.node = node = silk.Node(*places, name=self.life.name, machine=machine)
        node.handle(QUICK, self._quick, attempts=6, period=0.5)
        node.handle(SLOW, self._slow, attempts=3, period=0.5)
        node.handle(FAILS, self._fail, attempts=6, period=0.5)
        await node.open()
        self.life.id, self.life.began_at = node.id, loop.time()
        watching = loop.create_task(self._watch(node.events()))
        for seed in self._seeds:
            node.seek(seed)
        said: set[asyncio.Task[None]] = set()
        while not self._cluster.is_over:
            await asyncio.sleep(PAUSE_S * self._luck.random())
            if not self.life.is_away and self._cluster.is_loud:
                saying = loop.create_task(self._say())
                said.add(saying)
                saying.add_done_callback(said.discard)
        await watching

    async def _watch(self, events: silk.Events) -> None:
        async for event in events:
            self.life.events.append((self._now(), type(event).__name__, event.node.id))

    def _now(self) -> float:
        return self.program.loop.time()

    def leave(self, pause_s: float) -> None:
        """Have its node leave, and be back after a while if that is not for ever."""
        loop = self.program.loop
        loop.call_soon_threadsafe(lambda: loop.create_task(self._leave(pause_s)))

    async def _leave(self, pause_s: float) -> None:
        if self.node is None or not self.life.id or self.life.is_away:
            return
        left_at = self._now()
        await self.node.leave()
        self.life.aways.append((left_at, NEVER))
        if pause_s < NEVER:
            await asyncio.sleep(pause_s)
            self.life.aways[-1] = (left_at, self._now())
            for seed in self._cluster.routers(self):
                self.node.seek(seed)

    # What it handles.

    async def _quick(self, data: str) -> Any:
        self.life.ran[data] += 1
        return {"got": data, "by": self.life.id}

    async def _slow(self, data: str) -> Any:
        self.life.ran[data] += 1
        await asyncio.sleep(SLOW_S * self._luck.random())
        return {"got": data, "by": self.life.id}

    def _fail(self, data: str) -> Any:
        self.life.ran[data] += 1
        raise ValueError(f"{data} by {self.life.id}")

    # What it says.

    async def _say(self) -> None:
        assert self.node is not None, "it has one by now"
        node, members = self.node, self.node.members
        self._count += 1
        how = self._luck.choice(["request", "request", "request_any", "request_all", "tell", "tell_any", "broadcast"])
        type = self._luck.choice(TYPES) if how.startswith("request") else QUICK
        saying = Saying(self.life, how, type, f"{self.life.name} {self._count}", self._now(), dict(members))
        if how in ("request", "tell"):
            if not members:
                return
            saying.to = self._luck.choice([*members])
        self._cluster.history.sayings.append(saying)
        try:
            if how == "request_all":
                async for reply in node.request_all(type, saying.data):
                    saying.replies.append((reply.node.id, str(reply.error) if reply.error else reply.data))
            else:
                to = [saying.to] if saying.to else []
                got = await getattr(node, how)(*to, type, saying.data)
                if how.startswith("request"):
                    saying.replies.append((saying.to, got))
        except SkywalkerError as error:
            saying.error = f"{error.__class__.__name__}: {error}"
        saying.ended_at = self._now()


class Cluster:
    """The members, on a host each, and what is done to them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.net = Net(kernel)
        self.zeromq = ZeroMQ(self.net)
        self.history = History()
        self.members: dict[str, Member] = {}
        """By host, whoever was there last."""
        self.is_loud = True
        """They say something."""
        self.is_over = False
        self._by_task: dict[Task, Member] = {}
        self.zeromq.said = self._said
        self.zeromq.heard = self._heard
        self.net.ended.append(self._ended)

    def routers(self, but: Member | None = None) -> list[str]:
        """Return where all are, but for one."""
        return [f"tcp://{host}:{PORT}" for host, member in self.members.items() if member is not but]

    def start(self, host: str, seeds: list[str]) -> None:
        """Start one, which seeks others where it is told to."""
        number = sum(life.host == host for life in self.history.lives)
        life = Life(f"{host.rpartition('.')[2]}-{number}", host)
        self.history.lives.append(life)
        self.members[host] = member = Member(self, life, seeds)
        self._by_task[member.task] = member

    def live(self) -> list[Member]:
        """Return those that are processes still."""
        return [each for each in self.members.values() if each.task.lives]

    def kill(self, member: Member, back_s: float) -> None:
        """Kill one; another starts there after a while if that is not for ever."""
        member.program.kill()
        if back_s < NEVER:
            seeds = self.routers(member)
            self.kernel.at(self.kernel.now + back_s, lambda: self._start_again(member, seeds))

    def _start_again(self, member: Member, seeds: list[str]) -> None:
        if self.members[member.life.host] is member and not member.task.lives:
            self.start(member.life.host, seeds)

    def stop(self, member: Member, seconds: float) -> None:
        """Have one stand still."""
        now = self.kernel.now
        member.life.stops.append((now, now + seconds))
        member.task.stop(seconds)

    def part(self, some: list[str], others: list[str], seconds: float, *, both_ways: bool = True) -> None:
        """Have nothing pass between hosts, or from some to others only."""
        for one in some:
            for other in others:
                self.net.part(one, other, seconds)
                if both_ways:
                    self.net.part(other, one, seconds)
                self.history.parts.append((frozenset((one, other)), (self.kernel.now, self.kernel.now + seconds)))

    def lose_power(self, member: Member, back_s: float) -> None:
        """Have a machine lose power, and be on again after a while, with another one there."""
        host = member.life.host
        self.net.turn_off(host)
        self.kernel.at(self.kernel.now + back_s, lambda: self.net.turn_on(host))
        self.kill(member, back_s)

    def cut(self, member: Member) -> None:
        """Have one lose all its connections."""
        member.life.cuts.append(self.kernel.now)
        self.zeromq.cut(member.life.host)

    def lose_link(self, hosts: list[str], seconds: float) -> None:
        """Have one connection of two pass nothing, and reset it after so long."""
        now, (one, other) = self.kernel.now, hosts
        links = self.zeromq.between(one, other)
        if links:
            link = self.kernel.luck.choice(links)
            self.history.parts.append((frozenset(hosts), (now, now + seconds)))
            link.lose()
            self.kernel.at(now + seconds, link.reset_both)

    def check(self) -> None:
        """See who knows whom, now that nothing has happened for long."""
        here = [each for each in self.live() if each.node is not None and not each.life.is_away]
        known = {each.life: set(each.node.members) for each in here if each.node is not None}
        self.history.checks.append((self.kernel.now, known))

    def close(self) -> None:
        """End all."""
        self.is_over = True
        now = self.kernel.now
        for member in self.live():
            member.program.kill()
            member.life.ended_at = now
        for member in self._by_task.values():
            self.history.complaints += member.program.loop.complaints

    # What it sees of them.

    def _ended(self, task: Task) -> None:
        if task in self._by_task:
            self._by_task[task].life.ended_at = self.kernel.time()

    def _said(self, task: Task, frames: Frames) -> None:
        life = self._by_task[task].life
        if life.is_away:
            life.said_while_away.append(frames[-1].decode())
        if b'"_join"' in frames[-1] or b'"_connect"' in frames[-1]:
            life.introduced.append(self.kernel.time())

    def _heard(self, task: Task, frames: Frames) -> None:
        if frames[0] == FAIL.encode():
            member = self._by_task[task]
            message = json.loads(frames[1])
            if message["data"]["id"] == member.life.id and member.node is not None and member.node.members:
                member.life.blamed.append(self.kernel.time())
