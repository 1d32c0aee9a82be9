"""Where a call goes: to the junction here, or over the mesh to the sibling that owns its topic.

A worker has one. It counts what its connections hold, since some limits are for all of them together.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from skywalker.errors import Busy, Draining
from skywalker.junction import Junction
from skywalker.limits import Limits
from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from workers.calls import TIME_IS_UP, Caller, Carrier, CensusCall, ClientCall
from workers.log import Log
from workers.loop import Loop
from workers.mesh import Link
from workers.node import Node
from workers.turn import Turn

if TYPE_CHECKING:
    from workers.connection import Connection

MAX_OWNERS: Final = 4096
"""Topics whose owner is remembered: to hash one again takes longer than all else that is done for a call."""

CENSUS_S: Final = 1.0
"""Seconds for a sibling to count who waits on a topic."""


class Router:
    """The calls of one worker on their ways."""

    def __init__(self, node: Node, limits: Limits, loop: Loop, turn: Turn, log: Log) -> None:
        self.node = node
        self.limits = limits
        self.loop = loop
        self.log = log
        self.turn = turn
        self.junction = Junction()
        self._max_waiting_bytes = limits.waiting_bytes
        self.draining = False
        self.leaving = False  # siblings' calls meet nobody here any more
        self.connections: dict[Connection, None] = {}
        self.calls_held = 0  # calls of our clients that wait, wherever that is
        self.bytes_held = 0  # memory of those, and of the calls of siblings that wait here
        self.most_bytes_held = 0  # since memory was last given back
        self._slot = node.slot
        self._owners: dict[bytes, int] = {}  # of topics that were looked up on the ring lately
        self._ring = Ring(node.slices) if node.workers > 1 else None
        self._links: dict[int, Link] = {}
        self._orphans: dict[int, dict[ClientCall, None]] = {}  # by owner, calls that wait for it to come back

    # Calls of our clients.

    def issue(self, call: ClientCall) -> None:
        """Have a call meet somebody, or wait where its topic is owned. Raises Busy if a new one has no room."""
        owner = self._owner(call.topic)
        if owner != self._slot:
            self._forward(call, owner)
        elif not call.meet(self.junction):
            self._wait(call)

    def listen_again(self, call: ClientCall) -> None:
        """Have a call that was given a value which it couldn't get listen again, if its time is not over."""
        if not call.caller.gone:
            call.hold()
            self.issue(call)

    def withdraw(self, call: ClientCall) -> bool:
        """Take a call back from where it waits. Returns False if it may just be meeting somebody."""
        if call.carrier is not None:
            call.carrier.withdraw(call)
            return call.value is None
        if self.junction.withdraw(call) or call.caller.unpark(call):
            return True
        orphans = self._orphans.get(self._owner(call.topic), {})
        if call not in orphans:
            return False
        del orphans[call]
        return True

    def census(self, caller: Caller, id: bytes, topic: bytes) -> None:
        """Answer a :topic. Raises Busy if the owner does not keep up."""
        owner = self._owner(topic)
        if owner == self._slot:
            caller.reply(wire.TOPIC, id, self.info(topic))
            return
        carrier = self._carrier(owner)
        if carrier is None or carrier.congested():
            raise Busy("the worker that owns the topic does not answer")
        call = CensusCall(caller, id, self.turn.now + CENSUS_S)
        self.turn.deadlines.add(call, call.due)
        carrier.ask_census(call, topic)

    def info(self, topic: bytes) -> bytes:
        """Return the result of a :topic about one of our own topics."""
        count = self.junction.census(topic)
        age = 0.0 if count.oldest is None else self.turn.now - count.oldest
        return wire.topic_info(count.receivers, count.takers, count.senders, 0, max(0, round(age * 1000)))

    def _owner(self, topic: bytes) -> int:
        if self._ring is None:
            return 0
        owner = self._owners.get(topic)
        if owner is None:
            if len(self._owners) == MAX_OWNERS:
                self._owners.clear()
            owner = self._owners[topic] = self._ring.owner(token_of(topic))
        return owner

    def _carrier(self, owner: int) -> Carrier | None:
        link = self._links.get(owner)
        return None if link is None else link.forwarded

    def _wait(self, call: ClientCall) -> None:
        if call.deadline <= self.turn.now and not call.held:
            call.over()
        else:
            self.hold(call)
            self.junction.wait(call)

    def _forward(self, call: ClientCall, owner: int) -> None:
        carrier = self._carrier(owner)
        if carrier is not None and not call.held and carrier.congested():
            raise Busy("too much waits for the worker that owns the topic", {"limit": "mesh_bytes"})
        self.hold(call)
        if carrier is None:
            self._orphans.setdefault(owner, {})[call] = None
        else:
            carrier.forward(call)
        if call.deadline <= self.turn.now:
            call.end(TIME_IS_UP)

    # What is held.

    def hold(self, call: ClientCall) -> None:
        """Keep a call that has to wait. Raises Busy if a new one has no room."""
        if not call.held:
            call.caller.admit()
            self.admit(call.cost())
            call.hold()

    def admit(self, cost: int) -> None:
        """Raise Busy if there is no memory for one more call that waits."""
        limit = self._max_waiting_bytes
        held = self.bytes_held + cost
        if held > limit:
            raise Busy(f"the calls that wait take {limit} bytes", {"limit": "waiting_bytes", "value": limit})
        if held > self.most_bytes_held:
            self.most_bytes_held = held

    def kept(self, call: ClientCall) -> None:
        """A client's call is held from now on: count it, and run its clock."""
        self.calls_held += 1
        self.bytes_held += call.cost()
        self.turn.deadlines.add(call, call.deadline)

    def released(self, call: ClientCall) -> None:
        """It is not held any more."""
        self.calls_held -= 1
        self.bytes_held -= call.cost()
        self.turn.deadlines.discard(call, call.deadline)

    # The mesh.

    def connect(self, slot: int, sock: socket.socket) -> None:
        """Use a new link to the sibling in `slot`, in place of one to its predecessor."""
        old = self._links.get(slot)
        if old is not None:
            old.read_to_the_end()
        link = self._links[slot] = Link(slot, sock, self)
        link.open()
        for call in self._orphans.pop(slot, ()):
            self.issue(call)

    def disconnected(self, link: Link) -> None:
        """The sibling is dead. Calls issued to it from now on wait for its successor."""
        if self._links.get(link.slot) is link:
            del self._links[link.slot]

    def is_decided(self) -> bool:
        """Return whether every value that was given to a sibling's client has its outcome."""
        return all(link.held.is_decided() for link in self._links.values())

    # Connections.

    def opened(self, connection: Connection) -> None:
        """Count a connection, and read from it."""
        self.connections[connection] = None
        connection.open()

    def closed(self, connection: Connection) -> None:
        """A connection is closed."""
        self.connections.pop(connection, None)

    def stop(self) -> None:
        """Answer what still waits, write what can be written, and close every connection."""
        self.turn.end()  # who has just met somebody must not hear that nobody came
        for connection in list(self.connections):
            connection.fail_all(Draining("this node is going away"))
        self.turn.end()
        for connection in list(self.connections):
            connection.goodbye()
