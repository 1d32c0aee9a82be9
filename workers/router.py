"""Where a call goes: to the junction here, or to the worker that owns its topic, of this node or of another.

A worker has one. It counts what its connections hold, since some limits are for all of them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skywalker.errors import Busy, Draining
from skywalker.junction import Junction
from skywalker.limits import Limits
from skywalker.members import Snapshot
from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from workers import figures
from workers.admission import Admission
from workers.calls import TIME_IS_UP, Caller, Carrier, ClientCall
from workers.census import CensusCall
from workers.closes import Close
from workers.credentials import Credentials
from workers.feeds import Feeds
from workers.log import Log
from workers.loop import Loop
from workers.move import Move
from workers.node import Node
from workers.owner import Owner
from workers.peers import Peers
from workers.publication import Publication
from workers.siblings import Siblings
from workers.turn import Turn
from workers.wording import Wording

if TYPE_CHECKING:
    from workers.connection import Connection
    from workers.journal import Journal
    from workers.opening import Opening
    from workers.outlet import Outlet

MAX_OWNERS: Final = 4096
"""Topics whose owner is remembered: to hash one again takes longer than all else that is done for a call."""

WAITING: Final = figures.WAITING.at

CENSUS_S: Final = 1.0
"""Seconds for another worker to count who waits on a topic."""


class Router:
    """The calls of one worker on their ways."""

    def __init__(
        self,
        node: Node,
        limits: Limits,
        loop: Loop,
        turn: Turn,
        log: Log,
        journal: Journal | None = None,
        admission: Admission | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """With `credentials`, it is spoken to other nodes in TLS."""
        self.node = node
        self.journal = journal
        self.limits = limits
        self.loop = loop
        self.log = log
        self.turn = turn
        self.tally = turn.tally
        self.admission = Admission(None, limits, turn, log) if admission is None else admission
        self.credentials = credentials
        self.junction = Junction()
        self._max_waiting_bytes = limits.waiting_bytes
        self.draining = False  # new calls of our clients are refused
        self.node_drains = False  # and all other workers of this node do the same
        self.replaced = False  # a successor owns what this worker owned
        self.leaving = False  # others' calls meet nobody here any more
        self.connections: dict[Connection, None] = {}
        self.choked: dict[Outlet, None] = {}  # those whose client does not read as fast as it is written to
        self.calls_held = 0  # calls of our clients that wait, wherever that is
        # Memory of those, of other workers' calls here, of subscriptions, and of what is published and not acked.
        self.bytes_held = 0
        self.most_bytes_held = 0  # since memory was last given back
        self._owned: dict[bytes, Owner] = {}  # of topics that were looked up on the ring lately
        self.opening: Opening | None = None  # of this worker, as long as it goes on
        self.early: list[Connection] = []  # that have come meanwhile, and wait to be heard
        self.siblings = Siblings(self)
        self.peers = Peers(self)
        self.feeds = Feeds(self)
        self.wording = Wording()
        self.subscribers_cut_off = 0
        self.orphans: dict[Publication, None] = {}  # what connections have published that are gone since
        self.move = Move(self)
        self.follow(node.snapshot)

    # Calls of our clients.

    def issue(self, call: ClientCall) -> None:
        """Have a call meet somebody, or wait where its topic is owned. Raises Busy if a new one has no room."""
        carrier = self.owner(call.topic).carrier
        if carrier is not None:
            self._forward(call, carrier)
        elif not call.meet(self.junction):
            self._wait(call)

    def publish(self, publication: Publication) -> bool:
        """Have a value handed out where its topic is owned; return whether that is done, else its met() is called."""
        carrier = self.owner(publication.topic).carrier
        if carrier is None:
            return publication.hand_out(self.junction)
        carrier.forward(publication)
        return False

    def listen_again(self, call: ClientCall) -> None:
        """Have a call that was given a value which it couldn't get listen again, if its time is not over."""
        if not call.caller.gone:
            call.hold()
            self.issue(call)

    def resume(self, call: ClientCall) -> None:
        """Have a send that is held, and whose listeners here are all lost, go on waiting."""
        carrier = self.owner(call.topic).carrier
        if carrier is not None:
            self._forward(call, carrier)
        else:
            self.junction.resume(call)

    def withdraw(self, call: ClientCall) -> bool:
        """Take a call back from where it waits. Returns False if it may just be meeting somebody."""
        if call.carrier is not None:
            call.carrier.withdraw(call)
            return call.value is None
        return self.junction.withdraw(call) or call.caller.unpark(call)

    def census(self, caller: Caller, id: bytes, topic: bytes, names_groups: bool) -> None:
        """Answer a :topic, with the names of groups or without. Raises Busy if the owner does not keep up."""
        carrier = self.owner(topic).carrier
        if carrier is None:
            info = self.info(topic)
            caller.reply(wire.TOPIC, id, info if names_groups else wire.without_groups(info))
            return
        if carrier.congested():
            raise Busy("the worker that owns the topic does not answer", {"limit": "mesh_bytes"})
        call = CensusCall(caller, id, self.turn.now + CENSUS_S, names_groups)
        self.turn.deadlines.add(call, call.due)
        carrier.ask_census(call, topic)

    def info(self, topic: bytes) -> bytes:
        """Return the result of a :topic about one of our own topics."""
        count = self.junction.census(topic)
        age = 0.0 if count.oldest is None else self.turn.now - count.oldest
        return wire.topic_info(
            count.receivers, count.takers, count.senders, count.subscribers, max(0, round(age * 1000))
        )

    def owner(self, topic: bytes) -> Owner:
        """Return the worker that owns a topic."""
        if self._only is not None:
            return self._only
        owner = self._owned.get(topic)
        if owner is None:
            if len(self._owned) == MAX_OWNERS:
                self._owned.clear()
            owner = self._owned[topic] = self._ring.owner(token_of(topic))
        return owner

    def reroute(self, call: ClientCall) -> None:
        """Have a call that waits go elsewhere if another worker owns its topic now."""
        owner = self.owner(call.topic)
        if call.carrier is not None:
            if call.carrier is not owner.carrier:
                call.carrier.ask_back(call)
        elif owner.carrier is not None and self.junction.withdraw(call):
            self._forward(call, owner.carrier)

    def _wait(self, call: ClientCall) -> None:
        if call.deadline <= self.turn.now and not call.held:
            call.over()
        else:
            self.hold(call)
            self.junction.wait(call)

    def _forward(self, call: ClientCall, carrier: Carrier) -> None:
        if not call.held and carrier.congested():
            raise Busy("too much waits for the worker that owns the topic", {"limit": "mesh_bytes"})
        self.hold(call)
        carrier.forward(call)
        if call.deadline <= self.turn.now:
            call.end(TIME_IS_UP)

    # The ring.

    def follow(self, snapshot: Snapshot) -> None:
        """Have calls go by another ring from now on; those that wait, and whose topic moved, in the next turns."""
        self.node.follow(snapshot)
        if self.journal is not None:
            self.journal.follow(snapshot.pack())
        owners = {owner.place: owner for owner in self.siblings.owners} | self.peers.follow(snapshot)
        self._ring: Ring[Owner] = snapshot.ring.mapped(owners.__getitem__)
        self._only = next(iter(owners.values())) if len(owners) == 1 else None
        self._owned.clear()
        self.move.begin()
        self._tell_of_the_ring()

    def be_replaced(self) -> None:
        """Take no new calls, and have those that wait meet at a successor, once there is a link to it."""
        self.replaced = True
        self.siblings.hand_over()
        for feed in self.feeds.all():
            feed.ring_changed()  # all at once: the successor hands out nothing before it has heard of them
        self.move.begin()
        self.drain()

    def drain(self) -> None:
        """Take no new calls, and let those go whose last one is answered."""
        self.draining = True
        for connection in [*self.connections]:
            connection.worker_drains()

    def drain_node(self) -> None:
        """Do so because this node is going away; say so to those who follow the ring."""
        self.node_drains = True
        self.drain()
        self._tell_of_the_ring()

    def _tell_of_the_ring(self) -> None:
        for connection in [*self.connections]:
            connection.ring_changed()

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
        self.tally.cells[WAITING + _kind(call)] += 1
        self.bytes_held += call.cost()
        self.turn.deadlines.add(call, call.deadline)

    def released(self, call: ClientCall) -> None:
        """It is not held any more."""
        self.calls_held -= 1
        self.tally.cells[WAITING + _kind(call)] -= 1
        self.bytes_held -= call.cost()
        self.turn.deadlines.discard(call, call.deadline)

    def adopt(self, publication: Publication) -> None:
        """Keep what a connection that is gone has published until it is in effect, wherever that comes to be."""
        self.orphans[publication] = None
        self.bytes_held += publication.cost()

    def settled(self, publication: Publication) -> None:
        """It is in effect."""
        del self.orphans[publication]
        self.bytes_held -= publication.cost()

    # Other workers.

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written to siblings."""
        return sum(link.unsent for link in self.siblings.all())

    def leave(self) -> None:
        """Have others' calls meet nobody here any more, and learn what became of ours that wait elsewhere."""
        self.leaving = True
        for connection in [*self.connections]:
            connection.leave()

    def has_left(self) -> bool:
        """Return whether all that met somebody is known to have, here and elsewhere."""
        owed = any(connection.is_owed() for connection in self.connections)
        return not owed and not self.orphans and not self.peers.guests and self.is_decided()

    def is_decided(self) -> bool:
        """Return whether every value that was given to a client of another worker has its outcome."""
        links = [*self.siblings.all(), *(guest.link for guest in self.peers.guests.values())]
        return all(link.held.is_decided() for link in links)

    # Connections.

    def open(self) -> None:
        """Hear all clients from now on: the opening is over."""
        self.opening = None
        early, self.early = self.early, []
        for connection in early:
            connection.rested()

    def opened(self, connection: Connection) -> None:
        """Count a connection, and read from it."""
        self.connections[connection] = None
        self.tally.memory[figures.OPENED.at + connection.door] += 1
        self.tally.memory[figures.CONNECTIONS.at + connection.door] += 1
        connection.open()

    def closed(self, connection: Connection, reason: Close, text: str) -> None:
        """A connection is closed, and why."""
        self.connections.pop(connection, None)
        self.admission.gone(connection)
        self.tally.closed(connection.peer, reason, text)
        self.tally.memory[figures.CONNECTIONS.at + connection.door] -= 1

    def stop(self) -> None:
        """Answer what still waits, write what can be written, and have every connection close once that is read."""
        self.turn.end()  # who has just met somebody must not hear that nobody came
        for connection in list(self.connections):
            connection.fail_all(Draining("this worker is going away"))
        self.turn.end()
        for connection in list(self.connections):
            connection.goodbye()
        self.turn.end()
        self.peers.stop()


def _kind(call: ClientCall) -> int:
    """Return which of figures.KINDS a call is."""
    if call.value is not None:
        return 0
    return 1 if call.group is None else 2
