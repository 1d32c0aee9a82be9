"""The workers of other nodes: those that the ring names, whom we ask, and those that ask us."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skywalker.members import Place, Snapshot
from workers.link import Link
from workers.owner import Owner
from workers.peer import Peer
from workers.stream import Stream

if TYPE_CHECKING:
    from workers.connection import Connection
    from workers.router import Router


class Peers:
    """All links of one worker to other nodes. Each is asked over links of its own, and asks over its own."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._peers: dict[Place, Peer] = {}
        self._retired: list[Peer] = []  # own nothing any more, but may hold calls of ours
        self.guests: dict[Link, None] = {}  # links that others made, to ask us

    def follow(self, snapshot: Snapshot) -> dict[Place, Owner]:
        """Return the owners that are workers of other nodes; let go of those that are not in the ring any more."""
        before, self._peers = self._peers, {}
        for member in snapshot:
            if member.id == self._router.node.id:
                continue
            for worker in range(member.workers):
                place = Place(member.id, worker)
                old = before.get(place)
                if old is not None and old.is_at(member):
                    del before[place]
                self._peers[place] = old if old is not None and old.is_at(member) else Peer(place, member, self._router)
        self._retired = [peer for peer in (*self._retired, *before.values()) if peer.retire()]
        return dict(self._peers)

    def welcome(self, connection: Connection) -> None:
        """Let a worker of another node, which has said who it is over `connection`, ask us for calls."""
        router = self._router
        sock, unwritten = connection.detach()
        messages = Stream(sock, router.limits.mesh_bytes, router.turn, unwritten)
        guest = Link(messages, router, None, lambda link, reason: self._gone(link, connection.peer, reason))
        self.guests[guest] = None
        guest.open()

    def _gone(self, guest: Link, name: str, reason: str) -> None:
        del self.guests[guest]
        self._router.log.info("guest-left", peer=name, reason=reason)

    def stop(self) -> None:
        """Close every link, after what was written over it."""
        for guest in [*self.guests]:
            guest.close("this node ends")
        for peer in (*self._peers.values(), *self._retired):
            peer.stop()
