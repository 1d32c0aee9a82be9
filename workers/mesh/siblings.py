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
from workers.mesh.messages import INQUIRE, VISIT
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.succession import PATIENCE_S, Succession

ANSWER_S: Final = 0.5
"""Seconds for siblings to do what they all are asked."""


class Round:
    """The same question to several; `over` is told once whether all have answered, or are dead, or it takes too long.

    The question is VISIT or INQUIRE of messages.py, about somebody.
    """

    def __init__(self, turn: Turn, links: list[Link], kind: int, about: bytes, over: Callable[[bool], None]) -> None:
        self._turn = turn
        self._left = len(links)
        self._over: Callable[[bool], None] | None = over
        self._alarm = Alarm()
        self._alarm.set(turn, turn.now + ANSWER_S, lambda: self._end(False))
        for link in links:
            link.outbound.ask(kind, _Question(self), about)
        if not links:
            self._end(True)

    def one_less(self) -> None:
        """One has answered, or is dead."""
        self._left -= 1
        if not self._left:
            self._end(True)

    def _end(self, have_all: bool) -> None:
        over, self._over = self._over, None
        self._alarm.off(self._turn)
        if over is not None:
            over(have_all)


class _Question:
    """What one of them is asked."""

    def __init__(self, round: Round) -> None:
        self.carrier: Asked | None = None
        self.number = b""
        self._round = round

    def answer(self, info: bytes) -> None:
        """It has answered."""
        self._round.one_less()

    def end(self) -> None:
        """It is dead."""
        self._round.one_less()


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
        self._asked_about: set[int] = set()  # slots of dead ones, where it is not known yet what they handed out
        linking.kin.ask_all = self._ask_all

    def all(self) -> list[Link]:
        """Return the links that there are."""
        return [*self._links.values(), *self._askers]

    def connect(self, slot: int, sock: socket.socket, life: bytes) -> None:
        """Use a new link to the worker in `slot`, in place of one to its predecessor, which may live on for a while.

        In the slot of this very worker, that is its successor.
        """
        old = self._links.get(slot)
        if old is not None:
            old.read_to_the_end()
        owner = self.owners[slot]
        link = self._links[slot] = self._link(sock, life, owner.place)
        if old is None or old.closed:
            self._handed_over(slot, link)
            return
        self._askers[old] = None
        owner.lost(old.outbound)
        old.outbound.comes_before(link)
        Alarm().set(self._turn, self._turn.now + PATIENCE_S, old.outbound.retired)
        self._rebalance.succeed(old.outbound)
        self._rebalance.begin(Succession(old, self._turn, lambda: self._handed_over(slot, link)).ask)

    def _handed_over(self, slot: int, link: Link) -> None:
        if self._links.get(slot) is link and slot not in self._asked_about:
            self.owners[slot].met(link.outbound)

    def serve(self, sock: socket.socket, life: bytes) -> None:
        """Use a new link to a worker that is being replaced: its clients' calls may come here."""
        self._askers[self._link(sock, life, None)] = None

    def _link(self, sock: socket.socket, life: bytes, place: Place | None) -> Link:
        link = self._linking.within(sock, life, place, self._ended, self._barrier.settled, self._told_to_visit)
        link.open()
        self._barrier.linked(link)
        return link

    def have_visited(self, place: Place, life: str, then: Callable[[], None]) -> None:
        """Have those that are being replaced go to a new worker of another node, which does not know of them.

        `then` is called once it does: it hears clients when we have been there, too.
        """
        if self._askers:
            whom = values.pack([place.node, place.worker, life])
            Round(self._turn, [*self._askers], VISIT, whom, lambda _: then())
        else:
            then()

    def _ask_all(self, place: Place | None, life: bytes, over: Callable[[bool], None]) -> None:
        """A sibling of that life is dead, with sends of ours: have all others say what they know of them.

        Its successor hears of all that waits here once that is known: what was taken is not to be offered there.
        """
        slot = -1 if place is None else place.worker

        def told(is_sure: bool) -> None:
            self._asked_about.discard(slot)
            over(is_sure)
            link = self._links.get(slot)
            if link is not None and self.owners[slot].carrier is self.owners[slot].absent:
                self._handed_over(slot, link)

        self._asked_about.add(slot)
        # We ourselves last, as what came here has been written by then.
        answer = self._linking.kin.answer
        Round(self._turn, self.all(), INQUIRE, life, lambda is_sure: answer(life, lambda: told(is_sure)))

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
        self._linking.kin.read_hand(link.life)
        place = link.outbound.place
        if place is not None:
            self.owners[place.worker].lost(link.outbound)
            if self._links.get(place.worker) is link:
                del self._links[place.worker]
