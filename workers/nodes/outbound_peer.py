"""One worker of another node: the connection that we make to it, once one of us has something to say, and keep.

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
from workers.mesh.link import Link
from workers.nodes.attempt import Attempt, Met
from workers.nodes.context import PeerContext
from workers.nodes.probe import Probe

ATTEMPT_S: Final = 1.0
"""Seconds for a node to accept a connection and say who it is."""

MAX_PAUSE_S: Final = 1.0
"""Seconds between attempts, at most: as soon as it is back it is wanted."""

PARTING_S: Final = 0.3
"""Seconds for one whose successor has come to us to end its link, before another is made beside it."""

LASTING_S: Final = 1.0
"""Seconds that a connection must have lasted to be made anew at once when it is lost."""

DIAL_GRACE_S: Final = 0.1
"""Seconds for a last word of one that is not connected yet: a connection takes three round trips."""

PATIENCE: Final = 8
"""Dials for each of a node's workers that may meet another one than was wanted, before they count as failed."""

MAX_GRACE_S: Final = 0.3
"""Seconds for a last word from far away, at most."""


class OutboundPeer(Owner):
    """A worker of another node as an owner of topics."""

    __slots__ = (
        "_alarm", "_attempt", "_context", "_failures", "_left", "_life", "_link", "_member",
        "_opened_at", "_probe", "_sought", "_strays", "_told", "_turn", "_was_idle", "owns",
    )  # fmt: skip

    def __init__(self, place: Place, member: Member, context: PeerContext) -> None:
        Owner.__init__(self, context.turn.core, place, grace_s=DIAL_GRACE_S)
        self._member = member
        self._context = context
        self._turn = context.turn
        self._link: Link | None = None
        self._probe: Probe | None = None  # about that link, once it owns nothing any more
        self._was_idle = False
        self._attempt: Attempt | None = None  # while it is being made
        self._failures = 0  # in a row, of attempts and of connections that did not last
        self._opened_at = 0.0
        self._strays = 0  # dials in a row that met another worker
        self.owns = True  # some part of the ring
        self._life = ""  # of the one that was met last
        self._sought: str | None = None  # the life of who is to hear what we subscribe to, empty for whoever is there
        self._told: list[Callable[[], None]] = []  # who waits until that one does
        self._left: dict[Link, Probe] = {}  # links to predecessors, until they have said their last
        self._alarm = Alarm()  # limits an attempt, or puts off the next

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
        if self._attempt is None and self._link is None and self.owns:
            self._alarm.off(self._turn)
            self._failures = 0
            self._dial()

    def has_come(self, life: str, done: Callable[[], None] | None = None) -> None:
        """One of that life is new, and waits for us to say what we subscribe to; `done` is called once it knows us."""
        if self._link is not None and life == self._life:
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
            self._alarm.set(self._turn, self._turn.now + PARTING_S, self._ring)

    def retire(self) -> None:
        """It owns nothing any more: be done with it, once it has let go of what waits there."""
        self.owns = False
        self._drop()
        if self._probe is not None:
            self._probe.look()

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written to it."""
        return sum(link.unsent for link in (self._link, *self._left) if link is not None)

    def is_done(self) -> bool:
        """Whether it owns nothing any more, and nothing is left of it."""
        return not self.owns and self._link is None and not self._left

    def stop(self) -> None:
        """Close the connection, after what was written over it."""
        self.owns = False
        self._drop()
        for link in (self._link, *self._left):
            if link is not None:
                link.close("this node ends")

    def _ring(self) -> None:
        if self._attempt is not None:
            self.failed(SILENT if self._attempt.is_shaking_hands else f"no answer within {ATTEMPT_S:g} s")
        elif self._link is not None:
            self._leave(self._link)
        elif self.is_awaited or self._sought is not None:
            self._dial()

    def _leave(self, link: Link) -> None:
        """Make another link beside one to a predecessor, which ends once all that it gave us is decided."""
        assert self._probe is not None, "there is one of each link"
        self._probe.end()
        self._left[link] = probe = Probe(link, self._turn, lambda: True)
        probe.look()
        self._link = self._probe = None
        self.lost(link)
        rebalance = self._context.rebalance
        rebalance.succeed(link)
        rebalance.hold_back()  # the predecessor gives back nothing that was published before its link ends
        self.visit(self._sought or "")
        rebalance.begin()

    # Making the connection.

    def _dial(self) -> None:
        assert self._attempt is None, "there is one at a time, and one alarm for it"
        turn = self._turn
        self._attempt = Attempt(self.place, self._member, self._context, self)
        self._alarm.set(turn, turn.now + ATTEMPT_S, self._ring)
        self._attempt.begin()

    def failed(self, reason: str) -> None:
        self._drop()
        if self._failures == 0:
            where = {"peer": str(self._member), "its_worker": self.place.worker}
            self._context.log.warning("peer-unreachable", **where, reason=reason)
        self._failures += 1
        self._alarm.set(self._turn, self._turn.now + self._pause_s(self._failures), self._ring)

    def strayed(self) -> None:
        self._strays += 1
        if self._strays % (PATIENCE * self._member.workers) == 0:
            self.failed("its other workers answer, this one does not")
            return
        self._drop()
        self._dial()

    def opened(self, sock: Transport, met: Met, round_trip_s: float, heard: bytes) -> None:
        """Go on as a link, over which one that waits is told that we have said all only once this is so of our place.

        It would hear clients, and those of this node that are being replaced might have not said so yet.
        """
        if not met.counts_us:
            self._context.barrier.gone(self.place)
        self._alarm.off(self._turn)
        self._attempt = None
        self._strays = 0
        self._life = met.life
        self._opened_at = self._turn.now
        grace_s = min(MAX_GRACE_S, GRACE_S + round_trip_s)
        self._link = link = self._context.links.abroad(sock, self.place, self._ended, grace_s=grace_s, heard=heard)
        self._probe = Probe(link, self._turn, self._is_needed)
        if met.waits:
            self._context.have_visited(self.place, met.life, functools.partial(self._ask, link))
        else:
            self._ask(link)

    def _ask(self, link: Link) -> None:
        """Ask it over this link from now on, and say what we subscribe to."""
        if link is not self._link:
            return  # it has ended, or is left for another
        self.met(link)
        if self._sought in ("", self._life):
            self._sought = None
            told, self._told = self._told, []
            for done in told:
                done()

    def _is_needed(self) -> bool:
        """Whether one that owns nothing any more still has to say something; if not, its link is done with."""
        if not self.owns and self._link is not None and self._link.is_idle() and self._was_idle:
            self._link.close("it owns nothing any more")
            return False
        self._was_idle = self._link is not None and self._link.is_idle()  # what was said last is on its way
        return not self.owns

    def _drop(self) -> None:
        self._alarm.off(self._turn)
        if self._attempt is not None:
            self._attempt.end()
            self._attempt = None

    # The end.

    def _ended(self, link: Link, reason: str) -> None:
        left = self._left.pop(link, None)
        if left is not None:
            left.end()
            return
        self._link = None
        if self._probe is not None:
            self._probe.end()
            self._probe = None
        self.lost(link)
        if not self.owns:
            return
        self._alarm.off(self._turn)
        parts = link.parts
        log = self._context.log
        event, write = ("peer-left", log.info) if parts else ("peer-lost", log.warning)
        write(event, peer=str(self._member), its_worker=self.place.worker, reason=reason)
        if self._sought is not None:
            self.visit()
        elif self._turn.now - self._opened_at >= LASTING_S:
            self._failures = 0
        elif parts:
            self._alarm.set(self._turn, self._turn.now + self._pause_s(1), self._ring)
        else:
            self.failed(reason)

    def _pause_s(self, failures: int) -> float:
        """Return the seconds to wait before it is tried again, after so many failures in a row."""
        return delay(failures, self._context.machine.random(), cap_s=MAX_PAUSE_S)
