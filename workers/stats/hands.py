"""What each worker is just handing out, written where it outlives the worker.

A worker that is killed in the middle of a turn may have given values to clients of its own, and nobody else was told.
So, before it gives a client the value of a send that waits at another worker of the node, or has come from one, it
writes down which that is; and then, that the kernel has taken it. Once all that follows is said, it wipes that out.
When it is dead, the others read what is left: most of that is sure, and only what was being written then is not.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Final

from workers.stats import _cells

ROOM: Final = 4096
"""Values that a worker may be handing out at once, and still knows which."""

LIFE: Final = 0
COUNT: Final = 1
HEAD: Final = 8
"""Cells that say whose they are, and how many entries follow. One too many means that some are not there."""

OWNER: Final = 0
LISTENER: Final = 1
HOME: Final = 2
SEND: Final = 3
TAKEN: Final = 4
ENTRY: Final = 5
"""Cells of an entry: who lives where the topic is owned, its number there; who is the sender's home, and its number."""

CELLS: Final = HEAD + ENTRY * ROOM
CELL: Final = 8
"""Bytes of one."""

LONG: Final = 9
"""Bytes of a number as workers say it: a byte that tells whose kind it is, and eight of which the first is 0."""

NOBODY: Final = b""


def life_of(number: int) -> bytes:
    """Return the name of the worker that was forked as the node's so many-th, as workers say it."""
    return b"\xcf" + number.to_bytes(LONG - 1, "big")


def cell_of(number: bytes) -> int:
    """Return a number, or a life, as a cell holds it; 0 if it is nobody's."""
    if len(number) != LONG:
        return 0
    cell = number[0] & 0x7F
    at = 2
    while at < LONG:
        cell = cell << 8 | number[at]
        at += 1
    return cell


def number_in(cell: int) -> bytes:
    """Return what cell_of() was given."""
    return bytes((0x80 | cell >> 56, 0)) + (cell & (1 << 56) - 1).to_bytes(LONG - 2, "big") if cell else NOBODY


@dataclass(frozen=True, slots=True)
class Handed:
    """A value that a worker was handing out when it died."""

    owner: bytes
    listener: bytes
    home: bytes
    send: bytes
    is_taken: bool
    """Whether the kernel surely had it."""


class Hand:
    """That of one worker. `cells` is used as Counters does."""

    __slots__ = ("_hands", "cells", "count", "life", "memory")

    def __init__(self, memory: memoryview[int], hands: Hands) -> None:
        self.memory = memory
        self.cells = _cells.cells_in(memory)
        self.life = number_in(memory[LIFE])
        self.count = 0
        self._hands = hands

    def add(self, owner: bytes, listener: bytes, home: bytes, send: bytes) -> None:
        """A value is about to be written."""
        count = self.count
        if count < ROOM:
            at = HEAD + ENTRY * count
            self.cells[at + OWNER] = cell_of(owner)
            self.cells[at + LISTENER] = cell_of(listener)
            self.cells[at + HOME] = cell_of(home)
            self.cells[at + SEND] = cell_of(send)
            self.cells[at + TAKEN] = 0
            self.count += 1
            self.cells[COUNT] = self.count
        else:
            self.cells[COUNT] = ROOM + 1

    def taken(self, since: int) -> None:
        """The kernel has taken all of them from that one on."""
        while since < self.count:
            self.cells[HEAD + ENTRY * since + TAKEN] = 1
            since += 1

    def clear(self) -> None:
        """All that follows from them is said."""
        self.cells[COUNT] = self.count = 0

    def of(self, life: bytes) -> list[Handed] | None:
        """Return what a worker was handing out that is dead; None if that is not known any more."""
        return self._hands.of(life)


class Hands:
    """Those of a node. Made by the supervisor before it forks; a part of the shared counters has one, and a spare.

    The spare is so that what a dead worker wrote is there for long, though the next one of its part has begun.
    """

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._memory = mmap.mmap(-1, CELL * CELLS * 2 * parts)
        self._cells = memoryview(self._memory).cast("q")
        self._lives = 0
        self._at: dict[int, int] = {}  # which of both each part has

    def begin(self, part: int) -> None:
        """A worker is about to be forked, and to have that part."""
        self._lives += 1
        self._at[part] = self._parts - self._at[part] if part in self._at else 0
        memory = self._hand(self._at[part] + part)
        memory[COUNT] = 0
        memory[LIFE] = cell_of(life_of(self._lives))

    def _hand(self, number: int) -> memoryview[int]:
        return self._cells[number * CELLS : (number + 1) * CELLS]

    def hand(self, part: int) -> Hand:
        """Return that of the worker with this part."""
        return Hand(self._hand(self._at[part] + part), self)

    def life(self, part: int) -> str:
        """Return the life of the worker with this part, in hexadecimal digits."""
        return number_in(self._hand(self._at[part] + part)[LIFE]).hex()

    def of(self, life: bytes) -> list[Handed] | None:
        """Return what the worker of that life was handing out; None if some of it is not known any more."""
        for number in range(2 * self._parts):
            cells = self._hand(number)
            if cells[LIFE] != cell_of(life):
                continue
            if cells[COUNT] > ROOM:
                return None
            ends = HEAD + ENTRY * cells[COUNT]
            found = [_entry(cells[at : at + ENTRY]) for at in range(HEAD, ends, ENTRY)]
            return found if cells[LIFE] == cell_of(life) else None
        return None


def _entry(cells: memoryview[int]) -> Handed:
    owner, listener, home, send = (number_in(cells[at]) for at in (OWNER, LISTENER, HOME, SEND))
    return Handed(owner, listener, home, send, bool(cells[TAKEN]))


def own_hand() -> Hand:
    """Return one that nobody else reads, for a worker without a node."""
    hands = Hands(1)
    hands.begin(0)
    return hands.hand(0)
