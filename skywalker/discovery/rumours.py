"""Which rings of other nodes are still to be read, for the addresses in them that we do not know.

A version names all that is in a ring, so each is read once, and from one node at a time: a
thousand nodes that hear of a new one do not ask each other a million times.
"""

from __future__ import annotations

from typing import Final

from skywalker.address import Address
from skywalker.discovery import pace

MAX_REMEMBERED: Final = 256
"""Versions known to be read. One that is forgotten is at most read again."""


class Rumours:
    """The versions that nodes told us of, and those whose members we know."""

    def __init__(self) -> None:
        self._told: dict[Address, str] = {}  # the last that the node at an address said, while it is connected
        self._unread: dict[Address, None] = {}  # in the order of telling
        self._read: dict[str, None] = {}
        self._asked: Address | None = None
        self._put_off: dict[Address, float] = {}  # when one that did not say all may be asked again

    def told(self, address: Address, version: str) -> None:
        """The node at `address` uses the ring of this version."""
        self._told[address] = version
        self._unread[address] = None

    def read(self, version: str) -> None:
        """The members of this version are known."""
        self._read.pop(version, None)
        self._read[version] = None
        if len(self._read) > MAX_REMEMBERED:
            del self._read[next(iter(self._read))]

    def next(self) -> Address | None:
        """Return whom to ask for its ring now, if anybody, until answered() or gone() says that it is over."""
        while self._unread and self._asked is None:
            address = next(iter(self._unread))
            del self._unread[address]
            if self._told[address] not in self._read:
                self._asked = address
                return address
        return None

    def answered(self, address: Address, version: str, now: float) -> None:
        """The node at `address` has said all that it will; of no version means that it was not all there is."""
        if version:
            self.read(version)
        if self._asked == address:
            self._asked = None
            if not version:
                self._put_off[address] = now + pace.ASK_AGAIN_S

    def lives(self, address: Address, now: float) -> None:
        """The node at `address` is there, so it can be asked again if it is time."""
        again_at = self._put_off.get(address)
        if again_at is not None and again_at <= now:
            del self._put_off[address]
            self._unread[address] = None

    def gone(self, address: Address) -> None:
        """The node at `address` is not connected any more."""
        self._told.pop(address, None)
        self._unread.pop(address, None)
        self._put_off.pop(address, None)
        if self._asked == address:
            self._asked = None

    def again(self) -> None:
        """Something that had been learned was forgotten: what is still told of it is to be read again."""
        self._read.clear()
        self._unread.update(dict.fromkeys(self._told))
