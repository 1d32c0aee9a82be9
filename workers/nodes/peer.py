"""One worker of another node: the connection to it, which either side makes once it has something to say.

How that is made, attempt.py has; from then on both go on with messages.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from skywalker.backoff import delay
from skywalker.members import Member, Place
from skywalker.tls.words import SILENT
from workers.calls.owner import GRACE_S, Owner
from workers.engine.loop import Alarm
from workers.engine.transport import Transport
from workers.mesh.succession import Succession
from workers.nodes.attempt import Attempt, Met
from workers.nodes.context import PeerContext
from workers.nodes.peer_link import PeerLink, PeerLinks, Way
from workers.nodes.relays import RelayedAttempt, Relays

ATTEMPT_S: Final = 1.0
"""Seconds for a node to accept a connection and say who it is."""

MAX_PAUSE_S: Final = 1.0
"""Seconds between attempts, at most: as soon as it is back it is wanted."""

PARTING_S: Final = 0.3
"""Seconds for one whose successor has come to us to end its link, or say so, before another one is used; and to give
back what waits there, before that is asked. A successor that opens waits longer for us."""

CROSSED_S: Final = 0.2
"""Seconds for the other end to make the connection that it is making, before it is dialled again."""

LASTING_S: Final = 1.0
"""Seconds that a connection must have lasted to be made anew at once when it is lost."""

DIAL_GRACE_S: Final = 0.1
"""Seconds for a last word of one that is not connected yet: a connection takes three round trips."""

PATIENCE: Final = 8
"""Dials for each of a node's workers that may meet another one than was wanted, before they count as failed."""

MAX_GRACE_S: Final = 0.3
"""Seconds for a last word from far away, at most."""


