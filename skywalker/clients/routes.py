"""Which connection a call goes over: there may be one to each worker of each node, so that nothing is forwarded.

Every client has a *main* line, to whichever worker it met, which takes any call. Once a client
has made enough calls to profit it adds direct lines: at a node by itself to all workers, in a
cluster to those that own topics called lately. Where one cannot be had the main line goes on
taking its calls. This module decides; it knows no socket and no clock. To which
node the main line goes, homes.py decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from skywalker.address import Address
from skywalker.clients.core import Dial
from skywalker.clients.line import Line
from skywalker.members import Place, PlaceRing, Snapshot, shared
from skywalker.ring import token_of
from skywalker.wire import values


@dataclass(frozen=True, slots=True)
class Greeting:
    """What counts here of a node's answer to :hello."""

    node: str
    worker: int
    workers: int
    steering: bool
    version: str  # of the ring that the node uses; empty if it does not say, being older than clusters
    ring: PlaceRing  # of its own tokens only

    @classmethod
    def parse(cls, answer: Any) -> Greeting | None:
        """Return None for the answer of something else than our nodes."""
        match answer:
            case {"node": str(node), "worker": int(worker), "workers": int(workers), "tokens": dict(tokens)}:
                version, slicing = answer.get("ring", ""), answer.get("slicing", 0)
                try:
                    if tokens.keys() == set(range(workers)) and 0 <= worker < workers and isinstance(version, str):
                        owned = shared(node, tokens, slicing)
                        if len(owned) != sum(map(len, tokens.values())):
                            return None  # two workers have the same token
                        if any(type(token) is not int for token in owned):
                            return None
                        ring = PlaceRing(owned)
                        return cls(node, worker, workers, answer.get("steering") is True, version, ring)
                except (TypeError, ValueError):
                    pass
        return None

    @property
    def place(self) -> Place:
        """The worker that answered."""
        return Place(self.node, self.worker)


@dataclass(frozen=True, slots=True)
class Node:
    """What is to be known of a node to connect to its workers."""

    workers: int
    steering: bool  # whether the source port of a connection chooses the worker
    address: Address | None = None  # None if it is only known where the main line met it


@dataclass(frozen=True, slots=True)
class View:
    """Nodes by id, and the ring of their tokens."""

    version: str
    nodes: Mapping[str, Node]
    ring: PlaceRing
    owners: frozenset[Place]

    @classmethod
    def alone(cls, greeting: Greeting) -> Self:
        """Return the view of a node that is in no cluster."""
        node = Node(greeting.workers, greeting.steering)
        return cls(greeting.version, {greeting.node: node}, greeting.ring, frozenset(greeting.ring.shares()))

    @classmethod
    def of(cls, snapshot: Snapshot, version: str) -> Self:
        """Return the view that a node told, by the version that the node gave it."""
        nodes = {each.id: Node(each.workers, each.steering, each.address) for each in snapshot}
        return cls(version, nodes, snapshot.ring, frozenset(snapshot.ring.shares()))

    @property
    def is_lone(self) -> bool:
        """Whether there is one node only."""
        return len(self.nodes) == 1


RETRY_S: Final = 600.0
"""Seconds without a new attempt after one that failed."""

REDIAL_S: Final = 1.0
"""Seconds after which a direct line that was lost is made anew, once: a worker that died is replaced by then."""

DRAINED_S: Final = 15.0
"""The same where the worker drains, for which it has ten seconds unless told otherwise."""

GROWTH: Final = 8
"""How many times longer than the last time the next attempt is waited for, at a node that may just be restarting."""


