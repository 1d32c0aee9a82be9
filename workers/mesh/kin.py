"""The workers of one node as they know each other: by their lives, so that one who has the place of another is not it.

What became of a send goes the shortest way: who gave its value to a client tells the sender's worker, and not only the
owner of the topic, which may die with that. So when an owner is dead, whoever has sends waiting there asks all others
whether they have heard all that it said, and have told all that they know. What then is left was handed out by nobody,
except what the dead one itself was just doing: workers/stats/hands.py has that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from skywalker.members import Place
from workers.engine.loop import Turn


class Asking(Protocol):
    """What we ask of a sibling, and what it says of that: outbound.py has it."""

    @property
    def is_over(self) -> bool:
        """Whether the link has ended, and all that was handed out over it is decided."""

    def tell(self, kind: int, number: bytes, life: bytes) -> None:
        """Say something."""

    def taken(self, number: bytes) -> None:
        """Somebody has the value of that send."""

    def doubted(self, number: bytes) -> None:
        """Somebody may have it."""

    def doubt_all(self) -> None:
        """Somebody may have any of the sends that wait there."""

    def settle_all(self) -> None:
        """It is dead: take back what it gave us, or say to whom it may go."""


class Sibling(Protocol):
    """The link to one."""

    @property
    def outbound(self) -> Asking:
        """What we ask of it."""

    def catch_up(self) -> None:
        """Hear now what it has said already."""

    def hear_the_last(self) -> None:
        """Take in all that it said, as it is dead."""


class Kin:
    """All siblings of one worker; those that are dead as well, as long as something is to be told of them."""

    def __init__(self, turn: Turn) -> None:
        self.life = turn.hand.life
        self._turn = turn
        self._links: dict[bytes, Sibling] = {}
        self.ask_all: Callable[[Place | None, bytes, Callable[[bool], None]], None]
        """Has all others say once they have told all that they know of a dead one. Set by who has the links."""

    def add(self, life: bytes, link: Sibling) -> None:
        """There is a link to another one."""
        self._links = {each: known for each, known in self._links.items() if not known.outbound.is_over}
        self._links[life] = link

    def tell(self, home: bytes, kind: int, number: bytes, owner: bytes) -> None:
        """Say to the worker of a sender that its value is taken, or may be, which came here from the topic's owner."""
        link = self._links.get(home)
        if link is not None:
            link.outbound.tell(kind, number, owner)

    def catch_up(self) -> None:
        """Hear now what all have said already."""
        for link in [*self._links.values()]:
            link.catch_up()

    def taken(self, owner: bytes, number: bytes) -> None:
        """Somebody has the value of a send of ours, which waits at that owner."""
        link = self._links.get(owner)
        if link is not None:
            link.outbound.taken(number)

    def doubted(self, owner: bytes, number: bytes) -> None:
        """Somebody may have it, of whom nobody will hear."""
        link = self._links.get(owner)
        if link is not None:
            link.outbound.doubted(number)

    def read_hand(self, life: bytes) -> None:
        """A sibling is dead: find what it was just giving its clients of the sends here."""
        handed = self._turn.hand.of(life)
        if handed is None:
            for link in self._links.values():
                link.outbound.doubt_all()
            return
        for each in handed:
            if each.home == self.life:
                if each.is_taken:
                    self.taken(each.owner, each.send)
                else:
                    self.doubted(each.owner, each.send)

    def answer(self, life: bytes, done: Callable[[], None]) -> None:
        """Somebody asks of a dead one: tell all that is known, and then call `done`."""
        link = self._links.get(life)
        if link is not None:
            link.hear_the_last()
        self._turn.acks.append(_Answer(link, done))


class _Answer:
    """Given once the turn is written in which the last was heard: who was given a value in that has it by then."""

    def __init__(self, link: Sibling | None, done: Callable[[], None]) -> None:
        self._link = link
        self._done = done

    def acknowledge(self) -> None:
        if self._link is not None:
            self._link.outbound.settle_all()
        self._done()
