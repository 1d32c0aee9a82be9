"""Subscriptions that go from one worker of a node to another, with the connections that they are of.

Each ends at the one and begins at the other in a single moment of the worker that its values come from, which owns its
topic. That one says CUT to both, behind all that it has handed out to them before: so each value comes by one of them.

    the one that it comes to            the owner             the one that it leaves
      SUBSCRIBE, as ever          -->
                                  <--   SUBSCRIBED
      SPLIT                       -->
      it begins                   <--   CUT             -->     it ends

The owner may be either of them. If it dies or is replaced meanwhile, its successor is asked in its place; and the last
word of a dead one ends what has not been told to.
"""

from __future__ import annotations

from typing import Protocol

from workers.core._core import Core


class Traveller(Protocol):
    """A subscription that comes from another worker of this node, or goes to one."""

    split: tuple[int, int] | None
    """As which it does: the life of the worker that it leaves, and its number there."""

    def departs(self) -> None:
        """It ends here: what comes from now on is the other's."""

    def arrives(self) -> None:
        """It begins here: what has come was the other's."""


class Splits:
    """Those of one worker."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._count = 0
        self._all: dict[tuple[int, int], Traveller] = {}

    def depart(self, traveller: Traveller) -> None:
        """One is to go."""
        self._count += 1
        traveller.split = self._core.life, self._count
        self._all[traveller.split] = traveller

    def arrive(self, traveller: Traveller) -> None:
        """One comes that is split already."""
        assert traveller.split is not None
        self._all[traveller.split] = traveller

    def forget(self, traveller: Traveller) -> None:
        """One does so no more; if it was to come, it may end where it leaves."""
        assert traveller.split is not None
        life, number = traveller.split
        if self._all.pop((life, number), None) is not None and life != self._core.life:
            self.tell(life, number)

    def tell(self, life: int, number: int) -> None:
        """Have the one of that number end at the worker of that life, which may be this one."""
        if life == self._core.life:
            self.cut(life, number)
        else:
            self._core.cut(life, number)

    def cut(self, life: int, number: int) -> None:
        """The moment has come for the one that leaves that worker so; it may be here no more."""
        traveller = self._all.pop((life, number), None)
        if traveller is None:
            return
        if life == self._core.life:
            traveller.departs()
        else:
            traveller.arrives()
