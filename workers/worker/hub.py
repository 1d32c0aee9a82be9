"""What a worker consists of besides its process and its doors: made here, and told here of what concerns it all."""

from __future__ import annotations

from collections.abc import Callable

from skywalker.limits import Limits
from skywalker.members import Place, Snapshot
from workers.access.admission import Admission
from workers.calls.interests import Interests
from workers.calls.own_node import OwnNode
from workers.calls.owner import Owner
from workers.calls.owners import Owners
from workers.calls.rebalance import Rebalance
from workers.calls.recording import Recording
from workers.calls.worker_states import Event, Standing
from workers.core.numbers import StandsAs
from workers.doors.clients import Clients
from workers.doors.commons import Commons
from workers.engine.credentials import Credentials
from workers.engine.loop import Loop, Turn
from workers.engine.machine import Machine
from workers.mesh.link import Link
from workers.mesh.links import Links
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.siblings import Siblings
from workers.nodes.context import PeerContext
from workers.nodes.peers import Peers
from workers.stats.hands import ROOM, cell_of
from workers.stats.log import Log


class Hub:
    """All of one worker: what Python has of it, around the core that has its connections, calls and links."""

    def __init__(
        self,
        node: OwnNode,
        limits: Limits,
        loop: Loop,
        turn: Turn,
        log: Log,
        machine: Machine,
        recording: Recording | None = None,
        admission: Admission | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """With `credentials`, it is spoken to other nodes in TLS."""
        self.node = node
        self.turn = turn
        self.core = core = turn.core
        core.live(cell_of(turn.hand.life), turn.hand.memory, ROOM)
        self.recording = recording
        self.admission = Admission(None, limits, turn, log) if admission is None else admission
        self.standing = Standing()
        here = Owner(core, Place(node.id, node.slot), is_here=True)
        self.owners = Owners(turn, here)
        self.interests = Interests(core, self.owners.of)
        self.rebalance = Rebalance(turn, self.interests, self._handles)
        self.barrier = ReadinessBarrier(turn, log, self.standing)
        links = Links(turn, self.owners, self.standing, self.interests, self.barrier, log, limits.mesh_bytes)
        self.siblings = Siblings(node, turn, here, links, self.barrier, self.rebalance, self._visit, self._come)
        context = PeerContext(
            node=node,
            machine=machine,
            loop=loop,
            turn=turn,
            log=log,
            standing=self.standing,
            owners=self.owners,
            links=links,
            barrier=self.barrier,
            rebalance=self.rebalance,
            have_visited=self.siblings.have_visited,
            trust=self.admission.trust,
            idle_s=limits.link_idle_s,
            max_links=limits.max_links,
            credentials=credentials,
        )
        self.peers = Peers(context)
        self.owners.begin(self.peers.make)
        commons = Commons(
            node=node,
            limits=limits,
            machine=machine,
            loop=loop,
            turn=turn,
            core=core,
            log=log,
            standing=self.standing,
            owners=self.owners,
            interests=self.interests,
            admission=self.admission,
            peers=self.peers,
            credentials=credentials,
        )
        self.clients = Clients(commons, recording)
        self._tell_core()
        self.follow(node.snapshot)

    # Its first moments.

    def open(self, opened: Callable[[], None]) -> None:
        """Hear no client before all others have said what they subscribe to; then call `opened`."""
        self.barrier.begin(lambda: self._open(opened))

    def _open(self, opened: Callable[[], None]) -> None:
        self._tell_core()
        self.clients.hear_all()
        opened()

    def happened(self, event: Event) -> None:
        """Something has happened to this worker, which the core is to know."""
        self.standing.happened(event)
        self._tell_core()

    def _tell_core(self) -> None:
        standing = self.standing
        stands_as = (
            (standing.opening, StandsAs.OPENING),
            (standing.draining, StandsAs.REFUSING),
            (standing.replaced, StandsAs.REPLACED),
            (standing.leaving, StandsAs.LEAVING),
        )
        self.core.stand_as(sum(flag for is_so, flag in stands_as if is_so))

    def _handles(self) -> list[int]:
        return self.clients.handles()

    def _visit(self, place: Place, life: str, done: Callable[[], None]) -> None:
        self.peers.visit(place, life, done)

    def _come(self, slot: int, sibling: Link) -> None:
        self.peers.relays.has_come(slot, sibling)

    # The ring.

    def follow(self, snapshot: Snapshot) -> None:
        """Have calls go by another ring from now on; those that wait, and whose topic moved, in the next turns."""
        self.node.follow(snapshot)
        if self.recording is not None:
            self.recording.follow(snapshot.pack())
        owners = self.peers.follow(snapshot)
        owners.update({owner.place: owner for owner in self.siblings.owners})
        self.owners.follow(snapshot.ring, owners)
        self.rebalance.begin()
        self.core.hold_back()
        self._tell_of_the_ring()

    # Draining: each of these is for another reason, and has clients go.

    def be_replaced(self) -> None:
        """Take no new calls, and have those that wait meet at a successor, once there is a link to it."""
        self.happened(Event.REPLACED)
        self.siblings.hand_over()
        self.peers.retire()
        for interest in self.interests.all():
            interest.ring_changed()  # all at once: the successor hands out nothing before it has heard of them
        self.rebalance.begin()
        self.core.drain()

    def drain(self) -> None:
        """Take no new calls, and let those go whose last one is answered, while the node goes on."""
        self.happened(Event.TERMINATED)
        self.core.drain()

    def drain_node(self) -> None:
        """Do so because this node is going away; say so to those who follow the ring."""
        self.happened(Event.DRAINED)
        self.core.drain()
        self._tell_of_the_ring()

    def _tell_of_the_ring(self) -> None:
        for client in self.clients:
            client.ring_changed()

    # Its end.

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written to siblings."""
        return sum(link.unsent for link in self.siblings.all())

    def leave(self) -> None:
        """Have others' calls meet nobody here any more, and learn what became of ours that wait elsewhere."""
        self.happened(Event.STOPPED)
        self.core.leave()
        for client in self.clients:
            client.leave()

    def has_left(self) -> bool:
        """Return whether all that met somebody is known to have, here and elsewhere."""
        owed = any(self.core.is_owed(client.handle) for client in self.clients)
        # What is unsent may be that something is in effect: whoever does not hear that publishes it again.
        owed = owed or self.core.orphans > 0 or self.unsent > 0
        return not owed and self.peers.have_left() and self.is_decided()

    def is_decided(self) -> bool:
        """Return whether every value that was given to a client of another worker has its outcome."""
        links = [*self.siblings.all(), *(asking.link for asking in self.peers.asking)]
        return all(link.is_decided() for link in links)

    def stop(self) -> None:
        """Answer what still waits, write what can be written, and have every connection close once that is read."""
        self.turn.end()  # who has just met somebody must not hear that nobody came
        for client in self.clients:
            client.fail_all()
        self.turn.end()
        for client in self.clients:
            client.goodbye()
        self.turn.end()
        self.peers.stop()
        self.turn.end()  # what goes by siblings
