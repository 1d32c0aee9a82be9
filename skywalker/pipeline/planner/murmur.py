"""Tokens of whole columns of topics: MurmurHash3 x64 128 over their canonical MessagePack.

The same number that `skywalker.ring.token_of` gives for one topic, by mmh3. Text and bytes are hashed one by one, since
somebody has listed them, and there are only so many. Integers are made up by the billion, and numpy hashes 60 to 100
million of them a second where mmh3 does 2. The algorithm is Austin Appleby's, in the public domain:
https://github.com/aappleby/smhasher, MurmurHash3_x64_128. Seed 0, of the result the first half, signed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgpack
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skywalker.ring import token_of

U64: Final = np.uint64
Words: TypeAlias = NDArray[np.uint64]
Tokens: TypeAlias = NDArray[np.int64]

ROWS: Final = 1 << 14
"""Topics that are hashed at a time: what a dozen columns of them take stays in a core's cache."""

# The multipliers of the hash.
C1: Final = U64(0x87C37B91114253D5)
C2: Final = U64(0x4CF5AD432745937F)


def tokens_of(topics: pa.Array | NDArray[Any] | Sequence[Any]) -> pa.Int64Array:
    """Return the token of each topic of a column, and null for null, which is no topic here.

    Takes integers, text and bytes, also as a dictionary, as an Arrow array or whatever Arrow makes one of: numpy
    arrays of numbers, of text or of objects, lists. Raises TypeError if they are of any other type.
    """
    column = topics if isinstance(topics, pa.Array) else _column(topics)
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if pa.types.is_dictionary(kind):
        return tokens_of(column.dictionary).take(column.indices)
    if pa.types.is_integer(kind):
        numbers = column.fill_null(0) if column.null_count else column
        nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.array(of_integers(numbers.to_numpy(zero_copy_only=False)), mask=nulls)
    if any(of(kind) for of in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        return _of_text(column)
    if any(of(kind) for of in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)):
        return _one_by_one(column.to_pylist())
    raise TypeError(f"topics of type {kind} have no token here: they must be integers, text or bytes")


def of_integers(numbers: NDArray[np.integer[Any]]) -> Tokens:
    """Return the token of each integer of an array of one dimension, signed or unsigned of any width."""
    tokens = np.empty(len(numbers), np.int64)
    kind = U64 if numbers.dtype.kind == "u" else np.int64
    for start in range(0, len(numbers), ROWS):
        some: NDArray[Any] = numbers[start : start + ROWS].astype(kind, copy=False)
        tokens[start : start + ROWS] = _hash_integers(some.view(U64), _forms(some)).view(np.int64)
    return tokens


def _column(topics: NDArray[Any] | Sequence[Any]) -> pa.Array:
    try:
        try:
            return pa.array(topics)
        except OverflowError:
            return pa.array(topics, pa.uint64())  # what it takes is not found out by itself
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise TypeError(f"topics of one column must be of one type, integers, text or bytes: {error}") from error


# Integers: at most nine bytes, which are all tail.

# Where in the order of numbers each form begins: int64, int32, int16, int8, fixint, uint8, uint16, uint32, uint64.
_BEGINS: Final = np.array([-(2**31), -(2**15), -(2**7), -(2**5), 2**7, 2**8, 2**16, 2**32])
_HEADS: Final = np.array([0xD3, 0xD2, 0xD1, 0xD0, 0, 0xCC, 0xCD, 0xCE, 0xCF], U64)
_WIDTHS: Final = np.array([8, 4, 2, 1, 1, 1, 2, 4, 8], U64)
# A fixint is its own header.
_HEADERS: Final = np.array([1, 1, 1, 1, 0, 1, 1, 1, 1], U64)
# The ninth byte, where there is one, is the lowest of the number.
_NINTH: Final = np.where(_WIDTHS == 8, U64(0xFF), U64(0))


def _forms(numbers: NDArray[Any]) -> Any:
    """Return which form each number has, or one for all if they have the same, as neighbours mostly do."""
    # What is above the highest signed number has the same form as that.
    signed = np.minimum(numbers, U64(2**63 - 1)).astype(np.int64) if numbers.dtype == U64 else numbers
    first, last = np.searchsorted(_BEGINS, [signed.min(), signed.max()], "right")
    return first if first == last else np.searchsorted(_BEGINS, signed, "right")


def _hash_integers(words: Words, forms: Any) -> Words:
    widths, headers = _WIDTHS[forms], _HEADERS[forms]
    first = (words << (U64(64) - (widths << U64(3)))).byteswap()
    first <<= headers << U64(3)
    first |= _HEADS[forms]
    return _finished(_mixed_first(first), _mixed_second(words & _NINTH[forms]), widths + headers)


# Text and bytes, by mmh3.


def _of_text(column: pa.Array) -> pa.Int64Array:
    # A topic of text need not be UTF-8 to be one.
    texts = column.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return _one_by_one(None if text is None else text.decode(errors="surrogateescape") for text in texts)


def _one_by_one(topics: Iterable[str | bytes | None]) -> pa.Int64Array:
    pack = msgpack.Packer(unicode_errors="surrogateescape").pack
    return pa.array([None if topic is None else token_of(pack(topic)) for topic in topics], pa.int64())


# The hash.


def _turned(words: Words, bits: int) -> Words:
    """Rotate to the left, in place."""
    carried = words >> U64(64 - bits)
    words <<= U64(bits)
    words |= carried
    return words


def _mixed_first(words: Words) -> Words:
    """Mix the first word of a block, in place."""
    words *= C1
    _turned(words, 31)
    words *= C2
    return words


def _mixed_second(words: Words) -> Words:
    """Mix the second word of a block, in place."""
    words *= C2
    _turned(words, 33)
    words *= C1
    return words


def _avalanched(words: Words) -> Words:
    """In place."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        words ^= words >> U64(33)
        words *= U64(factor)
    words ^= words >> U64(33)
    return words


def _finished(h1: Words, h2: Words, lengths: Any) -> Words:
    h1 ^= lengths
    h2 ^= lengths
    h1 += h2
    h2 += h1
    return _avalanched(h1) + _avalanched(h2)
