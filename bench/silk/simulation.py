"""A network of Silk nodes in simulated time: the memberships are the real ones, all between them is made up.

Messages are late, lost, doubled and overtake each other; nodes die, hang, leave and are started again; links are cut,
also one way. Everything depends on the seed alone, so that whatever happens once happens again.

As with ZeroMQ, what is sent to an endpoint where nobody is, or over a link that is cut, is kept until there is a way
again, unless the sender has parted from the endpoint by then; and it takes a while to listen to somebody.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from bench.errors import BenchError
from skywalker.silk.events import Event
from skywalker.silk.info import NodeInfo
from skywalker.silk.membership import Membership
from skywalker.silk.outbox import Action, Answer, Broadcast, Ignore, Listen, Part, Reached, Refused, Send
from skywalker.wire.silk import KEEPALIVE, Message

TICKS: Final = 10_000
"""Steps of time in a second."""

START_S: Final = 1000.0

DELAY_S: Final = 0.01
"""Seconds that a message is on its way, at most."""

PORT: Final = 3444
PUB_PORT: Final = 43444


class Node:
    """One node, with all that it was told by its membership and when."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.events: list[tuple[float, Event]] = []
        self.reached: list[str] = []
        self.is_dead = False
        self.wakes_at: int | None = None  # the tick of its next timer

    @property
    def id(self) -> str:
        """Its id."""
        return self.membership.me.id

    @property
    def router(self) -> str:
        """The endpoint that takes direct messages."""
        return self.membership.me.router

    @property
    def pub(self) -> str:
        """The endpoint of what it broadcasts."""
        return self.membership.me.pub

    @property
    def is_live(self) -> bool:
        """Whether it runs and has not left."""
        return not (self.is_dead or self.membership.has_left)

    def told(self, *kinds: type[Event]) -> list[Event]:
        """Return the events of these kinds so far."""
        return [event for _, event in self.events if isinstance(event, kinds)]

    def __repr__(self) -> str:
        return f"<{self.membership.me}>"


