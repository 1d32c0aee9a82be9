"""What each worker is just handing out, written where it outlives the worker.

A worker that is killed in the middle of a turn may have given values to clients of its own, and nobody else was told.
So, before it gives a client the value of a send that waits at another worker of the node, or has come from one, it
writes down which that is; and then, that the kernel has taken it. What goes to another node is written down as well.
Once all that follows is said, it wipes that out. When it is dead, the others read what is left: most of that is sure,
and only what was being written then, or went to another node, is not.
"""

from __future__ import annotations

import mmap
from typing import Final

ROOM: Final = 4096
"""Values that a worker may be handing out at once, and still knows which."""

LIFE: Final = 0
COUNT: Final = 1
HEAD: Final = 8
"""Cells that say whose they are, and how many entries follow. One too many means that some are not there."""

ENTRY: Final = 5
"""Cells of an entry: who lives where the topic is owned, its number there; who is the sender's home, its number there;
and whether the kernel surely has the value."""

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


class Hand:
    """That of one worker, which its core writes."""

    __slots__ = ("_hands", "life", "memory")

    def __init__(self, memory: memoryview[int], hands: Hands) -> None:
        self.memory = memory
        self.life = number_in(memory[LIFE])
        self._hands = hands

    def of(self, life: int) -> list[int] | None:
        """Return what a worker was handing out that is dead, as Hands does."""
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

    def of(self, life: int) -> list[int] | None:
        """Return the entries of the worker whose life this is, in a cell; None if some are not known any more."""
        for number in range(2 * self._parts):
            cells = self._hand(number)
            if cells[LIFE] != life:
                continue
            if cells[COUNT] > ROOM:
                return None
            found = cells[HEAD : HEAD + ENTRY * cells[COUNT]].tolist()
            return found if cells[LIFE] == life else None
        return None


def own_hand() -> Hand:
    """Return one that nobody else reads, for a worker without a node."""
    hands = Hands(1)
    hands.begin(0)
    return hands.hand(0)
