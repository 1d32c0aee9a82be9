"""The other workers of this node: those that own a part of its topics, and those that are being replaced."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from skywalker.members import Place
from workers.alarm import Alarm
from workers.handover import PATIENCE_S, Handover
from workers.link import Link
from workers.owner import Owner
from workers.packets import Packets

if TYPE_CHECKING:
    from workers.router import Router


class Siblings:
    """All links of one worker within its node."""

    def __init__(self, router: Router) -> None:
        self._router = router
        node = router.node
        self.owners = [Owner(Place(node.id, slot), is_here=slot == node.slot) for slot in range(node.workers)]
        """By slot, with this worker itself among them."""
        self._links: dict[int, Link] = {}  # to those that own topics, by slot
        self._askers: dict[Link, None] = {}  # to those that are being replaced, and own nothing any more

    def all(self) -> list[Link]:
        """Return the links that there are."""
        return [*self._links.values(), *self._askers]

    def connect(self, slot: int, sock: socket.socket) -> None:
        """Use a new link to the worker in `slot`, in place of one to its predecessor, which may live on for a while.

        In the slot of this very worker, that is its successor.
        """
        router = self._router
        old = self._links.get(slot)
        if old is not None:
            old.read_to_the_end()
        owner = self.owners[slot]
        link = self._links[slot] = self._link(sock, owner)
        if old is None or old.closed:
            owner.met(link.forwarded)
            return
        self._askers[old] = None
        owner.lost(old.forwarded)
        old.forwarded.comes_before(link)
        Alarm().set(router.turn, router.turn.now + PATIENCE_S, old.forwarded.retired)
        for feed in router.feeds.all():
            feed.handed_over(old.forwarded)
        router.move.begin(Handover(old, router.turn, lambda: self._handed_over(slot, link)).ask)

    def _handed_over(self, slot: int, link: Link) -> None:
        if self._links.get(slot) is link:
            self.owners[slot].met(link.forwarded)

    def serve(self, sock: socket.socket) -> None:
        """Use a new link to a worker that is being replaced: its clients' calls may come here."""
        self._askers[self._link(sock, None)] = None

    def _link(self, sock: socket.socket, owner: Owner | None) -> Link:
        router = self._router
        link = Link(Packets(sock, router.limits.mesh_bytes, router.turn), router, owner, self._ended, self._settled)
        link.open()
        if router.opening is not None:
            router.opening.linked(link)
        return link

    def _settled(self, link: Link) -> None:
        if self._router.opening is not None:
            self._router.opening.settled(link)

    def hand_over(self) -> None:
        """Have a successor own what this worker owned, once there is a link to it."""
        for link in self.all():
            link.held.retire()
        ours = self.owners[self._router.node.slot]
        ours.carrier = ours.absent

    def _ended(self, link: Link, reason: str) -> None:
        """The worker at the other end is dead. Calls issued to it from now on wait for its successor."""
        self._askers.pop(link, None)
        if self._router.opening is not None:
            self._router.opening.gone(link)
        owner = link.forwarded.owner
        if owner is not None:
            owner.lost(link.forwarded)
            if self._links.get(owner.place.worker) is link:
                del self._links[owner.place.worker]
