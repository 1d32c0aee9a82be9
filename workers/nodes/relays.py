"""Links to workers of other nodes over the links that siblings have, where there are very many workers.

Then worker i of one node and j of another have a connection if i and j are the same modulo the fewer workers that one
of both nodes has. Any other two are linked through a sibling of that one of them who wants it: so a worker has about
as many connections as there are nodes, or a few times that. Each side decides that alone; what comes is served.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final, Protocol

from skywalker.members import Member, Place
from skywalker.wire import values
from skywalker.wire.junction import NIL
from workers.calls.inquiries import Knock
from workers.calls.newcomer import Newcomer, introduced
from workers.calls.owner import Owner
from workers.engine.transport import Transport
from workers.mesh.link import Link
from workers.mesh.stream import Stream
from workers.nodes.attempt import Dialler, meet, question
from workers.nodes.context import PeerContext
from workers.nodes.peer_link import PeerLink, PeerLinks
from workers.nodes.relayed import AWAY, Relayed


class Welcomes(Protocol):
    """Who decides on a link that is to be made."""

    def meet(self, newcomer: Newcomer, wanted: Place, *, relayed: bool) -> tuple[dict[str, Any], bool]:
        """Return what one who wants the worker in a place is told of this one, and whether it is to be welcome."""

    def welcome(self, sock: Transport, unwritten: bytes, newcomer: Newcomer) -> None:
        """Make it."""


def relay_of(worker: int, workers: int, their_worker: int, their_workers: int) -> int:
    """Return which of our workers has the connection for one of ours to one of theirs: itself, or a sibling."""
    fewer = min(workers, their_workers)
    found = worker // fewer * fewer + their_worker % fewer
    return found if found < workers else found - fewer


class RelayedAttempt:
    """One attempt to be linked to the worker in `place` through a sibling."""

    is_asking = True
    is_shaking_hands = False

    def __init__(self, place: Place, by: PeerContext, dialler: Dialler, relay: int, sibling: Link) -> None:
        self._place = place
        self._by = by
        self._dialler = dialler
        self._relay = relay
        self._asked_at = by.turn.now
        self._stream: Stream | None = sibling.open_stream(self)

    def begin(self) -> None:
        """Ask."""
        assert self._stream is not None, "it begins once"
        self._stream.say(values.pack(question(self._by, self._place, 0.0)))

    def end(self) -> None:
        """Give it up; nobody is told."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.end()

    def heard(self, stream: Stream, word: bytes) -> None:
        if word == NIL:
            self._dialler.not_relayed()
            return
        try:
            met = meet(values.unpack(word, text_keys=True), self._place, self._dialler)
        except ValueError as error:
            self._dialler.failed(str(error))
            return
        if met is not None:
            self._stream = None
            relayed = Relayed(stream, self._by.turn, self._relay)
            self._dialler.opened(relayed, met, self._by.turn.now - self._asked_at, b"")

    def cut(self, stream: Stream) -> None:
        self._dialler.not_relayed()


class Passage:
    """What a sibling and a worker of another node say to each other through us."""

    __slots__ = ("_far", "_has_answered", "_has_said_its_last", "_near", "_opening", "_relays", "life", "place")

    def __init__(self, near: Stream, opening: bytes, place: Place, life: str, relays: Relays) -> None:
        """Its sibling begins with `opening`, and wants the worker in a place, of that `life` if it is named."""
        self.place = place
        self.life = life
        self._opening = opening
        self._near = near
        self._far: Stream | None = None
        self._has_answered = False
        self._has_said_its_last: Stream | None = None
        self._relays = relays
        near.listener = self

    def leads(self, link: Link) -> None:
        """Go on over a link to that worker."""
        self._far = link.open_stream(self)
        self._far.say(self._opening)

    def end(self, last: bytes | None = NIL) -> None:
        """Nothing more passes."""
        self._relays.forget(self)
        for stream in (self._near, self._far):
            if stream is not None:
                stream.end(last)

    def heard(self, stream: Stream, word: bytes) -> None:
        other = self._near if stream is self._far else self._far
        if other is None:
            self.end()  # it is wanted no more
            return
        self._has_answered = self._has_answered or stream is self._far
        other.say(word)
        if word in (NIL, AWAY):
            if self._has_said_its_last is other:
                self.end(None)
            else:
                self._has_said_its_last = stream

    def cut(self, stream: Stream) -> None:
        if stream is self._far and stream.link.parts and not self._has_answered:
            self._far = None  # nobody has heard what is said first
            self._relays.lead(self)
        else:
            self.end()


