"""The workers of other nodes: those that the ring names, whom we ask, and those that ask us."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from skywalker.members import Place, Snapshot
from workers.calls.owner import Owner
from workers.engine.points import reached
from workers.engine.transport import Transport
from workers.nodes.context import PeerContext
from workers.nodes.inbound_peer import InboundPeer
from workers.nodes.outbound_peer import OutboundPeer

MAX_VISITED: Final = 256
"""Workers of other nodes that a new one goes to before it hears clients."""


class Peers:
    """All links of one worker to other nodes. Each is asked over links of its own, and asks over its own."""

    def __init__(self, context: PeerContext) -> None:
        self._context = context
        self._peers: dict[Place, OutboundPeer] = {}
        self._retired: list[OutboundPeer] = []  # own nothing any more, but may hold calls of ours
        # Workers that have made links to ask us. In one place there may be several: those that are being replaced.
        self.inbound: dict[tuple[Place, str], InboundPeer] = {}

    def follow(self, snapshot: Snapshot) -> dict[Place, Owner]:
        """Return the owners that are workers of other nodes; let go of those that are not in the ring any more."""
        # One that comes back while it is let go of keeps its link: another would cut off what is still said over it.
        known = [*self._retired, *self._peers.values()]
        before = {peer.place: peer for peer in known}
        self._peers = {}
        for member in snapshot:
            if member.id == self._context.node.id:
                continue
            for worker in range(member.workers):
                place = Place(member.id, worker)
                peer = before.get(place)
                if peer is None or not peer.is_at(member):
                    peer = OutboundPeer(place, member, self._context)
                peer.owns = True
                self._peers[place] = peer
        gone = [peer for peer in known if peer is not self._peers.get(peer.place)]
        self._retired = [peer for peer in gone if not peer.is_done()]
        for peer in gone:
            if peer.is_done():
                peer.absent.end()
            else:
                peer.retire()
        for inbound in self.inbound.values():
            inbound.ring_changed()
        for place in before.keys() - self._peers.keys():
            self._context.barrier.gone(place)
        return dict(self._peers)

    def visit_all(self) -> list[Place]:
        """Go to all, since this worker is new and each has to say what it subscribes to; return their places.

        Not if they are very many: all would connect at once, to each other.
        """
        if len(self._peers) > MAX_VISITED:
            return []
        for peer in self._peers.values():
            peer.visit()
        return [*self._peers]

    def welcome(
        self, sock: Transport, unwritten: bytes, name: str, place: Place, life: str, waits: bool, replaced: bool
    ) -> None:
        """Let the worker in `place`, which has said so over this connection, ask us for calls.

        The log knows it by that `name`, and `unwritten` is still to be said to it.
        A successor in that place says that it lives another `life`, and one that is `replaced` by it, that it is. One
        that is new `waits` for us to say what we subscribe to.
        """
        old = self.inbound.get((place, life))
        if old is not None:
            old.close("it has made another link")
        for inbound in [*self.inbound.values()]:
            if inbound.place == place:
                inbound.succeeded()
        assert reached("a node has come")
        gone = functools.partial(self._gone, life)
        self.inbound[place, life] = InboundPeer(
            sock, unwritten, name, place, self._context, gone, speaks_for_place=not replaced
        )
        peer = self._peers.get(place)
        if waits and not replaced and peer is not None:
            peer.has_come(life)

    def visit(self, place: Place, life: str, done: Callable[[], None]) -> None:
        """Go to a new worker, since this one is being replaced and is not known to it; `done` is called once it is."""
        peer = self._peers.get(place)
        if peer is None:
            done()
        else:
            peer.has_come(life, done)

    @property
    def inbound_count(self) -> int:
        """How many connections to this worker are such links."""
        return len(self.inbound)

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written to workers of other nodes."""
        asked = (peer.unsent for peer in (*self._peers.values(), *self._retired))
        return sum(asked) + sum(inbound.link.unsent for inbound in self.inbound.values())

    def _gone(self, life: str, inbound: InboundPeer) -> None:
        if self.inbound.get((inbound.place, life)) is inbound:
            del self.inbound[inbound.place, life]

    def hand_over(self) -> None:
        """Have them ask our successor, each as soon as it can."""
        for inbound in [*self.inbound.values()]:
            inbound.hand_over()

    def stop(self) -> None:
        """Close every link, after what was written over it."""
        for inbound in [*self.inbound.values()]:
            inbound.stop()
        for peer in (*self._peers.values(), *self._retired):
            peer.stop()