class Way:
    """How the workers of one node are met: which dials there may be, when, and to which worker, one at a time.

    At a node that steers, see `skywalker.dialling`, one dial meets each worker. Behind a router that changes the port,
    or at a node that does not steer, a dial meets a random one; then we dial until all are met, with a limit.
    """

    __slots__ = ("_dials", "_failures", "_redialled", "is_dialling", "not_before", "steering", "workers")

    def __init__(self, workers: int, steering: bool) -> None:
        self.workers = workers
        self.steering = steering
        self.is_dialling = False  # from the dial up to the greeting, or the failure
        self.not_before = 0.0  # no dial at all, since one failed
        self._failures = 0  # in a row
        self._redialled: dict[int, float] = {}  # by worker: when its line was last made anew
        self.renew()

    def renew(self) -> None:
        """Allow as many dials as it takes to meet every worker by chance, most likely."""
        self._dials = 2 * self.workers + 8

    def dial(self, worker: int) -> int | None:
        """An attempt begins that is for this worker: return which one to steer to, None for any."""
        self._dials -= 1
        self.is_dialling = True
        return worker if self.steering else None

    @property
    def is_exhausted(self) -> bool:
        """Whether the limit of dials is reached."""
        return self._dials <= 0

    def met(self) -> None:
        """An attempt has met a worker."""
        self.is_dialling = False
        self._failures = 0

    def failed(self, now: float) -> None:
        """What was tried will not do for long."""
        self._rest(now, RETRY_S)

    def unanswered(self, now: float) -> None:
        """An attempt came to nothing, as it does at a node that restarts."""
        self._rest(now, min(RETRY_S, REDIAL_S * GROWTH**self._failures))
        self._failures = min(self._failures + 1, 16)

    def lost(self, line: Line, worker: int, now: float) -> None:
        """A line to a worker is lost, or was not answered on the way to becoming one."""
        after = DRAINED_S if line.leaving is not None else REDIAL_S if line.takes_calls else RETRY_S
        if now - self._redialled.get(worker, -math.inf) < RETRY_S:
            after = RETRY_S
        self._redialled[worker] = now
        self.not_before = max(self.not_before, now + after)
        self.renew()

    def _rest(self, now: float, seconds: float) -> None:
        self.is_dialling = False
        self.not_before = now + seconds
        self.renew()


DIRECT_AFTER_CALLS: Final = 32
"""Calls from which on direct lines pay: a program that asks a question or two makes one connection."""

WANTED_AFTER_CALLS: Final = 4
"""Calls over the main line within LATELY_S for one worker of a cluster, after which it gets a line of its own."""

LATELY_S: Final = 10.0

MAX_DIRECT: Final = 128
"""Direct lines at a time: with a hundred nodes of eight workers nobody wants a connection to each."""

IDLE_S: Final = 60.0
"""Seconds without a call after which a direct line makes room for another."""

BARRIER_TRIES: Final = 10_000
"""Topics that are tried to find one of a worker, some 10 ms; who owns less than that is not worth it."""

_UNKNOWN: Final = ""
"""In place of a node's id: the node of the main line, of which nothing is known yet."""


