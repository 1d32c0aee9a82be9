"""Inputs made of others by chance: no coverage guides it, but the same seed makes the same inputs everywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tests.fuzz.targets import LONGEST

MOST_STEPS: Final = 6

_EDGES: Final = bytes(
    (0, 1, 2, 0x0F, 0x1F, 0x7F, 0x80, 0x90, 0x93, 0xA0, 0xC0, 0xC1, 0xC4, 0xD9, 0xDD, 0xDF, 0xE0, 0xFF)
)
"""Bytes at which something ends or begins in one of the dialects."""


def mutations(sources: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` inputs made of the sources, of which there is at least one; each is no longer than LONGEST."""
    luck = random.Random(seed)
    for _ in range(count):
        data = bytearray(luck.choice(sources))
        for _ in range(luck.randint(1, MOST_STEPS)):
            luck.choice(_STEPS)(data, luck, sources)
        yield bytes(data[:LONGEST])


def _flip(data: bytearray, luck: random.Random, _: Sequence[bytes]) -> None:
    if data:
        data[luck.randrange(len(data))] ^= 1 << luck.randrange(8)


def _edge(data: bytearray, luck: random.Random, _: Sequence[bytes]) -> None:
    if data:
        data[luck.randrange(len(data))] = luck.choice(_EDGES)


def _nudge(data: bytearray, luck: random.Random, _: Sequence[bytes]) -> None:
    if data:
        at = luck.randrange(len(data))
        data[at] = (data[at] + luck.choice((-1, 1))) & 0xFF


def _put_in(data: bytearray, luck: random.Random, _: Sequence[bytes]) -> None:
    at = luck.randint(0, len(data))
    data[at:at] = luck.randbytes(luck.choice((1, 1, 2, 4, 8)))


def _cut_out(data: bytearray, luck: random.Random, _: Sequence[bytes]) -> None:
    at = luck.randint(0, len(data))
    del data[at : at + luck.choice((1, 1, 2, 4, 8, 32))]


def _truncate(data: bytearray, luck: random.Random, _: Sequence[bytes]) -> None:
    del data[luck.randint(0, len(data)) :]


def _repeat(data: bytearray, luck: random.Random, _: Sequence[bytes]) -> None:
    at = luck.randint(0, len(data))
    part = data[at : at + luck.choice((1, 4, 16, 64))]
    data[at:at] = part * luck.choice((1, 2, 8))


def _splice(data: bytearray, luck: random.Random, sources: Sequence[bytes]) -> None:
    other = luck.choice(sources)
    at, begin = luck.randint(0, len(data)), luck.randint(0, len(other))
    end = luck.choice((begin + luck.choice((1, 4, 16, 64)), len(other)))
    data[at : at + luck.choice((0, end - begin))] = other[begin:end]


_STEPS: Final[Sequence[Callable[[bytearray, random.Random, Sequence[bytes]], None]]] = (
    _flip, _flip, _edge, _edge, _nudge, _put_in, _cut_out, _truncate, _repeat, _splice, _splice,
)  # fmt: skip