class Peer(Owner):
    """A worker of another node as an owner of topics."""

    __slots__ = (
        "_alarm", "_attempt", "_context", "_failures", "_link", "_links", "_member",
        "_next", "_opened_at", "_relays", "_sought", "_strays", "_told", "_turn", "owns",
    )  # fmt: skip

    def __init__(self, place: Place, member: Member, context: PeerContext, links: PeerLinks, relays: Relays) -> None:
        Owner.__init__(self, context.turn.core, place, grace_s=DIAL_GRACE_S)
        self._member = member
        self._context = context
        self._turn = context.turn
        self._links = links
        self._relays = relays
        self._link: PeerLink | None = None  # by which it is asked, or was until that ends, or has given all back
        self._next: PeerLink | None = None  # to its successor, once what was asked over that link is decided
        self._attempt: Attempt | RelayedAttempt | None = None  # while it is being made
        self._failures = 0  # in a row, of attempts and of connections that did not last
        self._opened_at = 0.0
        self._strays = 0  # dials in a row that met another worker
        self.owns = True  # some part of the ring
        self._sought: str | None = None  # the life of who is to hear what we subscribe to, empty for whoever is there
        self._told: list[Callable[[], None]] = []  # who waits until that one does
        self._alarm = Alarm()  # limits an attempt, or puts off the next

    @property
    def is_awaited(self) -> bool:
        return super().is_awaited or self._relays.awaits(self.place)

    def is_at(self, member: Member) -> bool:
        """Whether `member`, of the same id, still is where this one is reached."""
        ours = self._member
        return (ours.address, ours.workers, ours.steering) == (member.address, member.workers, member.steering)

    def wanted(self) -> None:
        if self._attempt is None and self._link is None and self._alarm.at is None and self.owns:
            self._dial()

    def visit(self, life: str = "") -> None:
        """Go there, and say what is subscribed to here, to one of that `life`: now, whatever happened before."""
        self._sought = life
        if self._attempt is not None and not self.is_dialling:
            self._drop()  # it hears what is relayed only once it has heard us
        if self._attempt is None and self._link is None and self.owns:
            self._alarm.off(self._turn)
            self._failures = 0
            self._dial()

    def has_come(self, life: str, done: Callable[[], None] | None = None) -> None:
        """One of that life is new, and waits for us to say what we subscribe to; `done` is called once it knows us."""
        if self._link is not None and life == self._link.life:
            if done is not None:
                done()
            return
        if done is not None:
            self._told.append(done)
        if self._link is None:
            self.visit(life)
        else:
            # Our link is to the one before, which says the last of what was published there.
            self._sought = life
            self._look_in(PARTING_S)

    def has_made(self, link: PeerLink, waits: bool) -> None:
        """It has made a link itself, over which it can be asked. One that is new `waits` as in has_come()."""
        if self._link is not None and link.born < self._link.born:
            link.succeeded()  # though it has not been told so
            return
        self._drop()
        if self._link is None:
            self._use(link, waits)
            return
        self._next = link
        if waits:
            self._sought = link.life
        self._look_in(PARTING_S)

    def find(self) -> None:
        """Use a link that it made before it was on the ring, and leave one whose worker has a successor since."""
        if self._link is not None and self._link.has_successor and self._alarm.at is None:
            self._leave(self._link)
        if self._link is None and self._attempt is None and (found := self._links.to_ask(self.place)) is not None:
            self._use(found, waits=False)

    @property
    def is_asking(self) -> bool:
        """Whether it was just asked for a link, and may have one by now."""
        return self._attempt is not None and self._attempt.is_asking

    @property
    def is_dialling(self) -> bool:
        """Whether what is being made is a connection."""
        return isinstance(self._attempt, Attempt)

    def leave_ring(self) -> None:
        """It owns nothing any more: be done with it, once it has let go of what waits there."""
        self.stop()
        if self._link is not None:
            self._link.look()

    def is_done(self) -> bool:
        """Whether it owns nothing any more, and nothing is left of it."""
        return not self.owns and self._link is None

    def stop(self) -> None:
        """Do not go there any more."""
        self.owns = False
        self._drop()

    def _look_in(self, seconds: float) -> None:
        self._alarm.set(self._turn, self._turn.now + seconds, self._look)

    def _look(self) -> None:
        """The time of an attempt is over, or that for which something was put off."""
        if self._attempt is not None:
            self.failed(SILENT if self._attempt.is_shaking_hands else f"no answer within {ATTEMPT_S:g} s")
        elif self._link is not None:
            if self._forget_dead() and self._link.insists():
                self._use(self._link, waits=True)  # as whoever would have asked it meanwhile has not
            if self._next is not None or self._sought is not None:
                self._leave(self._link)
        elif self.is_awaited or self._sought is not None:
            self._dial()

    def retired(self, link: PeerLink) -> None:
        if link is self._link and self.owns:
            self._alarm.off(self._turn)
            self._leave(link)

    def _forget_dead(self) -> bool:
        """Wait no more for a successor that has made a link and is dead; return whether there was one."""
        dead = self._next
        if dead is None or dead.can_be_asked:
            return False
        self._next = None
        if self._sought == dead.life:
            self._sought = None
        return True

    def _leave(self, link: PeerLink) -> None:
        """Use another link beside one to a predecessor, which ends once all that it gave us is decided.

        What came later would overtake what waited there, if it were asked before that has come back.
        """
        if link.is_left:
            return  # already
        self.lost(link.link)
        rebalance = self._context.rebalance
        rebalance.succeed(link.link)  # it is wanted, but not dialled while there is a link
        rebalance.hold_back()  # the predecessor may give back what was published only as its link ends
        link.leave()
        if self._context.standing.opening:
            self._has_parted(link)  # no call of ours waits there, and what it answered would not be heard yet
        else:
            rebalance.begin(Succession(link.link, self._turn, PARTING_S, lambda: self._has_parted(link)).ask)

    def _has_parted(self, link: PeerLink) -> None:
        if link is self._link:
            self._link = None
            if self.owns:
                self._succeed()

    def _succeed(self) -> None:
        """Use the link that its successor has made, or go there."""
        self._forget_dead()
        found, self._next = self._next, None
        if found is not None:
            self._use(found, self._sought == found.life)
        elif self._sought is not None:
            self.visit(self._sought)
        elif self.is_awaited:
            self.wanted()

    # Making the connection.

    def _dial(self, *, directly: bool = False) -> None:
        assert self._attempt is None, "there is one at a time, and one alarm for it"
        if self._context.standing.leaving and self._sought is None and not self.absent.has_any():
            return  # all calls that wait here are ending; subscribers are there until the end
        relayed = None
        # Who is new hears what is relayed only once we are there.
        if not directly and self._sought is None and not self._failures:
            relayed = self._relays.attempt(self.place, self._member, self)
        self._attempt = relayed or Attempt(self.place, self._member, self._context, self)
        self._look_in(ATTEMPT_S)
        self._attempt.begin()

    def failed(self, reason: str) -> None:
        self._drop()
        if self._failures == 0:
            where = {"peer": str(self._member), "its_worker": self.place.worker}
            self._context.log.warning("peer-unreachable", **where, reason=reason)
        self._failures += 1
        self._look_in(self._pause_s(self._failures))

    def not_relayed(self) -> None:
        self._drop()
        self._dial(directly=True)

    def strayed(self) -> None:
        self._strays += 1
        if self._strays % (PATIENCE * self._member.workers) == 0:
            self.failed("its other workers answer, this one does not")
            return
        self._drop()
        self._dial()

    def crossed(self, life: str) -> None:
        self._drop()
        for link in self._links.to(self.place):
            if link.life == life and link.insists():
                self._use(link, waits=False)
                return
        self._look_in(CROSSED_S)

    def opened(self, sock: Transport, met: Met, round_trip_s: float, heard: bytes) -> None:
        if not met.counts_us:
            self._context.barrier.gone(self.place)
        self._attempt = None
        way = Way.BOTH if met.both_ways else Way.WE_ASK
        link = PeerLink(
            sock,
            str(self._member),
            self.place,
            met.life,
            way,
            self._context,
            self._links,
            came=False,
            age_s=met.age_s,
            grace_s=grace_of(round_trip_s),
            heard=heard,
        )
        if self._context.standing.replaced:
            link.retire()  # since it was told who asks
        self._use(link, met.waits)

    def _use(self, link: PeerLink, waits: bool) -> None:
        """Ask over a link. One that `waits` is told that we have said all only once this is so of our place.

        It would hear clients, and those of this node that are being replaced might have not said so yet.
        """
        self._drop()
        self._strays = 0
        self._opened_at = self._turn.now
        self._link = link
        if link.asker is not None and link.asker is not self:
            link.asker.yielded(link)
        link.asker = self
        link.has_to_settle = waits
        if waits:
            self._context.have_visited(self.place, link.life, functools.partial(self._ask, link))
        else:
            self._ask(link)

    def _ask(self, link: PeerLink) -> None:
        """Ask it over this link from now on, and say what we subscribe to."""
        if link is not self._link or not link.can_be_asked:
            return  # it has ended, or is left for another
        link.has_to_settle = False
        self.met(link.link)
        self._relays.met(self.place)
        if self._sought in ("", link.life):
            self._sought = None
            told, self._told = self._told, []
            for done in told:
                done()

    def _drop(self) -> None:
        self._alarm.off(self._turn)
        if self._attempt is not None:
            self._attempt.end()
            self._attempt = None

    # The end.

    def yielded(self, link: PeerLink) -> None:
        self.lost(link.link)
        if link is self._link:
            self._link = None

    def ended(self, link: PeerLink, reason: str) -> None:
        self.lost(link.link)
        if link is not self._link or link.is_left:
            return  # it was left
        if self._next is not None:
            self._context.rebalance.succeed(link.link)  # the successor is to hear of that before all that was said
        self._link = None
        if not self.owns:
            return
        self._alarm.off(self._turn)
        if not link.is_planned:
            where = {"peer": str(self._member), "its_worker": self.place.worker}
            self._context.log.warning("peer-lost", **where, reason=reason)
        if self._next is not None or self._sought is not None:
            self._succeed()
        elif self._turn.now - self._opened_at >= LASTING_S:
            self._failures = 0
            if self.is_awaited:
                self._dial()  # for what came while it was parting
        elif link.is_planned:
            self._look_in(self._pause_s(1))
        else:
            self.failed(reason)

    def _pause_s(self, failures: int) -> float:
        """Return the seconds to wait before it is tried again, after so many failures in a row."""
        return delay(failures, self._context.machine.random(), cap_s=MAX_PAUSE_S)


def grace_of(round_trip_s: float) -> float:
    """Return the seconds for a last word from who is so far away."""
    return min(MAX_GRACE_S, GRACE_S + round_trip_s)
