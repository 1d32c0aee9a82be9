"""The workers of other nodes: those that the ring names, and all links to them and to others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from skywalker.members import Place, Snapshot
from workers.calls.newcomer import Newcomer
from workers.calls.owner import Owner
from workers.engine.points import reached
from workers.engine.transport import Transport
from workers.nodes.context import PeerContext
from workers.nodes.peer import Peer, grace_of
from workers.nodes.peer_link import ENDS, PeerLink, PeerLinks, Way
from workers.nodes.relays import Relays

MAX_VISITED: Final = 256
"""Workers of other nodes that a new one goes to before it hears clients."""


class Peers:
    """Those of one worker."""

    def __init__(self, context: PeerContext) -> None:
        self._context = context
        self._peers: dict[Place, Peer] = {}  # those that somebody has asked for
        self._off: list[Peer] = []  # those that are not on the ring any more, but may hold calls of ours
        self._links = PeerLinks()
        self.relays = Relays(context, self._links, self._peer, self)

    def make(self, place: Place) -> Peer:
        """Return the owner in a place that is on the ring, when somebody asks for it first."""
        member = self._context.node.snapshot.by_id[place.node]
        peer = self._peers[place] = Peer(place, member, self._context, self._links, self.relays)
        return peer

    def _peer(self, place: Place) -> Peer | None:
        """Return the one in a place, if that is on the ring, and not on this node."""
        return self._peers.get(place) if self._context.owners.find(place) is not None else None

    def follow(self, snapshot: Snapshot) -> dict[Place, Owner | None]:
        """Return the owners that are workers of other nodes, None of those that nobody has asked for.

        Let go of those that are not in the ring any more.
        """
        # One that comes back while it is let go of keeps its link: another would cut off what is still said over it.
        known = [*self._off, *self._peers.values()]
        owners: dict[Place, Owner | None] = dict.fromkeys(self._places(snapshot))
        # While a node is on the ring that knows nothing of slices, it knows nothing of this either.
        self.relays.follow(are_wanted=0 < self._context.max_links < len(owners) and snapshot.slicing > 0)
        self._peers = {}
        for peer in known:
            place = peer.place
            if place in owners and peer.is_at(snapshot.by_id[place.node]):
                peer.owns = True
                self._peers[place] = peer
        gone = [peer for peer in known if peer is not self._peers.get(peer.place)]
        self._off = [peer for peer in gone if not peer.is_done()]
        for peer in gone:
            if peer.is_done():
                peer.absent.end()
            else:
                peer.leave_ring()
        for link in self._links:
            link.ring_changed()
            if link.place in owners:
                (self._peers.get(link.place) or self.make(link.place)).find()
        for peer in gone:
            if peer.place not in owners:
                self._context.barrier.gone(peer.place)
        owners.update(self._peers)
        return owners

    def _places(self, snapshot: Snapshot) -> Iterator[Place]:
        for member in snapshot:
            if member.id != self._context.node.id:
                for worker in range(member.workers):
                    yield Place(member.id, worker)

    def visit_all(self) -> list[Place]:
        """Go to all, since this worker is new and each has to say what it subscribes to; return their places.

        Not if they are very many: all would connect at once, to each other.
        """
        places = [*islice(self._places(self._context.node.snapshot), MAX_VISITED + 1)]
        if len(places) > MAX_VISITED:
            return []
        for place in places:
            peer = self._peer(place)
            assert peer is not None, "it is on the ring"
            peer.visit()
        return places

    def meet(self, newcomer: Newcomer, wanted: Place, *, relayed: bool = False) -> tuple[dict[str, Any], bool]:
        """Return what one who wants the worker in a place is told of this one, and whether it is to be welcome."""
        context = self._context
        node, replaced = context.node, context.standing.replaced
        met = {
            "node": node.id,
            "worker": node.slot,
            "life": node.life,
            "waits": context.standing.opening,
            "counts": newcomer.place.node in node.snapshot.by_id,
            "age": context.turn.now - node.born,
        }
        is_wanted = wanted == Place(node.id, node.slot)
        if not newcomer.both_ways:
            return met, is_wanted
        crossed = is_wanted and not replaced and (self._is_late(newcomer) or self._is_crossed(newcomer, relayed))
        return met | {"both": True, "replaced": replaced, "crossed": crossed}, is_wanted and not (replaced or crossed)

    def _is_late(self, newcomer: Newcomer) -> bool:
        """Return whether one has made a link since it asked for this: what is relayed may be heard late."""
        links = self._links.to(newcomer.place)
        return any(link.came and link.life == newcomer.life and link.age_s > newcomer.age_s for link in links)

    def _is_crossed(self, newcomer: Newcomer, relayed: bool) -> bool:
        """Return whether a link that one makes is to be none: of two that cross the lower place's counts.

        But a connection counts before what is relayed: one that opens reads no more of the link that this passes, once
        that has settled.

        If it does not know any more of one that we have made, it comes again, and that will turn out.
        """
        place = newcomer.place
        for link in self._links.to(place):
            if link.life == newcomer.life and link.is_ours:
                link.crossed()
                return True
        if relayed and self._context.standing.opening:
            return True  # we go there, or it comes again
        peer, node = self._peers.get(place), self._context.node
        if peer is None or not peer.is_asking or newcomer.replaced:
            return False
        if peer.is_dialling == relayed:
            return relayed  # ours is the connection
        return Place(node.id, node.slot) < place

    def welcome(self, sock: Transport, unwritten: bytes, newcomer: Newcomer) -> None:
        """Go on with a connection over which one has said who it is, and to whom `unwritten` is still to be said."""
        place = newcomer.place
        born = self._context.turn.now - newcomer.age_s
        for link in self._links.to(place):
            if link.life != newcomer.life:
                if link.born < born and not newcomer.replaced:
                    link.succeeded()
            elif newcomer.both_ways or link.came:
                link.link.read_to_the_end()
                link.close("it has made another link")
        assert reached("a node has come")
        made = PeerLink(
            sock,
            newcomer.name,
            place,
            newcomer.life,
            Way.BOTH if newcomer.both_ways else Way.IT_ASKS,
            self._context,
            self._links,
            came=True,
            age_s=newcomer.age_s,
            speaks_for_place=not newcomer.replaced,
            grace_s=grace_of(newcomer.round_trip_s),
            unwritten=unwritten,
        )
        peer = self._peer(place)
        if peer is None or newcomer.replaced:
            return
        if newcomer.both_ways:
            peer.has_made(made, newcomer.waits)
        elif newcomer.waits:
            peer.has_come(newcomer.life)

    def visit(self, place: Place, life: str, done: Callable[[], None]) -> None:
        """Go to a new worker, since this one is being replaced and is not known to it; `done` is called once it is."""
        peer = self._peer(place)
        if peer is None:
            done()
        else:
            peer.has_come(life, done)

    @property
    def came_count(self) -> int:
        """How many connections to this worker are such links."""
        return self._links.came_count

    def counts(self) -> tuple[int, int, int]:
        """Return how many links are connections, how many are relayed, and how many of siblings pass through here."""
        relayed = [link.relayed is not None for link in self._links]
        return relayed.count(False), relayed.count(True), self.relays.passing

    @property
    def asking(self) -> list[PeerLink]:
        """The links over which we are asked."""
        return [link for link in self._links if link.asks_us]

    def have_left(self) -> bool:
        """Return whether all who ask us are through with us, as this worker leaves."""
        return all(link.is_handed_over() for link in self._links)

    def let_go(self) -> bool:
        """Return whether no sibling is linked through us any more that soon will not be, once all have_left().

        They leave as well if the node goes, or go by our successor. One that drains alone has none before it has ended.
        What is relayed for us ends meanwhile, whoever subscribes over it: siblings would wait for that, as we do.
        """
        standing = self._context.standing
        if not self.relays.passing or not (standing.node_drains or standing.replaced):
            return True
        self._go_nowhere()
        for link in self._links:
            if link.relayed is not None:
                link.finish(ENDS)
        self._context.turn.end()
        return False

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written to workers of other nodes."""
        return sum(link.link.unsent for link in self._links)

    def retire(self) -> None:
        """Have them ask our successor, each as soon as it can, and hand out nothing any more."""
        for link in self._links:
            link.retire()

    def hand_over(self) -> None:
        """End the links over which we alone are asked; all, if this worker leaves."""
        for link in self._links:
            link.hand_over()

    def _go_nowhere(self) -> None:
        for peer in (*self._peers.values(), *self._off):
            peer.stop()

    def stop(self) -> None:
        """End every link, after what was written over it."""
        self._go_nowhere()
        self.relays.stop()
        for link in sorted(self._links, key=lambda link: link.relayed is None):
            link.stop()  # what is relayed passes over the others
