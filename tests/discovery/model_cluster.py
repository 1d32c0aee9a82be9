"""A cluster in simulated time, and one Roster that finds its way in it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skywalker.address import Address
from skywalker.discovery.contact import Greeting
from skywalker.discovery.roster import NOT_PROVEN, Action, Ask, Dial, HangUp, Notice, Ping, Publish, Roster
from skywalker.members import Member, Snapshot

LATENCY_S = 0.001
INSTANT_S = 1e-4  # what a clock moves at least while something is done


def address_of(number: int) -> Address:
    """Return the address of a node by its number."""
    return Address(f"10.0.0.{number}", 3443)


def member_of(number: int, *, host: str = "", workers: int = 2) -> Member:
    """Return a node by its number; `host` is where it is, if not at its usual address."""
    address = Address(host, 3443) if host else address_of(number)
    return Member(f"id-{number:04}", f"node-{number}", address, workers, True, (number * 1000, number * 1000 + 1))


ME = member_of(0)


@dataclass(eq=False)
class Host:
    """What is at an address: a node that serves or leaves, one that hangs, a stranger."""

    greeting: Greeting | None  # None for a stranger
    unproven: str = ""  # the kind of trouble for which it is not taken for a node of the cluster
    hangs: bool = False
    leaves: bool = False
    ring: tuple[Member, ...] = ()  # what it tells when it is asked
    version: str = ""
    is_cut_short: bool = False  # it does not tell its ring to the end


class World:
    """Addresses and what is there; an address that is not is one where connections are refused."""

    def __init__(self, *, learning: bool = False, last: Iterable[Member] = (), luck: float = 0.5) -> None:
        self.now = 1000.0
        self.hosts: dict[Address, Host] = {}
        self.connections: dict[Address, Host | None] = {}  # open ones; None for an attempt that is under way
        self.published: list[tuple[float, Snapshot]] = []
        self.dials: list[tuple[float, Address]] = []
        self.pings: list[tuple[float, Address]] = []
        self.asked: list[Address] = []
        self.notices: list[tuple[Address, str]] = []
        self._attempts: dict[Address, int] = {}  # the number of the last one
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.roster = Roster(ME, learning=learning, luck=lambda: luck, now=self.now, last=last)
        self._act()

    @property
    def ids(self) -> list[str]:
        """Who is in the cluster, as was last published."""
        return list(self.published[-1][1].by_id)

    def since(self, start: float) -> list[tuple[float, list[str]]]:
        """Return what was published after `start`, with the seconds since then."""
        return [(at - start, list(snapshot.by_id)) for at, snapshot in self.published if at > start]

    # What happens in it.

    def serve(self, member: Member, at: Address | None = None, *, stated: bool = True, version: str = "") -> Host:
        """Have a node serve at its address, or at another."""
        host = self.hosts[at or member.address] = Host(Greeting(member, stated, version), version=version)
        return host

    def stranger(self, at: Address) -> None:
        """Have something that is no node at an address."""
        self.hosts[at] = Host(None)

    def pretend(self, at: Address, what: str = NOT_PROVEN) -> None:
        """Have somebody at an address who says to be a node, and proves nothing; our connection to it is lost."""
        self.hosts[at] = Host(None, what)
        self.cut(at)

    def kill(self, at: Address) -> None:
        """Kill the node at an address; its machine says so."""
        self.hosts.pop(at, None)
        self.cut(at)

    def cut(self, at: Address) -> None:
        """Have our connection to an address lost."""
        if self.connections.get(at) is not None:
            del self.connections[at]
            self.roster.ended(at, "connection reset", self.now)
            self._act()

    def leave(self, at: Address) -> None:
        """Have the node at an address drain."""
        host = self.hosts[at]
        host.leaves = True
        if self.connections.get(at) is host:
            self.push(at, leaving=True)

    def push(self, at: Address, version: str = "", *, leaving: bool = False) -> None:
        """Have a node say that its ring has changed."""
        self.hosts[at].version = version
        self.roster.pushed(at, version, leaving, self.now)
        self._act()

    def find(self, *numbers: int | Address) -> None:
        """Have the source list these nodes, or addresses."""
        self.roster.found([address_of(each) if isinstance(each, int) else each for each in numbers], self.now)
        self._act()

    def hint(self, at: Address) -> None:
        """Have somebody say that there is a node at an address."""
        self.roster.hinted(at, self.now)
        self._act()

    def drain(self) -> None:
        """Have our own node drain."""
        self.roster.drain(self.now)
        self._act()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and everything happen that is due."""
        end = self.now + seconds
        while True:
            wait = self.roster.wait(self.now)
            tick_at = None if wait is None else self.now + max(wait, INSTANT_S)
            event_at = self._events[0][0] if self._events else None
            first = min((at for at in (tick_at, event_at) if at is not None), default=None)
            if first is None or first > end:
                break
            self.now = max(self.now, first)
            if first == event_at:
                heapq.heappop(self._events)[2]()
            else:
                self.roster.tick(self.now)
            self._act()
        self.now = end

    # The shell.

    def _later(self, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + LATENCY_S, next(self._numbers), do))

    def _act(self) -> None:
        for action in self.roster.actions():
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case Dial(at):
                assert at not in self.connections, f"{at} was dialled twice"
                self.connections[at] = None
                self.dials.append((self.now, at))
                self._attempts[at] = attempt = len(self.dials)
                self._later(lambda: self._dialled(at, attempt))
            case HangUp(at):
                self.connections.pop(at, None)
            case Ping(at):
                self.pings.append((self.now, at))
                self._reply(at, lambda: self.roster.answered(at, self.now))
            case Ask(at):
                self.asked.append(at)
                self._reply(at, lambda: self._list(at))
            case Publish(snapshot):
                self.published.append((self.now, snapshot))
            case Notice(at, text):
                self.notices.append((at, text))

    def _dialled(self, at: Address, attempt: int) -> None:
        if at not in self.connections or self._attempts[at] != attempt:
            return  # hung up meanwhile
        host = self.hosts.get(at)
        if host is None:
            del self.connections[at]
            self.roster.ended(at, "connection refused", self.now)
        elif host.hangs:
            pass
        elif host.unproven:
            del self.connections[at]
            self.roster.ended(at, "it proves nothing", self.now, host.unproven)
        elif host.greeting is None:
            del self.connections[at]
            self.roster.foreign(at, "it speaks something else", self.now)
        elif host.leaves:
            del self.connections[at]  # its door is closed
            self.roster.ended(at, "connection refused", self.now)
        else:
            self.connections[at] = host
            self.roster.greeted(at, host.greeting, self.now)

    def _reply(self, at: Address, reply: Callable[[], None]) -> None:
        host = self.connections[at]
        assert host is not None, f"{at} was asked before it was greeted"
        self._later(lambda: None if host.hangs or self.connections.get(at) is not host else reply())

    def _list(self, at: Address) -> None:
        host = self.hosts[at]
        self.roster.listed(at, "" if host.is_cut_short else host.version, host.ring, self.now)
