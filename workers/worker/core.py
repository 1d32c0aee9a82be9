"""What a worker consists of besides its process and its doors: made here, and told here of what concerns it all."""

from __future__ import annotations

from collections.abc import Callable

from skywalker.errors import Draining
from skywalker.junction import Junction
from skywalker.limits import Limits
from skywalker.members import Place, Snapshot
from workers.access.admission import Admission
from workers.calls.interests import Interests
from workers.calls.journal import Journal
from workers.calls.ledger import Ledger
from workers.calls.orphans import Orphans
from workers.calls.own_node import OwnNode
from workers.calls.rebalance import Rebalance
from workers.calls.router import Router
from workers.calls.worker_states import Event, Standing
from workers.doors.commons import Commons
from workers.doors.connections import Connections
from workers.doors.pubsub_wording import Wording
from workers.engine.credentials import Credentials
from workers.engine.loop import Loop, Turn
from workers.engine.machine import Machine
from workers.mesh.link_maker import LinkMaker
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.siblings import Siblings
from workers.nodes.context import PeerContext
from workers.nodes.peers import Peers
from workers.stats.log import Log


class Core:
    """All of one worker. `commons` is what its connections are made with."""

    def __init__(
        self,
        node: OwnNode,
        limits: Limits,
        loop: Loop,
        turn: Turn,
        log: Log,
        machine: Machine,
        journal: Journal | None = None,
        admission: Admission | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """With `credentials`, it is spoken to other nodes in TLS."""
        self.node = node
        self.journal = journal
        self.turn = turn
        self.admission = Admission(None, limits, turn, log) if admission is None else admission
        self.junction = Junction()
        self.ledger = Ledger(limits, turn.counters)
        self.standing = Standing()
        self.connections = Connections(turn.counters)
        self.router = Router(turn, self.junction)
        self.interests = Interests(self.junction, self.router.owner)
        self.orphans = Orphans(self.ledger)
        self.rebalance = Rebalance(turn, self.interests, self.connections, self.orphans, self.router.reroute)
        self.barrier = ReadinessBarrier(turn, log, self.standing)
        linking = LinkMaker(
            loop, turn, self.junction, self.ledger, self.standing, self.interests, self.barrier, log, limits.mesh_bytes
        )
        self.siblings = Siblings(node, turn, linking, self.barrier, self.rebalance, self._visit)
        context = PeerContext(
            node=node,
            machine=machine,
            loop=loop,
            turn=turn,
            log=log,
            standing=self.standing,
            linking=linking,
            barrier=self.barrier,
            rebalance=self.rebalance,
            have_visited=self.siblings.have_visited,
            trust=self.admission.trust,
            credentials=credentials,
        )
        self.peers = Peers(context)
        self.commons = Commons(
            node=node,
            limits=limits,
            loop=loop,
            turn=turn,
            log=log,
            journal=journal,
            junction=self.junction,
            ledger=self.ledger,
            standing=self.standing,
            router=self.router,
            interests=self.interests,
            orphans=self.orphans,
            connections=self.connections,
            admission=self.admission,
            wording=Wording(),
            links=self.peers,
            credentials=credentials,
            nonce=machine.nonce,
        )
        self.follow(node.snapshot)

    # Its first moments.

    def open(self, opened: Callable[[], None]) -> None:
        """Hear no client before all others have said what they subscribe to; then call `opened`."""
        self.barrier.begin(lambda: self._open(opened))

    def _open(self, opened: Callable[[], None]) -> None:
        self.connections.hear_all()
        opened()

    def _visit(self, place: Place, life: str, done: Callable[[], None]) -> None:
        self.peers.visit(place, life, done)

    # The ring.

    def follow(self, snapshot: Snapshot) -> None:
        """Have calls go by another ring from now on; those that wait, and whose topic moved, in the next turns."""
        self.node.follow(snapshot)
        if self.journal is not None:
            self.journal.follow(snapshot.pack())
        owners = {owner.place: owner for owner in self.siblings.owners} | self.peers.follow(snapshot)
        self.router.follow(snapshot.ring, owners)
        self.rebalance.begin()
        self._tell_of_the_ring()

    # Draining: each of these is for another reason, and has clients go.

    def be_replaced(self) -> None:
        """Take no new calls, and have those that wait meet at a successor, once there is a link to it."""
        self.standing.happened(Event.REPLACED)
        self.siblings.hand_over()
        for interest in self.interests.all():
            interest.ring_changed()  # all at once: the successor hands out nothing before it has heard of them
        self.rebalance.begin()
        self._refuse_calls()

    def drain(self) -> None:
        """Take no new calls, and let those go whose last one is answered, while the node goes on."""
        self.standing.happened(Event.TERMINATED)
        self._refuse_calls()

    def drain_node(self) -> None:
        """Do so because this node is going away; say so to those who follow the ring."""
        self.standing.happened(Event.DRAINED)
        self._refuse_calls()
        self._tell_of_the_ring()

    def _refuse_calls(self) -> None:
        assert self.standing.draining, "connections look at that"
        for connection in [*self.connections]:
            connection.worker_drains()

    def _tell_of_the_ring(self) -> None:
        for connection in [*self.connections]:
            connection.ring_changed()

    # Its end.

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written to siblings."""
        return sum(link.unsent for link in self.siblings.all())

    def leave(self) -> None:
        """Have others' calls meet nobody here any more, and learn what became of ours that wait elsewhere."""
        self.standing.happened(Event.STOPPED)
        for connection in [*self.connections]:
            connection.leave()

    def has_left(self) -> bool:
        """Return whether all that met somebody is known to have, here and elsewhere."""
        owed = any(connection.is_owed() for connection in self.connections)
        return not owed and not self.orphans and not self.peers.inbound and self.is_decided()

    def is_decided(self) -> bool:
        """Return whether every value that was given to a client of another worker has its outcome."""
        links = [*self.siblings.all(), *(inbound.link for inbound in self.peers.inbound.values())]
        return all(link.inbound.is_decided() for link in links)

    def stop(self) -> None:
        """Answer what still waits, write what can be written, and have every connection close once that is read."""
        self.turn.end()  # who has just met somebody must not hear that nobody came
        for connection in [*self.connections]:
            connection.fail_all(Draining("this worker is going away"))
        self.turn.end()
        for connection in [*self.connections]:
            connection.goodbye()
        self.turn.end()
        self.peers.stop()
