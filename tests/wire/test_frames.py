from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.limits import MAX_ARGUMENTS, MAX_DEPTH, MAX_FRAME
from skywalker.wire.frames import BadFrame, split
from tests.data import golden_frames
from tests.wire.encodings import (
    array_header,
    bodies,
    encoded_values,
    map_header,
    mutated_bodies,
)
from tests.wire.streams import (
    assert_decodes_however_cut,
    framed,
    is_one_array,
    length_of_first_value,
)

any_bodies = bodies | mutated_bodies() | st.binary(max_size=60)


def only_frame(body: bytes) -> list[bytes]:
    """Return the one frame that this body makes."""
    frames, rest = split(framed(body))
    assert rest == b""
    assert len(frames) == 1
    return frames[0]


def bad_frame(body: bytes) -> BadFrame:
    frame = only_frame(body)
    assert isinstance(frame, BadFrame), f"{body!r} passed as well-formed"
    return frame


# Cutting.


def test_golden_frames_decode_whole_byte_by_byte_trailing_and_truncated() -> None:
    goldens = golden_frames()
    expected = [list(map(msgpack.packb, golden.elements)) for golden in goldens]
    assert_decodes_however_cut(split, [golden.wire for golden in goldens], expected)


@given(st.lists(any_bodies, max_size=5))
def test_bodies_decode_whole_byte_by_byte_trailing_and_truncated(some_bodies: list[bytes]) -> None:
    assert_decodes_however_cut(split, list(map(framed, some_bodies)), list(map(only_frame, some_bodies)))


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, MAX_FRAME - 1, MAX_FRAME])
def test_a_frame_of_any_size_that_the_length_can_say_is_read(size: int) -> None:
    body = (
        (b"\x91\xda" + (size - 4).to_bytes(2, "big") + bytes(size - 4)) if size > 4 else b"\x91" * (size - 1) + b"\x90"
    )
    assert len(body) == size
    frames, rest = split(framed(body) + b"\xff")
    assert (len(frames), rest) == (1, b"\xff")


# Elements.


@given(st.lists(encoded_values, min_size=1, max_size=MAX_ARGUMENTS), st.sampled_from((0, 2, 4)))
def test_elements_are_the_very_bytes_that_came(elements: list[bytes], width: int) -> None:
    assert only_frame(array_header(len(elements), width) + b"".join(elements)) == elements


@given(st.lists(encoded_values, min_size=MAX_ARGUMENTS + 1, max_size=15))
def test_what_follows_the_elements_of_the_longest_call_comes_as_one(elements: list[bytes]) -> None:
    frame = only_frame(array_header(len(elements), 0) + b"".join(elements))
    assert frame == [*elements[:MAX_ARGUMENTS], b"".join(elements[MAX_ARGUMENTS:])]


def test_frames_hold_copies_and_not_the_whole_read() -> None:
    frames, rest = split(framed(b"\x91\xa3foo") * 2 + b"\0")
    assert [type(element) for frame in frames for element in frame] == [bytes, bytes]
    assert type(rest) is bytes


# Well-formedness.


@given(any_bodies)
def test_the_msgpack_library_agrees_on_what_is_well_formed(body: bytes) -> None:
    frame = only_frame(body)
    if isinstance(frame, BadFrame):
        assert not is_one_array(body), frame.reason
    else:
        assert is_one_array(body)
        assert body.endswith(b"".join(frame))
        for element in frame[:MAX_ARGUMENTS]:
            assert length_of_first_value(element) == len(element)


@given(st.lists(st.sampled_from([*range(0x80, 0xE0), 0, 1, 2]), max_size=40).map(bytes))
def test_the_msgpack_library_agrees_on_piles_of_headers(body: bytes) -> None:
    assert isinstance(only_frame(body), BadFrame) != is_one_array(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it is empty"),
        (b"\x90", "the array is empty"),
        (b"\xdc\0\0", "the array is empty"),
        (b"\xc0", "it is not an array"),
        (b"\x81\x01\x02", "it is not an array"),
        (b"\xa3foo", "it is not an array"),
        (b"\x91", "ends within a value"),
        (b"\xdc", "ends within a value"),
        (b"\xdc\0", "ends within a value"),
        (b"\xdd\0\0\0", "ends within a value"),
        (b"\x91\xa3fo", "ends within a value"),
        (b"\x91\xcd\x01", "ends within a value"),
        (b"\x91\xd9", "ends within a value"),
        (b"\x91\xc7\x01", "ends within a value"),
        (b"\x91\x82\x01\x01\x01", "ends within a value"),
        (b"\x97\x01\x01\x01\x01\x01\x01\xcd\x01", "ends within a value"),
        (b"\x91\xc1", "0xc1 starts no value"),
        (b"\x91\x91\xc1", "0xc1 starts no value"),
        (b"\x91\x01\x02", "1 bytes follow"),
        (b"\x91\x01\xc1\xc1", "2 bytes follow"),
    ],
)
def test_a_bad_frame_says_what_is_wrong_with_it(body: bytes, reason: str) -> None:
    assert reason in bad_frame(body).reason