class Routes:
    """The lines of one client by place, and which are still wanted."""

    def __init__(self, main: Line, direct: bool) -> None:
        self.dial_at = 0.0 if direct else math.inf  # when dial() may want something, not before
        self.known = False  # whether there are several workers to go to directly
        self.candidates: dict[Line, str] = {}  # those that have said :hello and wait for the answer, with their nodes
        self._direct = direct
        self._main = main
        self._home: Place | None = None  # where the main line ends
        self._view: View | None = None
        self._ways: dict[str, Way] = {_UNKNOWN: Way(1, False)}
        self._lines: dict[Place, Line] = {}
        self._wanted: dict[Place, float] = {}  # since when
        self._called: dict[Place, int] = {}  # calls over the main line that were for others
        self._called_since = 0.0
        self._topics: dict[Place, bytes] = {}  # of these calls, the latest

    def has_node(self, node: str) -> bool:
        """Whether the node is one of those that are known."""
        return self._view is not None and node in self._view.nodes

    def home_address(self) -> Address | None:
        """Return what the others call the address of the node of the main line, if that is known."""
        if self._view is None or self._home is None or self._home.node not in self._view.nodes:
            return None
        return self._view.nodes[self._home.node].address

    def owner(self, topic: bytes) -> Place | None:
        """Return the place that owns a topic, given in canonical form; None while that does not matter."""
        return self._view.ring.owner(token_of(topic)) if self.known and self._view is not None else None

    def line(self, place: Place | None) -> Line:
        """Return the line to a place: its own, or the main one."""
        return self._main if place is None else self._lines.get(place, self._main)

    def direct(self) -> dict[Place, Line]:
        """Return the direct lines by place, joined or about to be."""
        return self._lines

    def called(self, place: Place | None, topic: bytes, now: float) -> None:
        """The main line took a call that is for this place."""
        if place is None or place == self._home or not self._direct or self._view is None or self._view.is_lone:
            return
        if now - self._called_since > LATELY_S:
            self._called.clear()
            self._called_since = now
        count = self._called[place] = self._called.get(place, 0) + 1
        if count == WANTED_AFTER_CALLS:
            self._topics[place] = topic
            self._wanted[place] = now
            self._reckon(now)

    # Dialling: one attempt at a time for each node.

    def dial(self, now: float) -> Dial | None:
        """Return a connection that is wanted now; then either greeted() or failed() must follow. Ask until None."""
        if now < self.dial_at:
            return None
        if self._view is None:
            way = self._ways[_UNKNOWN]
            self.dial_at = math.inf
            if way.is_dialling:
                return None
            way.is_dialling = True
            return Dial(None, 1)
        for place in self._missing(now):
            way = self._way(place.node)
            if way.is_dialling or now < way.not_before:
                continue
            if way.is_exhausted:
                way.failed(now)
                continue
            if not self._has_room(now):
                self.dial_at = now + IDLE_S
                return None
            node = self._view.nodes[place.node]
            at_home = self._home is not None and place.node == self._home.node
            return Dial(way.dial(place.worker), node.workers, place.node, None if at_home else node.address)
        self._reckon(now)
        return None

    def opened(self, wanted: Dial, line: Line) -> None:
        """A connection that dial() returned is there; it says :hello."""
        self.candidates[line] = wanted.node

    def failed(self, node: str, now: float) -> None:
        """An attempt came to nothing: leave it at what there is, for a while."""
        way = self._ways.get(node)
        if way is not None:
            # What fails where the main line succeeds fails for a reason that lasts.
            if node == _UNKNOWN or (self._home is not None and node == self._home.node):
                way.failed(now)
            else:
                way.unanswered(now)
        self._reckon(now)

    def _way(self, node: str) -> Way:
        assert self._view is not None
        known = self._view.nodes[node]
        way = self._ways.get(node)
        if way is None:
            way = self._ways[node] = Way(known.workers, known.steering)
        elif way.workers != known.workers:
            # The node came back as another while the attempt to reach the former one goes on.
            way.workers, way.steering = known.workers, known.steering
        return way

    def _missing(self, now: float) -> list[Place]:
        """Return the places that are to have a line and have none."""
        view = self._view
        if view is None or not self._direct or not self.known:
            return []
        if view.is_lone:
            return sorted(view.owners - self._lines.keys() - {self._home})
        self._wanted = {
            place: since
            for place, since in self._wanted.items()
            if place not in self._lines and place != self._home and now - since < IDLE_S
        }
        return [*self._wanted]

    def _has_room(self, now: float) -> bool:
        if len(self._lines) + sum(way.is_dialling for way in self._ways.values()) < MAX_DIRECT:
            return True
        for line in self._lines.values():
            if line.takes_calls and line.is_idle(now, IDLE_S):
                self.release(line)
                line.end("no call has used it for long, and another is wanted")
                return True
        return False

    def _reckon(self, now: float) -> None:
        """Find out when the next attempt may begin."""
        if not self._direct:
            return
        if self._view is None:
            way = self._ways[_UNKNOWN]
            self.dial_at = math.inf if way.is_dialling else max(now, way.not_before)
            return
        ways = [self._way(place.node) for place in self._missing(now)]
        self.dial_at = min((max(now, way.not_before) for way in ways if not way.is_dialling), default=math.inf)

    # What the nodes say.

    def main_greeted(self, home: Place, now: float) -> None:
        """The main line ends at this place."""
        self._home = home
        if self.has_node(home.node):
            self._way(home.node).renew()
        self._reckon(now)

    def adopt(self, view: View | None, now: float) -> list[Line]:
        """Use another view from now on, or none. Returns the lines whose ends are not there any more."""
        if not self._direct:
            return []
        before, self._view = self._view, view
        self.known = view is not None and sum(node.workers for node in view.nodes.values()) > 1
        if view is None:
            stays: set[str] = set()
        else:
            stays = {
                node for node, each in view.nodes.items()
                if before is None or node not in before.nodes or before.nodes[node].workers == each.workers
            }  # fmt: skip
        gone = [line for place, line in self._lines.items() if place.node not in stays]
        gone += [line for line, node in self.candidates.items() if node not in stays and node != _UNKNOWN]
        self._lines = {place: line for place, line in self._lines.items() if place.node in stays}
        self._ways = {
            node: way for node, way in self._ways.items() if node in stays or node == _UNKNOWN or way.is_dialling
        }
        for memory in (self._wanted, self._called, self._topics):
            for place in [place for place in memory if view is None or place not in view.owners]:
                del memory[place]
        if view is None:
            self.dial_at = math.inf  # until the main line is another
        else:
            self._reckon(now)
        return gone

    def scouted(self, line: Line, answer: Any, now: float) -> bool:
        """A candidate's :hello was answered before that of the main line, whose node may not know it, was said.

        Returns whether to say it there.
        """
        way = self._ways[self.candidates.pop(line)]
        way.met()
        greeting = Greeting.parse(answer)
        if greeting is None:
            way.failed(now)
            self._reckon(now)
        return greeting is not None and (greeting.workers > 1 or greeting.version != "")

    def greeted(self, line: Line, answer: Any, now: float) -> Place | None:
        """A candidate's :hello was answered. Returns the place that it is for now kept for, None if it is not."""
        node = self.candidates.pop(line)
        greeting = Greeting.parse(answer)
        view = self._view
        known = None if view is None else view.nodes.get(node)
        if (
            view is None
            or known is None
            or greeting is None
            or (greeting.node, greeting.workers) != (node, known.workers)
        ):
            if node in self._ways:
                self._ways[node].failed(now)
            self._reckon(now)
            return None
        way = self._way(node)
        way.met()
        place = greeting.place
        is_new = place in view.owners and place not in self._lines and place != self._home
        if is_new:
            self._lines[place] = line
        else:
            way.steering = False  # a steered dial meets who is missing, unless something between changes the port
        self._reckon(now)
        return place if is_new else None

    def barrier_topic(self, place: Place) -> bytes | None:
        """Return a topic that `place` owns, if there is one worth the search.

        What is asked about it over the main line is answered after all that was asked there before of that place.
        """
        topic = self._topics.get(place)
        if topic is not None and self.owner(topic) == place:
            return topic
        for number in range(BARRIER_TRIES):
            topic = values.pack(["skywalker.barrier", number])
            if self.owner(topic) == place:
                return topic
        return None

    # What is lost.

    def release(self, line: Line) -> None:
        """Forget a direct line that is wanted anew as soon as the main one is back."""
        self._lines = {place: each for place, each in self._lines.items() if each is not line}

    def lost(self, line: Line, now: float) -> None:
        """A direct line, or a candidate, is lost, or was not answered on the way to becoming one."""
        node = self.candidates.pop(line, None)
        if node is not None:
            self.failed(node, now)
        for place, each in self._lines.items():
            if each is line:
                del self._lines[place]
                self._way(place.node).lost(line, place.worker, now)
                if line.takes_calls:
                    self._wanted[place] = now
                break
        self._reckon(now)  # it may have been released before

    def main_changed(self, main: Line, now: float) -> None:
        """The main line is lost, and `main` is the one to come."""
        self._main = main
        self._home = None
        if self._view is None and self.dial_at == math.inf and self._direct:
            self.failed(_UNKNOWN, now)  # perhaps the next node is another
