from __future__ import annotations

import math
import struct
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.errors import BadTimeout, BadTopic, LocalProtocolError
from skywalker.limits import MAX_DEPTH, MAX_TIMEOUT_MS, MAX_TOPIC
from skywalker.wire.values import canonical, pack, timeout_seconds, topic_bytes, unpack
from tests.data import golden_tokens
from tests.wire.encodings import array_header, bodies, encoded_values, map_header, mutated_bodies
from tests.wire.streams import length_of_first_value

extensions = st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=40))
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
keys = st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
python_values = st.recursive(
    scalars | extensions,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(keys, inner, max_size=20),
    max_leaves=20,
)


def encode_at_length(draw: st.DrawFn, value: Any) -> bytes:
    """Encode with headers that may be longer than needed, as some writers of MessagePack do."""
    match value:
        case bool() | None | float():
            return msgpack.packb(value)
        case int():
            fitting = [
                bytes((head,)) + value.to_bytes(width, "big", signed=signed)
                for head, width, signed in ALL_INTEGERS
                if (-(1 << 8 * width - 1) if signed else 0) <= value < (1 << 8 * width - signed)
            ]
            return draw(st.sampled_from([msgpack.packb(value), *fitting]))
        case str() | bytes() | msgpack.ExtType():
            return draw(st.sampled_from(encodings_of_blob(value)))
        case list():
            header = array_header(len(value), draw(container_widths(len(value))))
            return header + b"".join(encode_at_length(draw, element) for element in value)
        case dict():
            header = map_header(len(value), draw(container_widths(len(value))))
            pairs = (encode_at_length(draw, part) for pair in value.items() for part in pair)
            return header + b"".join(pairs)
    raise AssertionError(f"no encoding for {value!r}")


ALL_INTEGERS = [
    *((0xCC, 1, False), (0xCD, 2, False), (0xCE, 4, False), (0xCF, 8, False)),
    *((0xD0, 1, True), (0xD1, 2, True), (0xD2, 4, True), (0xD3, 8, True)),
]


def encodings_of_blob(value: str | bytes | msgpack.ExtType) -> list[bytes]:
    if isinstance(value, str):
        payload, kind, heads = value.encode(), b"", {0xD9: 1, 0xDA: 2, 0xDB: 4}
    elif isinstance(value, bytes):
        payload, kind, heads = value, b"", {0xC4: 1, 0xC5: 2, 0xC6: 4}
    else:
        payload, kind, heads = value.data, bytes((value.code,)), {0xC7: 1, 0xC8: 2, 0xC9: 4}
    long = [
        bytes((head,)) + len(payload).to_bytes(width, "big") + kind + payload
        for head, width in heads.items()
        if len(payload) < 1 << 8 * width
    ]
    return [msgpack.packb(value), *long]


def container_widths(count: int) -> st.SearchStrategy[int]:
    return st.sampled_from((0, 2, 4) if count < 16 else (2, 4))


# The canonical form.


@given(st.data(), python_values)
def test_every_encoding_of_a_value_has_the_canonical_form_that_the_msgpack_library_writes(
    data: st.DataObject, value: Any
) -> None:
    assert canonical(encode_at_length(data.draw, value)) == msgpack.packb(value)


@given(encoded_values)
def test_the_canonical_form_reads_as_the_same_value(data: bytes) -> None:
    try:
        value = unpack(data)
    except ValueError:
        return  # Python has no form for it; the other tests speak of the bytes
    assert repr(unpack(canonical(data))) == repr(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"\xa3foo", b"\xc4\x03foo"),
        (b"\x01", b"\xcb" + struct.pack(">d", 1.0)),
        (b"\x01", b"\xc3"),
        (b"\x00", b"\xc2"),
        (b"\xca" + struct.pack(">f", 1.5), b"\xcb" + struct.pack(">d", 1.5)),
        (b"\xcb" + struct.pack(">d", 0.0), b"\xcb" + struct.pack(">d", -0.0)),
        (b"\x82\x01\x02\x03\x04", b"\x82\x03\x04\x01\x02"),
        (b"\xc0", b"\x80"),
        (b"\x80", b"\x90"),
        (b"\xd4\x54\x00", b"\xd4\x55\x00"),
        (b"\xff", b"\xcc\xff"),
    ],
)
def test_values_of_different_types_are_different_topics(one: bytes, other: bytes) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("size", [31, 32, 255, 256, 65_000])
@pytest.mark.parametrize("make", [lambda n: "x" * n, bytes, lambda n: msgpack.ExtType(5, bytes(n))])
def test_the_shortest_header_is_chosen_at_every_boundary(make: Any, size: int) -> None:
    for length in (size - 1, size, size + 1):
        value = make(length)
        assert {canonical(encoding) for encoding in encodings_of_blob(value)} == {msgpack.packb(value)}


@pytest.mark.parametrize("count", [15, 16, 300])
def test_the_shortest_container_header_is_chosen_at_every_boundary(count: int) -> None:
    elements, pairs = b"\xcc\x01" * count, b"".join(b"\xcd" + n.to_bytes(2, "big") + b"\xc0" for n in range(count))
    assert canonical(array_header(count, 4) + elements) == msgpack.packb([1] * count)
    assert canonical(map_header(count, 4) + pairs) == msgpack.packb(dict.fromkeys(range(count)))


