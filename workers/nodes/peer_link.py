"""A link to a worker of another node, which one of both has made: what both ask goes over it, in both directions.

A node of an earlier release makes one of its own to ask, and does not answer over that to what we ask.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, Protocol

from skywalker.members import Place
from workers.calls.owner import GRACE_S
from workers.engine.loop import Alarm
from workers.engine.transport import Transport
from workers.mesh.link import Link
from workers.nodes.context import PeerContext
from workers.nodes.probe import Probe
from workers.nodes.relayed import Relayed

FINISH_S: Final = 1.0
"""Seconds for the other end to close one that we have finished with; it takes a round trip."""

IDLE: Final = "nobody has used it"

ENDS: Final = "this node ends"


class Way(enum.Enum):
    """Who asks over it."""

    WE_ASK = enum.auto()
    IT_ASKS = enum.auto()
    BOTH = enum.auto()


class Asker(Protocol):
    """Who asks over it."""

    owns: bool

    def retired(self, link: PeerLink) -> None:
        """The worker at the other end hands out nothing any more: it has a successor."""

    def ended(self, link: PeerLink, reason: str) -> None:
        """It has."""

    def lost(self, carrier: Link) -> None:
        """Nothing can be asked over it any more."""

    def yielded(self, link: PeerLink) -> None:
        """Another one asks over it from now on: who has the same place, and is reached elsewhere."""


class PeerLink:
    """One of them, to the worker in `place` that lives this `life`."""

    __slots__ = (
        "_alarm", "_context", "_has_retired", "_has_settled", "_is_over", "_links", "_name", "_probe", "_reason",
        "_was_crossed", "_was_unused", "age_s", "asker", "born", "came", "has_successor", "has_to_settle", "is_left",
        "life", "link", "place", "relayed", "speaks_for_place", "way",
    )  # fmt: skip

    def __init__(
        self,
        transport: Transport,
        name: str,
        place: Place,
        life: str,
        way: Way,
        context: PeerContext,
        links: PeerLinks,
        *,
        came: bool,
        age_s: float = 0.0,
        speaks_for_place: bool = True,
        grace_s: float = GRACE_S,
        unwritten: bytes = b"",
        heard: bytes = b"",
    ) -> None:
        """The other end, which was so old as it asked or answered, has made it if it `came`; its `name` is for the log.

        What is `unwritten` is still to be said to it, and `heard` was said already. One that is being replaced no more
        `speaks_for_place`. The last word on a call comes within `grace_s`.
        """
        self.place = place
        self.life = life
        self.way = way
        self.came = came
        self.relayed = transport if isinstance(transport, Relayed) else None
        self.age_s = age_s
        self.born = context.turn.now - age_s
        self.speaks_for_place = speaks_for_place
        self.has_successor = False
        self.is_left = False  # we ask over another one
        self.has_to_settle = False  # the other end waits for us to have said what we subscribe to
        self.asker: Asker | None = None
        self._name = name
        self._context = context
        self._links = links
        self._is_over = False  # nothing more is said to it
        self._reason = ""  # if that is ours
        self._has_retired = False  # it has said so
        self._has_settled = self._was_unused = self._was_crossed = False
        self._alarm = Alarm()
        self.link = context.links.abroad(
            transport,
            None if way is Way.IT_ASKS else place,
            self._ended,
            self._settled,
            self._retired,
            both_ways=way is Way.BOTH,
            grace_s=grace_s,
            unwritten=unwritten,
            heard=heard,
        )
        if self.relayed is not None:
            self.relayed.serves(self.link)
        # Its listeners would take values that nobody gets.
        self._probe = Probe(self.link, context.turn, self._is_doubtful)
        links.add(self)
        self._alarm.set(context.turn, context.turn.now + context.idle_s, self._end_if_idle)
        if came and self._is_on_the_ring():
            context.barrier.linked(self.link)
        self._probe.look()

    @property
    def asks_us(self) -> bool:
        """Whether the other end does."""
        return self.way is not Way.WE_ASK

    @property
    def is_ours(self) -> bool:
        """Whether we have made it, for both to ask over it, and it still is to be."""
        return self.way is Way.BOTH and not (self.came or self._is_over or self.link.closed)

    @property
    def can_be_asked(self) -> bool:
        """Whether the worker at the other end is who owns what its place does, and can be asked over this link."""
        is_owner = self.speaks_for_place and not (self.has_successor or self.is_left)
        return self.way is not Way.IT_ASKS and is_owner and not self._is_over and not self.link.closed

    @property
    def can_relay(self) -> bool:
        """Whether what others say to each other can pass over it: over a connection, to who knows of that."""
        return self.relayed is None and self.way is Way.BOTH and not (self._is_over or self.link.closed)

    def succeeded(self) -> None:
        """Another worker has its place on its node. It may be done with, or have clients for a while yet."""
        self.has_successor = True
        self._probe.look()

    def insists(self) -> bool:
        """The worker at the other end has its place, though another one seemed to have come after it, or was asked
        meanwhile; return whether it can be asked over this.

        Two that came while we stood still are heard at once, each with the age that it had as it came. And one that is
        to be the successor may die before it is.
        """
        if not self._has_retired:
            self.has_successor = self.is_left = False
        return self.can_be_asked

    def leave(self) -> None:
        """Ask nothing more over it, and end it once all that it gave us is decided."""
        self.is_left = True
        self._probe.look()

    def ring_changed(self) -> None:
        """See whether its node is still on the ring."""
        if not self._is_on_the_ring():
            self._context.barrier.gone(self.link)
        self._probe.look()

    def look(self) -> None:
        """See whether it is in doubt."""
        self._probe.look()

    def crossed(self) -> None:
        """The other end makes another, though this is ours. It may not have known; if it insists, see if it lives."""
        if self._was_crossed:
            self._probe.ask()
        self._was_crossed = True

    def _is_on_the_ring(self) -> bool:
        return self.place.node in self._context.node.snapshot.by_id

    def _is_off(self) -> bool:
        return self.asker is not None and not self.asker.owns

    def _is_doubtful(self) -> bool:
        """Whether nobody else would notice that the other end is gone. One over which nothing waits is ended, then."""
        if self._is_over or not (self.has_successor or self.is_left or self._is_off() or not self._is_on_the_ring()):
            return False
        is_unused = self.way is not Way.IT_ASKS and self.link.is_unused()
        if is_unused and self._was_unused:
            self.finish("it owns nothing any more")
            return False
        self._was_unused = is_unused  # what was said last is on its way
        return True

    # Its end.

    def retire(self) -> None:
        """Have the other end ask our successor, and have this link for what our clients ask."""
        if self.way is Way.BOTH:
            self.link.retire()

    def hand_over(self) -> None:
        """Have it ask another, once all that it was given has an outcome, and all that was said is written."""
        goes_on = self.way is Way.BOTH and not self._context.standing.leaving
        if self.asks_us and not goes_on and not self._is_needed() and self._is_said():
            self._finish()

    def is_handed_over(self) -> bool:
        """Return whether the other end is through with us, as we leave."""
        return not self.asks_us or (self._is_needed() and self._is_said())

    def _is_needed(self) -> bool:
        """Whether it stays until we end: for our clients, who subscribe until then, or for what passes over it."""
        return self.link.subscribes or bool(self.link.streams)

    def _is_said(self) -> bool:
        link = self.link
        is_written = not link.unsent and (self.relayed is None or self.relayed.is_read)
        return is_written and link.is_decided() and link.asks_nothing()

    def _end_if_idle(self) -> None:
        """End it if neither side has used it for long. What the other end asks meanwhile, it asks anew elsewhere."""
        turn, idle_s = self._context.turn, self._context.idle_s
        # Whoever opens waits for what the other end has to say.
        is_needed = self.has_to_settle or self._context.standing.opening
        due = (turn.now if is_needed else min(self.link.last_used(), turn.now)) + idle_s
        if self.link.is_unused() and due <= turn.now:
            self.finish(IDLE)
        else:
            self._alarm.set(turn, due, self._end_if_idle)

    def finish(self, reason: str) -> None:
        """End it as planned: nothing waits on either side."""
        if not self._is_over:
            self._reason = reason
            turn = self._context.turn
            self._alarm.set(turn, turn.now + FINISH_S, lambda: self.close(reason))
            self._finish()

    def _finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            if self.asker is not None:
                self.asker.lost(self.link)
            self.link.finish()

    def stop(self) -> None:
        """End it now, after what was written over it, because this worker ends."""
        self._reason = ENDS
        self._finish()
        self.close(self._reason)

    def close(self, reason: str) -> None:
        """End it."""
        self.link.close(reason)

    @property
    def is_planned(self) -> bool:
        """Whether either end has ended it on purpose; one that came and never settled was given up as it was made."""
        return self._is_over or self.link.parts or (self.came and not self._has_settled)

    def _settled(self, link: Link) -> None:
        self._has_settled = True
        self._context.barrier.settled(link, self.place if self.speaks_for_place else None)

    def _retired(self) -> None:
        self._has_retired = True
        self.succeeded()
        if self.asker is not None:
            self.asker.retired(self)

    def _ended(self, link: Link, reason: str) -> None:
        context, reason = self._context, self._reason or reason
        self._probe.end()
        del self._probe  # the two refer to each other
        self._alarm.off(context.turn)
        context.barrier.gone(link)
        self._links.remove(self)
        asker, self.asker = self.asker, None
        if asker is not None:
            asker.ended(self, reason)
        if self.asks_us and (asker is None or not asker.owns):
            context.log.info("guest-left", peer=self._name, reason=reason)


class PeerLinks:
    """All of one worker, by whose they are."""

    def __init__(self) -> None:
        self._by_place: dict[Place, list[PeerLink]] = {}
        self.came_count = 0
        """How many connections the other ends have made."""

    def __iter__(self) -> Iterator[PeerLink]:
        """Go through those that there are now, whatever becomes of them meanwhile."""
        return iter([link for links in self._by_place.values() for link in links])

    def add(self, link: PeerLink) -> None:
        """There is another."""
        self._by_place.setdefault(link.place, []).append(link)
        self.came_count += link.came and link.relayed is None

    def remove(self, link: PeerLink) -> None:
        """It has ended."""
        links = self._by_place[link.place]
        links.remove(link)
        self.came_count -= link.came and link.relayed is None
        if not links:
            del self._by_place[link.place]

    def to(self, place: Place) -> list[PeerLink]:
        """Return those to who is or was in a place: several if some of them are being replaced."""
        return [*self._by_place.get(place, ())]

    def to_ask(self, place: Place) -> PeerLink | None:
        """Return that by which the owner in a place can be asked."""
        return next((link for link in self.to(place) if link.can_be_asked), None)
