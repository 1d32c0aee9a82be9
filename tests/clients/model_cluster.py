"""A cluster as far as one client's calls go: nodes with views of their own, which move what waits; all when told.

Every hop is a queue of its own, so that a test can have one overtake another wherever the real nodes could.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgpack

from skywalker.address import Address
from skywalker.clients.calls import Calls
from skywalker.clients.line import Line
from skywalker.members import Member, Place, Snapshot
from skywalker.ring import slices, token_of
from skywalker.wire import values
from tests.clients.scripted import error, framed

MEETINGS = (":recv!", ":send!", ":take!")
PAGE = 2
"""Nodes that one answer to :nodes tells."""


@dataclass(eq=False)
class Link:
    """One connection of the client, and the place at its other end."""

    place: Place
    up: deque[list[Any]] = field(default_factory=deque)
    down: deque[list[Any]] = field(default_factory=deque)
    alive: bool = True
    wants_news: bool = False
    replaced: bool = False  # whether its worker is


@dataclass(eq=False)
class Held:
    """A call that some node has, and where it is: in a hop, or waiting at a place."""

    link: Link
    message: list[Any]
    at: Place | tuple[Place, Place] | None = None

    @property
    def id(self) -> int:
        return int(self.message[1])

    @property
    def topic(self) -> Any:
        return self.message[3] if self.message[0] in MEETINGS else self.message[2]


@dataclass(eq=False)
class ModelMember:
    """One node."""

    member: Member
    view: Snapshot
    alive: bool = True
    leaving: bool = False


def member(number: int, workers: int = 2) -> Member:
    """Return a node of a cluster; the same number is the same node."""
    tokens = sorted(token_of(bytes([number, n])) for n in range(8))
    return Member(f"n{number}", f"name{number}", Address(f"10.0.0.{number}", 1), workers, False, tuple(tokens))


class ModelCluster:
    """What the nodes do with the calls of one client."""

    def __init__(self, members: Iterable[Member]) -> None:
        ring = Snapshot(members)
        self.nodes = {each.id: ModelMember(each, ring) for each in ring}
        self.links: list[Link] = []
        self.calls: list[Held] = []  # in the order in which nodes read them
        self.hops: dict[tuple[Place, Place], deque[Held]] = {}
        self.waiting: dict[tuple[Place, Any], list[Held]] = {}
        self.forwarded = 0
        self.overtaken: list[str] = []
        self._excused: set[int] = set()  # calls that only nodes could keep in order

    # Connections.

    def places(self) -> list[Place]:
        """Return where a connection can be made."""
        alive = [node.member for node in self.nodes.values() if node.alive]
        return [Place(each.id, worker) for each in alive for worker in range(each.workers)]

    def connect(self, line: Line, place: Place) -> Link:
        """Let a line end at a place."""
        link = line.shell = Link(place)
        self.links.append(link)
        return link

    def cut(self, line: Line) -> None:
        """Cut a connection: its calls are gone, wherever they are."""
        link: Link = line.shell
        link.alive = False
        self.links.remove(link)
        for call in [call for call in self.calls if call.link is link]:
            self._forget(call)

    def write(self, calls: Calls) -> None:
        """Take what the client has to write, as a shell does."""
        while calls.touched:
            line = calls.touched.pop()
            data = line.output()
            while data and line.shell is not None:
                end = 2 + int.from_bytes(data[:2], "big")
                line.shell.up.append(msgpack.unpackb(data[2:end], strict_map_key=False))
                data = data[end:]

    def reply(self, link: Link) -> bytes:
        """Return the next message on a connection."""
        return framed(link.down.popleft())

    # What nodes do.

    def owner(self, place: Place, topic: Any) -> Place:
        """Return who owns a topic, as one place sees it."""
        return self.nodes[place.node].view.ring.owner(token_of(values.pack(topic)))

    def read(self, link: Link) -> None:
        """Have the node read one message."""
        message = link.up.popleft()
        node = self.nodes[link.place.node]
        method, id, *arguments = message
        if method == ":hello":
            link.wants_news = arguments[0].get("ring", False)
            link.down.append([":hello", id, self._greeting(node, link.place.worker)])
            if node.leaving:
                self._push(node, link)
        elif method == ":nodes":
            found = [each.as_map() for each in node.view if not arguments or each.id > arguments[0]]
            told = {"version": node.view.version, "nodes": found[:PAGE], "more": len(found) > PAGE}
            link.down.append([":nodes", id, told])
        elif method == ":cancel":
            link.down.append([":cancel", id, self._cancel(link, arguments[0])])
        elif method == ":ping":
            link.down.append([":ping", id, True])
        elif method in MEETINGS and (node.leaving or link.replaced):
            link.down.append([method, id, error("draining")])
        elif method in MEETINGS or method == ":topic":
            call = Held(link, message)
            if method in MEETINGS:
                self.calls.append(call)
            self._send_on(call)

    def forward(self, hop: tuple[Place, Place]) -> None:
        """Have the owner read one call that was forwarded."""
        self._meet(self.hops[hop].popleft(), hop[1])

    def busy_hops(self) -> list[tuple[Place, Place]]:
        """Return the hops between living nodes that have something under way."""
        return [hop for hop, queue in self.hops.items() if queue and self.nodes[hop[1].node].alive]

    def answer(self, call: Held) -> None:
        """Answer a call that waits with its own id."""
        self._forget(call)
        call.link.down.append([call.message[0], call.id, call.id])

    def give_back(self, call: Held) -> None:
        """Have a worker that is replaced wait for the end of a call no longer."""
        self._forget(call)
        call.link.down.append([call.message[0], call.id, error("draining")])

    def _greeting(self, node: ModelMember, worker: int) -> dict[str, Any]:
        return {
            "node": node.member.id, "worker": worker, "workers": node.member.workers, "steering": False,
            "tokens": slices(node.member.tokens, node.member.workers), "slicing": node.member.slicing,
            "ring": node.view.version,
        }  # fmt: skip

    def _push(self, node: ModelMember, link: Link) -> None:
        link.down.append([":ring", None, {"version": node.view.version, "leaving": node.leaving}])

    def _send_on(self, call: Held) -> None:
        here = call.link.place
        owner = self.owner(here, call.topic)
        if owner == here:
            self._meet(call, here)
        else:
            self.forwarded += call.message[0] in MEETINGS
            call.at = (here, owner)
            self.hops.setdefault((here, owner), deque()).append(call)

    def _meet(self, call: Held, place: Place) -> None:
        if not call.link.alive:
            return
        if call.message[0] == ":topic":
            call.link.down.append([":topic", call.id, {}])
            return
        for older in self.calls:
            if older.topic == call.topic and older.id < call.id and older.at != place and older.id not in self._excused:
                self.overtaken.append(f"{call.id} at {place} by {call.link.place} overtook {older.id} at {older.at}")
        call.at = place
        before = self.waiting.setdefault((place, call.topic), [])
        for younger in before:
            if younger.id > call.id and not {younger.id, call.id} & self._excused:
                self.overtaken.append(f"{younger.id} was at {place} before {call.id} by {call.link.place}")
        before.append(call)

    def _forget(self, call: Held) -> None:
        self.calls.remove(call)
        self._take_away(call)

    def _take_away(self, call: Held) -> None:
        """Take a call from wherever it is."""
        if isinstance(call.at, Place):
            self.waiting[call.at, call.topic].remove(call)
        elif call.at is not None:
            self.hops[call.at].remove(call)
        call.at = None

    def _cancel(self, link: Link, id: int) -> bool:
        for call in self.calls:
            if call.link is link and call.id == id:
                self._forget(call)
                link.down.append([call.message[0], id, error("cancelled")])
                return True
        return False

    # What happens to nodes.

    def add(self, new: Member) -> None:
        """Have a node join; the others are told later."""
        self.nodes[new.id] = ModelMember(new, self.truth(new))

    def truth(self, *others: Member) -> Snapshot:
        """Return the ring as it should be."""
        serving = [node.member for node in self.nodes.values() if node.alive and not node.leaving]
        return Snapshot({each.id: each for each in [*serving, *others]}.values())

    def drain(self, id: str) -> None:
        """Have a node say that it is going away."""
        node = self.nodes[id]
        node.leaving = True
        for link in self.links:
            if link.place.node == id and link.wants_news:
                self._push(node, link)

    def see(self, id: str, view: Snapshot) -> None:
        """Have a node use another ring: what its clients wait for, and that belongs elsewhere, is moved, in order."""
        node = self.nodes[id]
        if node.view.version == view.version:
            return
        self._excuse()
        theirs = [call for call in self.calls if call.link.place.node == id]
        before = {call: self.owner(call.link.place, call.topic) for call in theirs}
        node.view = view
        for call in theirs:
            if self.owner(call.link.place, call.topic) != before[call]:
                self._take_away(call)
                self._send_on(call)
        for link in self.links:
            if link.place.node == id and link.wants_news:
                self._push(node, link)

    def _excuse(self) -> None:
        """Let nodes alone answer for topics that have calls on several connections while the ring changes."""
        links: dict[Any, set[Link]] = {}
        for call in self.calls:
            links.setdefault(call.topic, set()).add(call.link)
        self._excused |= {call.id for call in self.calls if len(links[call.topic]) > 1}