def test_a_nest_of_any_allowed_depth_has_a_canonical_form() -> None:
    assert canonical(b"\xdc\0\x01" * MAX_DEPTH + b"\xcc\x01") == b"\x91" * MAX_DEPTH + b"\x01"


@pytest.mark.parametrize("golden", golden_tokens(), ids=lambda golden: golden.note)
def test_the_topics_of_the_original_are_canonical(golden: Any) -> None:
    assert canonical(golden.topic) == golden.topic


def test_a_topic_is_measured_in_its_canonical_form() -> None:
    text = b"x" * (MAX_TOPIC - 3)
    longest = b"\xda" + len(text).to_bytes(2, "big") + text
    assert len(longest) == MAX_TOPIC
    assert topic_bytes(longest) == longest
    assert topic_bytes(b"\xdb" + len(text).to_bytes(4, "big") + text) == longest
    with pytest.raises(BadTopic, match=f"{MAX_TOPIC + 1} bytes, limit is {MAX_TOPIC}"):
        topic_bytes(b"\xda" + (len(text) + 1).to_bytes(2, "big") + text + b"x")


def test_a_topic_of_many_elements_is_as_long_as_any_other() -> None:
    elements = b"\xcc\x01" * (MAX_TOPIC - 3)
    assert len(topic_bytes(array_header(MAX_TOPIC - 3, 2) + elements)) == MAX_TOPIC
    for count in (MAX_TOPIC - 2, 10 * MAX_TOPIC):
        with pytest.raises(BadTopic, match=f"limit is {MAX_TOPIC}"):
            topic_bytes(array_header(count, 2) + b"\xcc\x01" * count)


# Python values.


@given(python_values)
def test_a_value_survives_the_way_to_bytes_and_back(value: Any) -> None:
    assert repr(unpack(pack(value))) == repr(value)


@given(st.binary(max_size=31))
def test_a_string_that_is_no_utf8_survives_the_way_to_python_and_back(text: bytes) -> None:
    data = bytes((0xA0 | len(text),)) + text
    assert pack(unpack(data)) == data


@given(bodies | mutated_bodies() | st.binary(max_size=60))
def test_unpacking_any_bytes_gives_a_value_or_a_value_error(data: bytes) -> None:
    try:
        value = unpack(data)
    except ValueError:
        return
    # Only what is one value in whole comes back as one.
    assert length_of_first_value(data) == len(data), value


@pytest.mark.parametrize("key", [1, 1.5, True, None, msgpack.Timestamp(1), (1, 2)], ids=repr)
def test_of_a_map_whose_keys_are_to_be_text_no_others_are_read(key: Any) -> None:
    for value in ({key: 1}, {"a": [{key: 1}]}):
        with pytest.raises(ValueError, match=r"key|form"):
            unpack(msgpack.packb(value), text_keys=True)
    assert unpack(msgpack.packb({"a": 1, b"b": {"c": 2}}), text_keys=True) == {"a": 1, b"b": {"c": 2}}


def test_a_tuple_goes_as_an_array() -> None:
    assert pack((1, (2,))) == b"\x92\x01\x91\x02"


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 2**64, -(2**63) - 1, [object()], {"a": object()}, "\ud800", _nested(2000), _endless()],
    ids=["object", "set", "too big", "too small", "in a list", "in a map", "half a surrogate pair", "deep", "endless"],
)
def test_what_has_no_messagepack_form_is_refused_with_its_type(value: Any) -> None:
    with pytest.raises(LocalProtocolError, match=type(value).__name__):
        pack(value)


# Timeouts.


def milliseconds(value: float) -> float:
    return timeout_seconds(msgpack.packb(value))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        (1, 0.001),
        (1000, 1.0),
        (MAX_TIMEOUT_MS, 86400.0),
        (0.0, 0.0),
        (-0.0, 0.0),
        (0.001, 0.001),
        (5e-324, 0.001),
        (1.0, 0.001),
        (1.0000001, 0.002),
        (999.5, 1.0),
        (float(MAX_TIMEOUT_MS), 86400.0),
        (MAX_TIMEOUT_MS - 0.5, 86400.0),
    ],
)
def test_a_timeout_is_milliseconds_with_fractions_rounded_up(value: float, seconds: float) -> None:
    assert milliseconds(value) == seconds


@given(st.integers(0, MAX_TIMEOUT_MS) | st.floats(0, MAX_TIMEOUT_MS))
def test_a_timeout_is_never_shorter_than_asked_and_at_most_a_millisecond_longer(value: float) -> None:
    seconds = milliseconds(value)
    whole = round(seconds * 1000)
    assert seconds == whole / 1000
    assert 0 <= whole - value <= 1  # 1 is what is left of a tiny fraction


@pytest.mark.parametrize(
    "value",
    [
        *(-1, -33, -(2**63), MAX_TIMEOUT_MS + 1, 2**32, 2**64 - 1),
        *(-0.001, -math.inf, math.inf, math.nan, MAX_TIMEOUT_MS + 0.001, 1e300),
        *(True, False, None, "1000", "", b"\x01", [1000], {}, msgpack.ExtType(5, b"\x01"), msgpack.Timestamp(1)),
    ],
    ids=repr,
)
def test_a_timeout_that_is_no_number_of_the_range_is_refused(value: Any) -> None:
    with pytest.raises(BadTimeout) as refused:
        timeout_seconds(msgpack.packb(value))
    assert refused.value.code == "bad-timeout"
