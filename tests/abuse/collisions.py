"""Names that hash alike, which anybody can make of a hash that has no secret."""

from __future__ import annotations

import struct

from skywalker.ring import token_of

MASK = (1 << 64) - 1

# MurmurHash3 x64 128.
C1, C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

# What Python mixes the elements of a tuple by, after xxHash.
PRIME_1, PRIME_2, PRIME_5 = 11400714785074694791, 14029467366897019727, 2870177450012600261


def colliding_topics(count: int) -> list[bytes]:
    """Return the encoded forms of so many topics that all have one token: binaries of 30 bytes.

    A block of 16 bytes takes the state of the hash to another, and for any two states there is one that does.
    """
    topics = []
    for number in range(count):
        head = b"\xc4\x1e" + struct.pack("<IQxx", 0, number)
        topics.append(head + _block(_absorb((0, 0), head), (1, 2)))
    assert len({token_of(topic) for topic in topics}) == 1
    return topics


def colliding_timestamps(count: int) -> list[bytes]:
    """Return so many encoded timestamps, the decoded forms of which have one hash in Python."""
    found: list[bytes] = []
    nanoseconds = 0
    while len(found) < count:
        # The hash is rotate(mixed + nanoseconds * PRIME_2) * PRIME_1, and `mixed` the same of the seconds.
        mixed = _rotated(12345 * pow(PRIME_1, -1, 1 << 64), -31) - nanoseconds * PRIME_2
        lane = (_rotated(mixed * pow(PRIME_1, -1, 1 << 64), -31) - PRIME_5) * pow(PRIME_2, -1, 1 << 64) & MASK
        seconds = lane - (lane >> 63 << 64)
        if 1 < abs(seconds) < (1 << 61) - 1:  # the hash of a greater integer is another
            found.append(b"\xc7\x0c\xff" + struct.pack(">Iq", nanoseconds, seconds))
        nanoseconds += 1
    return found


def _absorb(state: tuple[int, int], block: bytes) -> tuple[int, int]:
    h1, h2 = state
    k1, k2 = struct.unpack("<QQ", block)
    h1 ^= _rotated(k1 * C1, 31) * C2 & MASK
    h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DCE729) & MASK
    h2 ^= _rotated(k2 * C2, 33) * C1 & MASK
    h2 = ((_rotated(h2, 31) + h1) * 5 + 0x38495AB5) & MASK
    return h1, h2


def _block(state: tuple[int, int], wanted: tuple[int, int]) -> bytes:
    """Return the block that takes one state to the other."""
    (h1, h2), (w1, w2) = state, wanted
    fifth = pow(5, -1, 1 << 64)
    k1 = _rotated((w1 - 0x52DCE729) * fifth - h2, -27) ^ h1
    k2 = _rotated((w2 - 0x38495AB5) * fifth - w1, -31) ^ h2
    k1 = _rotated(k1 * pow(C2, -1, 1 << 64), -31) * pow(C1, -1, 1 << 64) & MASK
    k2 = _rotated(k2 * pow(C1, -1, 1 << 64), -33) * pow(C2, -1, 1 << 64) & MASK
    return struct.pack("<QQ", k1, k2)


def _rotated(number: int, by: int) -> int:
    """Return a number of 64 bits rotated to the left."""
    number &= MASK
    by %= 64
    return (number << by | number >> 64 - by) & MASK
