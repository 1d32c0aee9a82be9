"""Tokens of columns against those of single topics, which the client and the node compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.limits import MAX_TOPIC
from skywalker.pipeline.planner.murmur import ROWS, of_integers, tokens_of
from skywalker.ring import token_of
from skywalker.wire import values
from tests.data import golden_tokens

# Where MessagePack goes over to another form, from both sides.
BORDERS = [0, 2**5, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**63]
EDGES = sorted({sign * (border + step) for border in BORDERS for step in (-2, -1, 0, 1) for sign in (1, -1)})
SIGNED = [edge for edge in EDGES if -(2**63) <= edge < 2**63]
UNSIGNED = [edge for edge in EDGES if 0 <= edge < 2**64] + [2**64 - 1, 2**64 - 2]
# And where headers and blocks of the hash end.
SIZES = [*range(100), *range(250, 260), 4092, 4093, 4094, MAX_TOPIC, 65535, 65536, 65537]

WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def one_by_one(topics: Sequence[Any]) -> list[int | None]:
    return [None if topic is None else token_of(values.canonical(values.pack(topic))) for topic in topics]


@pytest.mark.parametrize("golden", golden_tokens(), ids=lambda golden: golden.note)
def test_a_column_has_the_tokens_that_the_original_gives(golden: Any) -> None:
    topic = values.unpack(golden.topic)
    if topic is None:
        assert tokens_of([topic]).to_pylist() == [None]
    elif type(topic) not in (int, str, bytes):
        with pytest.raises(TypeError):
            tokens_of([topic])
    else:
        assert tokens_of([topic]).to_pylist() == [golden.token]


@pytest.mark.parametrize("kind", WIDTHS)
def test_integers_of_every_width_have_the_same_tokens_at_every_border(kind: str) -> None:
    limits = np.iinfo(kind)
    fitting = [edge for edge in {*SIGNED, *UNSIGNED} if limits.min <= edge <= limits.max]
    assert len(fitting) > 10
    expected = one_by_one(fitting)
    assert of_integers(np.array(fitting, kind)).tolist() == expected
    assert tokens_of(pa.array(fitting, pa.from_numpy_dtype(np.dtype(kind)))).to_pylist() == expected
    # Each alone takes the way of an array whose numbers all have one form.
    assert [of_integers(np.array([number], kind))[0] for number in fitting] == expected


def test_integers_in_the_byte_order_of_another_machine_and_out_of_every_other_place() -> None:
    assert of_integers(np.array(UNSIGNED, ">u8")).tolist() == one_by_one(UNSIGNED)
    assert of_integers(np.array(SIGNED, ">i8")[::-3]).tolist() == one_by_one(SIGNED[::-3])


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 70_000)))
def test_any_integers_and_nulls(topics: list[int | None]) -> None:
    assert tokens_of(pa.array(topics, pa.int64())).to_pylist() == one_by_one(topics)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_of_every_length_up_to_the_longest_topic_and_above(kind: pa.DataType) -> None:
    rng = np.random.default_rng(5)
    texts = [rng.integers(32, 127, size, np.uint8).tobytes().decode() for size in SIZES]
    assert tokens_of(pa.array(texts, kind)).to_pylist() == one_by_one(texts)
    assert tokens_of(pa.array(texts[::-1], kind)).to_pylist() == one_by_one(texts[::-1])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_of_every_length(kind: pa.DataType) -> None:
    data = [bytes(reversed(range(256))) * (size // 256 + 1) for size in SIZES]
    data = [each[:size] for each, size in zip(data, SIZES, strict=True)]
    assert tokens_of(pa.array(data, kind)).to_pylist() == one_by_one(data)


@given(st.lists(st.none() | st.text(st.characters(codec="utf-8")) | st.text("é€😀", max_size=90)))
def test_any_text_and_nulls(topics: list[str | None]) -> None:
    assert tokens_of(pa.array(topics, pa.string())).to_pylist() == one_by_one(topics)


@given(st.lists(st.none() | st.text("aé", max_size=40), max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_a_part_of_a_column_has_the_tokens_of_that_part(topics: list[str | None], begin: int, size: int) -> None:
    part = pa.array(topics, pa.string()).slice(min(begin, len(topics)), size)
    assert tokens_of(part).to_pylist() == one_by_one(part.to_pylist())
    numbers = pa.array([None if topic is None else len(topic) for topic in topics], pa.int32())
    part = numbers.slice(min(begin, len(topics)), size)
    assert tokens_of(part).to_pylist() == one_by_one(part.to_pylist())


def test_what_stands_under_a_null_does_not_matter() -> None:
    bitmap = pa.py_buffer(bytes([0b101]))
    texts = pa.Array.from_buffers(
        pa.string(), 3, [bitmap, pa.py_buffer(np.array([0, 1, 5, 6], np.int32)), pa.py_buffer(b"aJUNKb")]
    )
    assert tokens_of(texts).to_pylist() == one_by_one(["a", None, "b"])
    numbers = pa.Array.from_buffers(pa.int64(), 3, [bitmap, pa.py_buffer(np.array([7, 99, -7]))])
    assert tokens_of(numbers).to_pylist() == one_by_one([7, None, -7])


def test_text_that_is_not_utf_8_is_a_topic_too() -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"a\xff")]
    )
    assert tokens_of(text).to_pylist() == one_by_one(["a\udcff"])


def test_columns_longer_than_what_is_hashed_at_a_time() -> None:
    count = 2 * ROWS + 17
    numbers = [number * 7919 % 1_000_003 - 500_000 for number in range(count)]
    assert of_integers(np.array(numbers)).tolist() == one_by_one(numbers)
    texts = [None if number % 97 == 0 else f"{number}/" * (number % 11) for number in range(count)]
    assert tokens_of(texts).to_pylist() == one_by_one(texts)


def test_numpy_text_objects_and_dictionaries_are_columns_too() -> None:
    assert tokens_of(np.array(["a", "é" * 40])).to_pylist() == one_by_one(["a", "é" * 40])
    assert tokens_of(np.array(["a", None], object)).to_pylist() == one_by_one(["a", None])
    words = ["a", None, "b", "a"]
    assert tokens_of(pa.array(words).dictionary_encode()).to_pylist() == one_by_one(words)


@pytest.mark.parametrize(
    "topics",
    [[1.5], [True], [[1]], [{"a": 1}], pa.array([1.0, None]), np.array([1.5])],
    ids=["float", "bool", "list", "map", "nulls", "numpy"],
)
def test_a_column_of_another_type_is_refused_and_its_type_named(topics: Any) -> None:
    with pytest.raises(TypeError, match=r"topics of type (double|bool|list|struct).* must be integers, text or bytes"):
        tokens_of(topics)


@pytest.mark.parametrize("topics", [[1, "a"], [2**64], [-1, 2**64 - 1], [b"a", 1], [object()]])
def test_a_column_that_can_have_no_one_type_is_refused(topics: Any) -> None:
    with pytest.raises(TypeError, match="one column must be of one type"):
        tokens_of(topics)
