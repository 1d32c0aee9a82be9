"""Subscriptions that go from one worker of a node to another, with the connections that they are of.

Each ends at the one and begins at the other in a single moment of the worker that its values come from, which owns its
topic. That one says CUT to both, behind all that it has handed out to them before: so each value comes by one of them.

    the one that it comes to            the owner             the one that it leaves
      SUBSCRIBE, as ever          -->
      SPLIT                       -->
      it begins                   <--   CUT             -->     it ends

The owner may be either of them. If it dies or is replaced before it has said so, whatever it has handed out is for the
one, and what its successor does for the other: each of them hears all of the one before the other, and is counted by
that one before it hands out anything.
"""

from __future__ import annotations

from typing import Protocol

from workers.core._core import Core


class Traveller(Protocol):
    """A subscription that goes."""

    split_as: tuple[int, int] | None
    """The life of the worker that it leaves, and its number there."""

    def ends_here(self) -> None:
        """What comes from now on is the other's."""

    def begins_here(self) -> None:
        """What has come was the other's."""


class Splits:
    """Those of one worker that are on their way."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._count = 0
        self._all: dict[tuple[int, int], Traveller] = {}

    def leaves(self, traveller: Traveller) -> None:
        """One is to go, and gets its number."""
        self._count += 1
        traveller.split_as = self._core.life, self._count
        self._all[traveller.split_as] = traveller

    def comes(self, traveller: Traveller) -> None:
        """One comes that has its number."""
        assert traveller.split_as is not None
        self._all[traveller.split_as] = traveller

    def forget(self, traveller: Traveller) -> None:
        """One is on its way no more. If it ends before it has come, who waits for it to go must not do so for ever."""
        assert traveller.split_as is not None
        life, number = traveller.split_as
        if self._all.pop((life, number), None) is not None and life != self._core.life:
            self._core.cut(life, number)

    def tell(self, life: int, number: int) -> None:
        """Have the one of that number end at the worker of that life, which may be this one."""
        if life == self._core.life:
            self.cut(life, number)
        else:
            self._core.cut(life, number)

    def cut(self, life: int, number: int) -> None:
        """The moment has come for the one that leaves that worker so; it may have come before."""
        traveller = self._all.pop((life, number), None)
        if traveller is None:
            return
        if life == self._core.life:
            traveller.ends_here()
        else:
            traveller.begins_here()