class Network:
    """Nodes and the links between them. Parts of all messages are lost.

    `frames` has all messages encoded, decoded and weighed, which takes half of the time.
    """

    def __init__(
        self,
        seed: int,
        *,
        loss: float = 0.0,
        delay_s: float = DELAY_S,
        period_s: float = 1.0,
        frames: bool = True,
    ) -> None:
        self.loss = loss
        self.delay_s = delay_s
        self.period_s = period_s  # of the keepalive of nodes that are started from now on
        self.nodes: list[Node] = []  # all that have ever been
        self.messages: Counter[str] = Counter()  # by type, one for each who is sent it
        self.bytes: Counter[str] = Counter()  # of them, in the frames of ZeroMQ
        self._frames = frames
        self._random = random.Random(seed)
        self._hosts = itertools.count(1)
        self.now = START_S
        self._tick = round(START_S * TICKS)
        self._ticks: list[int] = []  # a heap of those at which something happens
        self._agenda: dict[int, list[tuple[Node, Message | None, Node]]] = {}  # no message is a timer
        self._bound: dict[str, Node] = {}
        self._listeners: dict[str, dict[Node, int]] = {}  # by endpoint, and since when
        self._cuts: set[tuple[Node, Node]] = set()
        self._kept: dict[tuple[Node, str], list[tuple[Node, Message]]] = {}  # by who may give it up, with its sender

    @property
    def live(self) -> list[Node]:
        """The nodes that run and have not left."""
        return [node for node in self.nodes if node.is_live]

    # What happens to nodes.

    def add(self, count: int = 1) -> list[Node]:
        """Start nodes, each alone."""
        hosts = [next(self._hosts) for _ in range(count)]
        return [self._start(f"tcp://10.0.{host >> 8}.{host & 255}:{PORT}") for host in hosts]

    def storm(self, nodes: int, seeds: int, seed: int) -> list[Node]:
        """Start nodes and have all of them join at once, each at one of the first `seeds` that are before it."""
        started = self.add(nodes)
        chance = random.Random(seed)
        for number, node in enumerate(started[1:], start=1):
            self.join(node, started[chance.randrange(min(number, seeds))])
        return started

    def acquaint(self, nodes: Iterable[Node]) -> None:
        """Have these know each other by now, though they never met."""
        nodes = [*nodes]
        for node in nodes:
            for other in nodes:
                if other is not node:
                    node.membership._admit(other.membership.me, self.now)  # what any meeting comes to
            self._act(node)

    def join(self, node: Node, other: Node) -> None:
        """Have a node join where another is."""
        node.membership.join(other.router, self.now)
        self._act(node)

    def leave(self, node: Node) -> None:
        """Have a node leave."""
        node.membership.leave(self.now)
        self._act(node)

    def kill(self, node: Node) -> None:
        """End a node on the spot."""
        node.is_dead = True
        self._bound.pop(node.router, None)

    def cut(self, some: Iterable[Node], others: Iterable[Node], *, both_ways: bool = True) -> None:
        """Let nothing through from some nodes to others."""
        some, others = [*some], [*others]
        self._cuts |= {(one, other) for one in some for other in others if one is not other}
        if both_ways:
            self.cut(others, some, both_ways=False)

    def heal(self) -> None:
        """Let everything through again."""
        self._cuts.clear()
        self._send_what_was_kept([*self._kept])

    def forge(self, message: Message, to: Node) -> None:
        """Have a message come to a node as if somebody had sent it. Answers go nowhere."""
        self._at(self.delay_s, to, message, to)

    # Time.

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self._tick + round(seconds * TICKS)
        had_gc = gc.isenabled()
        gc.disable()  # nothing here refers to itself, and there is much to look through
        try:
            while self._ticks and self._ticks[0] <= end:
                self._tick = heapq.heappop(self._ticks)
                self.now = self._tick / TICKS
                for node, message, sender in self._agenda.pop(self._tick):
                    if message is not None:
                        self._deliver(node, message, sender)
                    elif node.wakes_at == self._tick:
                        self._wake(node)
        finally:
            if had_gc:
                gc.enable()
        self._tick = end
        self.now = end / TICKS

    def until(self, check: Callable[[], bool], within: float, every: float = 0.05) -> float:
        """Let time pass until something is so; return the seconds. Raises BenchError if it is not within so many."""
        began = self.now
        while not check():
            if self.now - began > within:
                raise BenchError(f"not within {within:g} simulated seconds")
            self.run(every)
        return self.now - began

    # What is so.

    def agree(self) -> bool:
        """Whether all live nodes know each other, and nobody else, and call that the same."""
        live = self.live
        versions = {node.membership.version for node in live}
        # Who sees the same version sees the same members: one need be asked whom.
        return len(versions) == 1 and {live[0].id, *live[0].membership.members} == {node.id for node in live}

    def knowing(self, node: Node) -> list[Node]:
        """Return the live nodes that have this one as a member."""
        return [each for each in self.live if each.membership.member(node.id) is not None]

    def told(self, *kinds: type[Event]) -> list[Event]:
        """Return the events of these kinds so far, of all nodes."""
        return [event for node in self.nodes for event in node.told(*kinds)]

    def forget(self) -> None:
        """Count messages and events from here on."""
        self.messages.clear()
        self.bytes.clear()
        for node in self.nodes:
            node.events.clear()

    # How it is done.

    def _start(self, router: str) -> Node:
        host, _, _ = router.rpartition(":")
        me = NodeInfo(self._uuid(), f"node-{len(self.nodes)}", router, f"{host}:{PUB_PORT}", self.period_s)
        node = Node(Membership(me, luck=self._random.random, new_id=self._uuid, now=self.now))
        self.nodes.append(node)
        self._bound[router] = node
        self._act(node)
        self._send_what_was_kept([key for key in self._kept if key[1] == router])
        return node

    def _uuid(self) -> str:
        bits = f"{self._random.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

    def _at(self, delay_s: float, node: Node, message: Message | None, sender: Node) -> int:
        tick = self._tick + 1 + int(delay_s * TICKS)  # never in the tick in hand
        events = self._agenda.get(tick)
        if events is None:
            self._agenda[tick] = [(node, message, sender)]
            heapq.heappush(self._ticks, tick)
        else:
            events.append((node, message, sender))
        return tick

    def _wake(self, node: Node) -> None:
        node.wakes_at = None
        if not node.is_dead:
            node.membership.tick(self.now)
            self._act(node)

    def _deliver(self, node: Node, message: Message, sender: Node) -> None:
        if not node.is_dead:
            node.membership.received(message, self.now)
            actions = node.membership.actions()
            # A sign of life about which nothing is to be done brings nothing nearer either.
            if actions or message.type != KEEPALIVE:
                self._do(node, actions, sender)

    def _act(self, node: Node) -> None:
        self._do(node, node.membership.actions(), node)

    def _do(self, node: Node, actions: Iterable[Action], sender: Node) -> None:
        """Do what a node wants; `sender` is of the message in hand."""
        for action in actions:
            self._do_one(node, action, sender)
        wait = node.membership.wait(self.now)
        if wait is not None and (node.wakes_at is None or self._tick + 1 + int(wait * TICKS) < node.wakes_at):
            node.wakes_at = self._at(wait, node, None, node)

    def _do_one(self, node: Node, action: Action, sender: Node) -> None:
        match action:
            case Send(endpoint, message):
                self._pass_on(node, self._bound.get(endpoint), self._framed(message), (node, endpoint))
            case Answer(message):
                self._framed(message)  # it is for strangers: a node reads nothing on the ways that it sends on
            case Broadcast(message):
                listeners = self._listeners.get(node.pub, {})
                ready = [each for each, since in listeners.items() if since <= self._tick]
                framed = self._framed(message, len(ready), len(message.type))
                for listener in ready:
                    if self._cuts:
                        self._pass_on(node, listener, framed, (listener, node.pub))
                    else:
                        self._carry(node, listener, framed)
            case Listen(endpoint):
                since = self._tick + int(self._random.random() * self.delay_s * TICKS)
                self._listeners.setdefault(endpoint, {})[node] = since
            case Ignore(endpoint):
                self._listeners[endpoint].pop(node, None)
                self._kept.pop((node, endpoint), None)
            case Part(endpoint):
                self._kept.pop((node, endpoint), None)
            case Reached(endpoint):
                node.reached.append(endpoint)
            case Refused():
                pass  # it goes on to ask
            case event:
                node.events.append((self.now, event))

    def _framed(self, message: Message, count: int = 1, topic: int = 0) -> Message:
        """Count what goes to so many, of a topic of so many bytes, and return it as it comes out of its frame."""
        self.messages[message.type] += count
        if not self._frames:
            return message
        frame = message.encode()
        self.bytes[message.type] += count * (topic + len(frame))
        return Message.decode(frame)

    def _pass_on(self, node: Node, other: Node | None, message: Message, key: tuple[Node, str]) -> None:
        if other is not None and (node, other) not in self._cuts:
            self._carry(node, other, message)
        else:
            self._kept.setdefault(key, []).append((node, message))

    def _carry(self, node: Node, other: Node, message: Message) -> None:
        chance = self._random.random
        if self.loss and chance() < self.loss:
            return
        self._at(chance() * self.delay_s, other, message, node)

    def _send_what_was_kept(self, keys: Iterable[tuple[Node, str]]) -> None:
        for keeper, endpoint in keys:
            for sender, message in self._kept.pop((keeper, endpoint)):
                to = self._bound.get(endpoint) if keeper is sender else keeper
                if not sender.is_dead:
                    self._pass_on(sender, to, message, (keeper, endpoint))


def acquainted(nodes: int, seed: int, *, after_s: float = 1.0, **settings: Any) -> tuple[Network, list[Node]]:
    """Return a network of nodes that know each other, and have for a while, with nothing counted so far.

    `settings` are those of the network. Each node is somewhere in its period.
    """
    network = Network(seed, **settings)
    members = network.add(nodes)
    network.acquaint(members)
    network.run(after_s)
    network.forget()
    return network, members
