"""Tokens of whole columns of topics: MurmurHash3 x64 128 over their canonical MessagePack, in numpy.

The same number that `skywalker.ring.token_of` gives for one topic. The algorithm is Austin Appleby's, in the public
domain: https://github.com/aappleby/smhasher, MurmurHash3_x64_128. Seed 0, of the result the first half, signed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
        return _with_nulls(of_integers(numbers.to_numpy(zero_copy_only=False)), column)
    is_text = any(of(kind) for of in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
    if is_text:
        return _with_nulls(_of_bytes(column.cast(pa.large_string()), _text_headers), column)
    if any(of(kind) for of in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)):
        return _with_nulls(_of_bytes(column.cast(pa.large_binary()), _binary_headers), column)
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


def _with_nulls(tokens: Tokens, column: pa.Array) -> pa.Int64Array:
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(tokens, mask=nulls)


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


# Text and bytes: any length.


def _text_headers(sizes: Words) -> tuple[Words, Words]:
    """Return the MessagePack headers of strings of these sizes, as their bytes in a word, and how long each is."""
    short = sizes < 32
    words, lengths = _long_headers(sizes, 0xD9)
    return np.where(short, sizes | U64(0xA0), words), np.where(short, U64(1), lengths)


def _binary_headers(sizes: Words) -> tuple[Words, Words]:
    return _long_headers(sizes, 0xC4)


def _long_headers(sizes: Words, head: int) -> tuple[Words, Words]:
    """Return headers with the size in 1, 2 or 4 bytes, whose heads follow each other."""
    form = np.searchsorted(np.array([2**8, 2**16], U64), sizes, "right")
    widths = np.array([1, 2, 4], U64)[form]
    swapped = (sizes << (U64(64) - (widths << U64(3)))).byteswap()
    return (swapped << U64(8)) | (form.astype(U64) + U64(head)), widths + U64(1)


_KEPT: Final = np.array([2 ** (8 * count) - 1 for count in range(9)], U64)
"""By a count of bytes, what keeps so many of a word."""


def _of_bytes(column: pa.Array, headers: Callable[[Words], tuple[Words, Words]]) -> Tokens:
    """Return the tokens of a large_string or large_binary array, whatever stands where it is null."""
    _, offset_buffer, data = column.buffers()
    offsets = (
        np.frombuffer(offset_buffer, np.int64, len(column) + 1, 8 * column.offset)
        if len(column)
        else np.zeros(1, np.int64)
    )
    begin, end = int(offsets[0]), int(offsets[-1])
    # A copy, so that a word can be read wherever a topic has a byte.
    content = np.zeros(end - begin + 8, np.uint8)
    if end > begin:
        content[:-8] = np.frombuffer(data, np.uint8, end - begin, begin)
    words: Words = np.ndarray(len(content) - 7, "<u8", content, strides=(1,))
    tokens = np.empty(len(column), np.int64)
    for start in range(0, len(column), ROWS):
        bounds = offsets[start : start + ROWS + 1] - begin
        tokens[start : start + ROWS] = _hash_bytes(words, bounds, headers).view(np.int64)
    return tokens


def _hash_bytes(words: Words, bounds: Tokens, headers: Callable[[Words], tuple[Words, Words]]) -> Words:
    """Hash topics that are `bounds[i]` to `bounds[i + 1]` of the content; `words` has one for each of its bytes."""
    sizes = np.diff(bounds).view(U64)
    head, head_length = headers(sizes)
    lengths = sizes + head_length
    # Where the topic with its header would begin in the content.
    begins = bounds[:-1] - head_length.view(np.int64)
    first = head | (words[bounds[:-1]] << (head_length << U64(3)))
    blocks = (lengths >> U64(4)).view(np.int64)
    h1, h2 = np.zeros(len(lengths), U64), np.zeros(len(lengths), U64)
    rows = np.flatnonzero(blocks)
    for block in range(int(blocks.max())):
        rows = rows[blocks[rows] > block]
        at = begins[rows] + 16 * block
        k1, k2 = words[at] if block else first[rows], words[at + 8]
        h1[rows], h2[rows] = _after_block(h1[rows], h2[rows], k1, k2)
    rest = lengths & U64(15)
    at = begins + (blocks << 4)
    # A topic that ends before the word has nothing of it, and the content may end there too.
    last = len(words) - 1
    k1 = np.where(blocks == 0, first, words[np.minimum(np.maximum(at, 0), last)]) & _KEPT[np.minimum(rest, U64(8))]
    k2 = words[np.minimum(at + 8, last)] & _KEPT[np.maximum(rest, U64(8)) - U64(8)]
    return _finished(h1 ^ _mixed_first(k1), h2 ^ _mixed_second(k2), lengths)


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


def _after_block(h1: Words, h2: Words, k1: Words, k2: Words) -> tuple[Words, Words]:
    h1 ^= _mixed_first(k1)
    h1 = (_turned(h1, 27) + h2) * U64(5) + U64(0x52DCE729)
    h2 ^= _mixed_second(k2)
    h2 = (_turned(h2, 31) + h1) * U64(5) + U64(0x38495AB5)
    return h1, h2


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
