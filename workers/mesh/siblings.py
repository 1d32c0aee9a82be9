"""The other workers of this node: those that own a part of its topics, and those that are being replaced.

When one dies, its link ends: what it held here is given up, what waited there comes back and waits for its successor.
process/crew.py has that one forked.

What became of a send goes the shortest way: who gave its value to a client tells the sender's worker, and not only the
owner of the topic, which may die with that. So when an owner is dead, whoever has sends waiting there asks all others
whether they have heard all that it said, and have told all that they know. What then is left was handed out by nobody,
except what the dead one itself was just doing: workers/stats/hands.py has that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skywalker.members import Place
from skywalker.wire import values
from workers.calls.inquiries import Knock, Question
from workers.calls.own_node import OwnNode
from workers.calls.owner import Owner
from workers.calls.rebalance import Rebalance
from workers.engine.loop import Alarm, Turn
from workers.mesh.link import Link
from workers.mesh.links import Links
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.succession import Succession
from workers.stats.hands import cell_of

ANSWER_S: Final = 0.5
"""Seconds for siblings to do what they all are asked."""

PARTING_S: Final = 0.7
"""Seconds for one that is replaced to say the last of what it has handed out, and to give back what it has not, before
its successor is asked and heard. That waits longer for us."""


class Round:
    """The same question to several; `over` is told once whether all have answered or are dead, or it takes too long."""

    def __init__(
        self, turn: Turn, links: list[Link], ask: Callable[[Link, Question], None], over: Callable[[bool], None]
    ) -> None:
        """`ask` is called with each."""
        self._turn = turn
        self._left = len(links)
        self._over: Callable[[bool], None] | None = over
        self._alarm = Alarm()
        self._alarm.set(turn, turn.now + ANSWER_S, lambda: self._end(False))
        for link in links:
            ask(link, Knock(self._one_less, self._one_less))
        if not links:
            self._end(True)

    def _one_less(self) -> None:
        """One has answered, or is dead."""
        self._left -= 1
        if not self._left:
            self._end(True)

    def _end(self, have_all: bool) -> None:
        over, self._over = self._over, None
        self._alarm.off(self._turn)
        if over is not None:
            over(have_all)


class Siblings:
    """All links of one worker within its node."""

    def __init__(
        self,
        node: OwnNode,
        turn: Turn,
        here: Owner,
        links: Links,
        barrier: ReadinessBarrier,
        rebalance: Rebalance,
        visit: Callable[[Place, str, Callable[[], None]], None],
        has_come: Callable[[int, Link], None],
    ) -> None:
        """`here` is this worker itself as an owner of topics.

        `visit` is called when a sibling wants us to go to the worker in a place that has that life, and `has_come`
        when another worker in a slot can be asked.
        """
        self._has_come = has_come
        self._visit = visit
        self._here = here
        self._turn = turn
        self._links = links
        self._barrier = barrier
        self._rebalance = rebalance
        self.owners = [
            here if slot == node.slot else Owner(turn.core, Place(node.id, slot)) for slot in range(node.workers)
        ]
        """By slot, with this worker itself among them."""
        self._by_slot: dict[int, Link] = {}  # to those that own topics, by slot
        self._askers: dict[Link, None] = {}  # to those that are being replaced, and own nothing any more
        self._parting: dict[int, Link] = {}  # by slot, those that have yet to give back what waits there
        self._asked_about: set[int] = set()  # slots of dead ones, where it is not known yet what they handed out
        links.begin(self._ask_all)

    def all(self) -> list[Link]:
        """Return the links that there are."""
        return [*self._by_slot.values(), *self._askers]

    def connect(self, slot: int, fd: int, life: bytes) -> None:
        """Use a new link to the worker in `slot`, in place of one to its predecessor, which may live on for a while.

        In the slot of this very worker, that is its successor.
        """
        old = self._by_slot.get(slot)
        if old is not None:
            old.read_to_the_end()
        owner = self.owners[slot]
        link = self._by_slot[slot] = self._link(fd, life, owner.place)
        if old is None or old.closed:
            before = self._parting.get(slot)  # whose successor was another one, which is dead
            if before is not None:
                before.comes_before(link)
            self._barrier.linked(link)
            self._lead(slot)
            return
        self._askers[old] = None
        owner.lost(old)
        old.comes_before(link)
        Alarm().set(self._turn, self._turn.now + PARTING_S, old.retired)
        self._rebalance.succeed(old)
        if not self._barrier.is_open:
            # No call of ours waits there, and the new one has no subscribers yet. It waits for us, so we do not for it:
            # what it says is heard after the last of the old one, which is held back until we open.
            self._lead(slot)
            return
        self._parting[slot] = old
        self._rebalance.begin(Succession(old, self._turn, PARTING_S, lambda: self._has_parted(slot, old)).ask)

    def _has_parted(self, slot: int, old: Link) -> None:
        if self._parting.get(slot) is old:
            del self._parting[slot]
            self._lead(slot)

    def _lead(self, slot: int) -> None:
        """Ask who is in a slot now, once it is known what became of all that waited there before."""
        link = self._by_slot.get(slot)
        if link is not None and slot not in self._parting and slot not in self._asked_about:
            self.owners[slot].met(link)
            self._has_come(slot, link)

    def serve(self, fd: int, life: bytes) -> None:
        """Use a new link to a worker that is being replaced: its clients' calls may come here."""
        link = self._link(fd, life, None)
        self._barrier.linked(link)
        self._askers[link] = None

    def _link(self, fd: int, life: bytes, place: Place | None) -> Link:
        return self._links.within(fd, cell_of(life), place, self._ended, self._barrier.settled, self._told_to_visit)

    def have_visited(self, place: Place, life: str, then: Callable[[], None]) -> None:
        """Have those that are being replaced go to a new worker of another node, which does not know of them.

        `then` is called once it does: it hears clients when we have been there, too.
        """
        if self._askers:
            whom = values.pack([place.node, place.worker, life])
            Round(
                self._turn, [*self._askers], lambda link, question: link.ask_to_visit(question, whom), lambda _: then()
            )
        else:
            then()

    def _ask_all(self, place: Place | None, life: int, over: Callable[[bool], None]) -> None:
        """A sibling of that life is dead, with sends of ours: have all others say what they know of them.

        Its successor hears of all that waits here once that is known: what was taken is not to be offered there.
        """
        slot = -1 if place is None else place.worker

        def told(is_sure: bool) -> None:
            self._asked_about.discard(slot)
            over(is_sure)
            if slot in self._by_slot and self.owners[slot].carrier is self.owners[slot].absent:
                self._lead(slot)

        self._asked_about.add(slot)
        # We ourselves last, as what came here has been written by then.
        Round(
            self._turn,
            self.all(),
            lambda link, question: link.inquire(question, life),
            lambda is_sure: self._links.answer(life, lambda: told(is_sure)),
        )

    def _told_to_visit(self, whom: bytes, done: Callable[[], None]) -> None:
        node, worker, life = values.unpack(whom)
        self._visit(Place(node, worker), life, done)

    def hand_over(self) -> None:
        """Have a successor own what this worker owned, once there is a link to it."""
        for link in self.all():
            link.retire()
        self._here.lost(None)

    def _ended(self, link: Link, _: str) -> None:
        """The worker at the other end is dead. Calls issued to it from now on wait for its successor."""
        self._askers.pop(link, None)
        self._barrier.gone(link)
        place = link.place
        if place is not None:
            self.owners[place.worker].lost(link)
            if self._by_slot.get(place.worker) is link:
                del self._by_slot[place.worker]