@pytest.mark.parametrize(
    ("body", "method", "id"),
    [
        (b"", b"", b""),
        (b"\xc0", b"", b""),
        (b"\x93\xa3foo", b"\xa3foo", b""),
        (b"\x93\xa3fo", b"", b""),
        (b"\x93\xa3foo\x07", b"\xa3foo", b"\x07"),
        (b"\x93\xa3foo\xcd\x01", b"\xa3foo", b""),
        (b"\x93\xa3foo\xcd\x01\x02\xc1", b"\xa3foo", b"\xcd\x01\x02"),
        (b"\x92\xa3foo\x07\x00", b"\xa3foo", b"\x07"),
        (b"\x93\xc1\x07\x00", b"", b""),
    ],
)
def test_a_bad_frame_carries_method_and_id_where_they_could_be_read(body: bytes, method: bytes, id: bytes) -> None:
    frame = bad_frame(body)
    assert (frame.method, frame.id) == (method, id)


# Depth.

NESTS = {
    "arrays": b"\x91",
    "long arrays": b"\xdd\0\0\0\x01",
    "map values": b"\x81\x00",
    "long map values": b"\xde\0\x01\x00",
}


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
@pytest.mark.parametrize("before", [1, MAX_ARGUMENTS + 1], ids=["an element", "beyond the last element"])
def test_a_value_may_be_nested_as_deep_as_the_limit_and_no_deeper(nest: bytes, before: int) -> None:
    header = array_header(before + 1, 0) + b"\x01" * before
    deepest = only_frame(header + nest * MAX_DEPTH + b"\x01")
    assert not isinstance(deepest, BadFrame)
    assert f"deeper than {MAX_DEPTH}" in bad_frame(header + nest * (MAX_DEPTH + 1) + b"\x01").reason


def test_an_empty_container_counts_as_a_level() -> None:
    assert only_frame(b"\x91" + b"\x91" * (MAX_DEPTH - 1) + b"\x90") == [b"\x91" * (MAX_DEPTH - 1) + b"\x90"]
    assert f"deeper than {MAX_DEPTH}" in bad_frame(b"\x91" + b"\x91" * MAX_DEPTH + b"\x80").reason


# Cost. Each of these takes well under a second, and hours if it took time or memory by what the headers say.


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "body",
    [
        array_header(2**32 - 1, 4),
        array_header(2**32 - 1, 4) + b"\x01" * 100,
        b"\x91" + array_header(2**32 - 1, 4) + b"\xc0",
        b"\x91" + map_header(2**32 - 1, 4) + b"\xc0",
        b"\x91" + array_header(2**32 - 1, 4) * 100,
        b"\x91\xdb\xff\xff\xff\xff",
        b"\x91\xc6\xff\xff\xff\xff" + bytes(100),
        b"\x91\xc9\xff\xff\xff\xff\x01" + bytes(100),
        b"\x91\xc9\xff\xff\xff\xff",
    ],
    ids=lambda body: body[:8].hex(),
)
def test_huge_counts_and_lengths_cost_nothing(body: bytes) -> None:
    for _ in range(1000):
        assert "ends within a value" in bad_frame(body).reason


def worst_bodies() -> dict[str, bytes]:
    full = MAX_FRAME - 3
    deep = b"\x91" * (MAX_DEPTH - 1) + b"\x90"
    return {
        "numbers": array_header(full, 2) + b"\x01" * full,
        "empty arrays": array_header(full, 2) + b"\x90" * full,
        "deep nests": array_header(full // len(deep), 2) + deep * (full // len(deep)),
        "empty extensions": array_header(full // 3, 2) + b"\xc7\0\x01" * (full // 3),
        "one string": b"\x91\xdb" + (MAX_FRAME - 6).to_bytes(4, "big") + bytes(MAX_FRAME - 6),
    }


@pytest.mark.timeout(60)
@pytest.mark.parametrize("body", worst_bodies().values(), ids=worst_bodies())
def test_time_goes_with_the_bytes_of_the_largest_frames(body: bytes) -> None:
    frames, rest = split(framed(body) * 16)
    assert (len(frames), rest) == (16, b"")
    assert not any(isinstance(frame, BadFrame) for frame in frames)


@pytest.mark.timeout(60)
def test_time_goes_with_the_bytes_of_a_read_of_many_frames() -> None:
    frames, rest = split(framed(b"\x91\x01") * 500_000)
    assert (len(frames), rest) == (500_000, b"")