class Relays:
    """Those of one worker: what it has relayed by siblings, and what it relays."""

    def __init__(
        self, context: PeerContext, links: PeerLinks, peer: Callable[[Place], Owner | None], welcomes: Welcomes
    ) -> None:
        """`peer` returns the owner in a place, if it is on the ring, and not on this node."""
        self._context = context
        self._links = links
        self._peer = peer
        self._welcomes = welcomes
        self._are_wanted = False
        self._come: dict[int, Link] = {}  # siblings that were not asked yet whether they are open, by their slots
        self._last: dict[int, Link] = {}  # those that have come last
        self._open: dict[int, Link] = {}  # those that relay
        self._passing: dict[Passage, None] = {}
        self._waiting: dict[Place, dict[Passage, None]] = {}  # of those, for a link to who is wanted
        context.links.begin_to_relay(self._opened)

    # Ours.

    def attempt(self, place: Place, member: Member, dialler: Dialler) -> RelayedAttempt | None:
        """Return an attempt to be linked to a worker through a sibling; None if it is to be dialled."""
        node = self._context.node
        relay = relay_of(node.slot, node.workers, place.worker, member.workers)
        sibling = self._open.get(relay) if self._are_wanted and relay != node.slot else None
        if sibling is None or sibling.closed:
            return None
        return RelayedAttempt(place, self._context, dialler, relay, sibling)

    def follow(self, *, are_wanted: bool) -> None:
        """The workers of other nodes are more than may each have a connection with this one, or are not."""
        self._are_wanted = are_wanted
        self._ask()

    def has_come(self, slot: int, sibling: Link) -> None:
        """There is another sibling in a slot. Once it answers, what passes the one before goes by it."""
        self._come[slot] = self._last[slot] = sibling
        self._ask()

    def _ask(self) -> None:
        """Ask siblings that have come something, if they are to relay: as long as one opens, it may hear nothing.

        Only then: one that is being replaced may be used until it is answered.
        """
        if not self._are_wanted and all(link.relayed is None for link in self._links):
            return
        come, self._come = self._come, {}
        for slot, sibling in come.items():
            if not sibling.closed:
                sibling.ask_census(Knock(functools.partial(self._is_open, slot, sibling), _nothing), NIL)

    def _is_open(self, slot: int, sibling: Link) -> None:
        if self._last[slot] is not sibling:
            return  # it stood still until another one had its place
        self._open[slot] = sibling
        for link in self._links:
            if link.relayed is not None and link.relayed.relay == slot:
                link.relayed.go_by(sibling, {**question(self._context, link.place, 0.0), "to": link.life})

    # Those of others.

    def _opened(self, link: Link, number: int, word: bytes) -> None:
        """The other end of a link opens a stream. Raises ValueError if that makes no sense."""
        options: Any = values.unpack(word, text_keys=True)
        if not isinstance(options, dict):
            return  # the last words of one that has ended here
        stream = Stream(link, number, _NOBODY)
        if link.life:
            wanted = Place(str(options.get("node")), options["worker"])
            passage = Passage(stream, word, wanted, str(options.get("to", "")), self)
            self._passing[passage] = None
            self.lead(passage)
        else:
            self._came(stream, options)

    def _came(self, stream: Stream, options: dict[str, Any]) -> None:
        place = stream.link.place
        newcomer, wanted = introduced("", options, may_answer=True)
        if place is None or newcomer.place.node != place.node:
            raise ValueError("it speaks for another node")
        newcomer = newcomer._replace(name=f"{newcomer.place.node}/{newcomer.place.worker} by {place.worker}")
        if "to" in options:
            for found in self._links.to(newcomer.place):
                if found.life == newcomer.life and found.relayed is not None and found.relayed.relay is None:
                    found.relayed.goes_on(stream, operator.index(options["way"]))
                    return
            stream.end()
            return
        met, is_wanted = self._welcomes.meet(newcomer, wanted, relayed=True)
        stream.say(values.pack(met))
        if is_wanted:
            self._welcomes.welcome(Relayed(stream, self._context.turn, None), b"", newcomer)
        else:
            stream.end()

    def lead(self, passage: Passage) -> None:
        """Have one go on over a link to who is wanted, or wait for that."""
        found, owner = self._way_of(passage), self._peer(passage.place)
        if found is not None:
            passage.leads(found.link)
        elif owner is None or self._links.to_ask(passage.place) is not None:
            passage.end()
        else:
            self._waiting.setdefault(passage.place, {})[passage] = None
            owner.wanted()

    def _way_of(self, passage: Passage) -> PeerLink | None:
        for link in self._links.to(passage.place):
            is_wanted = link.life == passage.life if passage.life else link.can_be_asked
            if is_wanted and link.can_relay:
                return link
        return None

    def awaits(self, place: Place) -> bool:
        """Return whether something waits for a link to there."""
        return place in self._waiting

    def met(self, place: Place) -> None:
        """There is one."""
        for passage in self._waiting.pop(place, ()):
            self.lead(passage)

    def forget(self, passage: Passage) -> None:
        """One has ended."""
        self._passing.pop(passage, None)
        waiting = self._waiting.get(passage.place)
        if waiting is not None:
            waiting.pop(passage, None)
            if not waiting:
                del self._waiting[passage.place]

    @property
    def passing(self) -> int:
        """How many pass through this worker."""
        return len(self._passing)

    def stop(self) -> None:
        """Let go of what passes, as this worker ends: whoever can goes another way."""
        for passage in [*self._passing]:
            passage.end(None)


def _nothing() -> None:
    """One that is dead will be replaced."""


class _Nobody:
    """Who hears a stream while it is not known yet who does."""

    def heard(self, stream: Stream, word: bytes) -> None:
        raise AssertionError("nothing is heard meanwhile")

    def cut(self, stream: Stream) -> None:
        pass


_NOBODY: Final = _Nobody()
