"""The other workers of this node: those that own a part of its topics, and those that are being replaced.

When one dies, its link ends: what it held here is given up (inbound.py), what waited there comes back (outbound.py) and
waits for its successor with Absent in calls/owner.py. process/crew.py has that one forked.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from skywalker.members import Place
from skywalker.wire import values
from workers.calls.inquiries import Asked
from workers.calls.own_node import OwnNode
from workers.calls.owner import Owner
from workers.calls.rebalance import Rebalance
from workers.engine.loop import Alarm, Turn
from workers.mesh.link import Link
from workers.mesh.link_maker import LinkMaker
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.succession import PATIENCE_S, Succession

VISIT_S: Final = 0.5
"""Seconds for those that are being replaced to go to somebody."""


class Visits:
    """Those that go to a new worker of another node; `over` is called once, when all have, or it takes too long."""

    def __init__(self, turn: Turn, links: list[Link], whom: bytes, over: Callable[[], None]) -> None:
        self._turn = turn
        self._left = len(links)
        self._over: Callable[[], None] | None = over
        self._alarm = Alarm()
        self._alarm.set(turn, turn.now + VISIT_S, self._end)
        for link in links:
            link.outbound.have_visit(_Visit(self), whom)

    def one_less(self) -> None:
        """One has gone there, or is dead."""
        self._left -= 1
        if not self._left:
            self._end()

    def _end(self) -> None:
        over, self._over = self._over, None
        self._alarm.off(self._turn)
        if over is not None:
            over()


class _Visit:
    """What one of them is asked."""

    def __init__(self, visits: Visits) -> None:
        self.carrier: Asked | None = None
        self.number = b""
        self._visits = visits

    def answer(self, info: bytes) -> None:
        """It has."""
        self._visits.one_less()

    def end(self) -> None:
        """It is dead."""
        self._visits.one_less()


class Siblings:
    """All links of one worker within its node."""

    def __init__(
        self,
        node: OwnNode,
        turn: Turn,
        linking: LinkMaker,
        barrier: ReadinessBarrier,
        rebalance: Rebalance,
        visit: Callable[[Place, str, Callable[[], None]], None],
    ) -> None:
        """`visit` is called when a sibling wants us to go to the worker in a place that has that life."""
        self._visit = visit
        self._slot = node.slot
        self._turn = turn
        self._linking = linking
        self._barrier = barrier
        self._rebalance = rebalance
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
        old = self._links.get(slot)
        if old is not None:
            old.read_to_the_end()
        owner = self.owners[slot]
        link = self._links[slot] = self._link(sock, owner.place)
        if old is None or old.closed:
            owner.met(link.outbound)
            return
        self._askers[old] = None
        owner.lost(old.outbound)
        old.outbound.comes_before(link)
        Alarm().set(self._turn, self._turn.now + PATIENCE_S, old.outbound.retired)
        self._rebalance.succeed(old.outbound)
        self._rebalance.begin(Succession(old, self._turn, lambda: self._handed_over(slot, link)).ask)

    def _handed_over(self, slot: int, link: Link) -> None:
        if self._links.get(slot) is link:
            self.owners[slot].met(link.outbound)

    def serve(self, sock: socket.socket) -> None:
        """Use a new link to a worker that is being replaced: its clients' calls may come here."""
        self._askers[self._link(sock, None)] = None

    def _link(self, sock: socket.socket, place: Place | None) -> Link:
        link = self._linking.within(sock, place, self._ended, self._barrier.settled, self._told_to_visit)
        link.open()
        self._barrier.linked(link)
        return link

    def have_visited(self, place: Place, life: str, then: Callable[[], None]) -> None:
        """Have those that are being replaced go to a new worker of another node, which does not know of them.

        `then` is called once it does: it hears clients when we have been there, too.
        """
        if self._askers:
            Visits(self._turn, [*self._askers], values.pack([place.node, place.worker, life]), then)
        else:
            then()

    def _told_to_visit(self, whom: bytes, done: Callable[[], None]) -> None:
        node, worker, life = values.unpack(whom)
        self._visit(Place(node, worker), life, done)

    def hand_over(self) -> None:
        """Have a successor own what this worker owned, once there is a link to it."""
        for link in self.all():
            link.inbound.retire()
        ours = self.owners[self._slot]
        ours.carrier = ours.absent

    def _ended(self, link: Link, reason: str) -> None:
        """The worker at the other end is dead. Calls issued to it from now on wait for its successor."""
        self._askers.pop(link, None)
        self._barrier.gone(link)
        place = link.outbound.place
        if place is not None:
            self.owners[place.worker].lost(link.outbound)
            if self._links.get(place.worker) is link:
                del self._links[place.worker]
