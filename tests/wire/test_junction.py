from __future__ import annotations

import re
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.errors import BY_CODE, RequestError, TooLarge
from skywalker.limits import MAX_FRAME
from skywalker.wire import junction as wire
from skywalker.wire.frames import BadFrame, split
from skywalker.wire.values import pack, unpack
from tests.data import GoldenFrame, golden_frames
from tests.wire.encodings import bodies, encoded_values, mutated_bodies


def only_frame(data: bytes) -> list[bytes]:
    frames, rest = split(data)
    assert rest == b""
    assert len(frames) == 1
    assert not isinstance(frames[0], BadFrame), frames[0].reason
    return frames[0]


def error_in(data: bytes) -> RequestError:
    """Return the error that an error reply carries."""
    result = unpack(only_frame(data)[2])
    assert isinstance(result, msgpack.ExtType)
    assert result.code == wire.ERROR_TYPE
    return wire.error_from(result.data)


@pytest.mark.parametrize("golden", golden_frames(), ids=lambda golden: golden.note)
def test_golden_elements_make_the_golden_frame(golden: GoldenFrame) -> None:
    assert wire.frame(*map(pack, golden.elements)) == golden.wire


def test_the_golden_replies_are_made_of_the_named_parts() -> None:
    frames = {golden.wire for golden in golden_frames()}
    assert wire.frame(wire.RECV, b"\x01", wire.TIMED_OUT) in frames
    assert wire.frame(wire.SEND, b"\x02", wire.TRUE) in frames
    assert wire.frame(wire.RECV, b"\x01", wire.CLOJURE_TIMED_OUT) in frames


def test_the_timeout_extension_has_the_type_t() -> None:
    assert unpack(wire.TIMED_OUT) == (wire.TIMEOUT_TYPE, b"\0")
    assert chr(wire.TIMEOUT_TYPE) == "T"
    assert chr(wire.ERROR_TYPE) == "E"


@given(st.lists(encoded_values, min_size=1, max_size=6))
def test_a_frame_holds_the_very_elements(elements: list[bytes]) -> None:
    assert only_frame(wire.frame(*elements)) == elements


def test_the_largest_frame_is_made_and_one_byte_more_is_refused_with_the_numbers() -> None:
    room = MAX_FRAME - len(b"\x93" + wire.RECV + b"\x01" + b"\xc5\0\0")
    largest = wire.frame(wire.RECV, b"\x01", pack(bytes(room)))
    assert len(largest) == 2 + MAX_FRAME
    assert only_frame(largest)[2] == pack(bytes(room))
    with pytest.raises(TooLarge) as refused:
        wire.frame(wire.RECV, b"\x01", pack(bytes(room + 1)))
    assert refused.value.details == {"size": MAX_FRAME + 1, "limit": MAX_FRAME}
    assert re.search(rf"{MAX_FRAME + 1}\b.*\b{MAX_FRAME}\b", str(refused.value))


# Errors.


@pytest.mark.parametrize("code", BY_CODE)
def test_an_error_survives_the_wire_with_its_class_text_and_details(code: str) -> None:
    sent = BY_CODE[code]("what happened", {"limit": 5, "size": 6})
    got = error_in(wire.error_frame(wire.SEND, b"\x07", sent))
    assert type(got) is type(sent)
    assert (got.code, str(got), got.details) == (code, "what happened", {"limit": 5, "size": 6})


def test_an_error_names_the_call_that_failed() -> None:
    assert only_frame(wire.error_frame(wire.TAKE, b"\xa3abc", BY_CODE["busy"]()))[:2] == [wire.TAKE, b"\xa3abc"]


def test_a_code_of_a_later_version_is_an_error_that_keeps_it() -> None:
    error = wire.error_from(pack(["not-yet-known", "what happened", {"size": 6}]))
    assert type(error) is RequestError
    assert (error.code, str(error)) == ("not-yet-known", "what happened")
    assert error.details == {"size": 6}


@given(st.text(), st.dictionaries(st.text(), st.integers(0, 2**32)))
def test_any_text_survives_the_wire(text: str, details: dict[str, int]) -> None:
    got = error_in(wire.error_frame(wire.SEND, b"\x07", BY_CODE["internal"](text, details)))
    assert str(got) == (text or "internal")
    assert got.details == details


@pytest.mark.parametrize(
    "payload",
    [
        *map(
            pack, ([], ["busy"], ["busy", "text"], ["busy", "text", []], [1, "text", {}], ["busy", 1, {}], "busy", None)
        ),
        pack(["busy", "text", {}, 1]),
        b"",
        b"\xc1",
        b"\x93\xa4busy\xa1t",
        b"\x93\xa4busy\xa1t\x81\x90\x01",
        b"\x93\xa4busy\xa1t\x81\xd5\xff\0\0\x01",
    ],
    ids=bytes.hex,
)
def test_a_payload_that_is_no_error_is_a_value_error(payload: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the msgpack library has many texts for it
        wire.error_from(payload)


@given(bodies | mutated_bodies() | st.binary(max_size=60))
def test_any_payload_is_an_error_or_a_value_error(payload: bytes) -> None:
    try:
        error = wire.error_from(payload)
    except ValueError:
        return
    assert isinstance(error, RequestError)


# Who waits on a topic.


@given(
    st.integers(0, 10**6),
    st.dictionaries(st.text(max_size=20) | st.integers(0, 99), st.integers(1, 10**6), max_size=40),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**9),
)
def test_who_waits_on_a_topic_is_a_map_with_groups_as_they_were_named(
    receivers: int, takers: dict[Any, int], senders: int, subscribers: int, age_ms: int
) -> None:
    packed = {pack(group): count for group, count in takers.items()}
    info = unpack(wire.topic_info(receivers, packed, senders, subscribers, age_ms))
    assert info == {
        "receivers": receivers,
        "takers": takers,
        "senders": senders,
        "subscribers": subscribers,
        "age": age_ms,
    }


@given(st.dictionaries(encoded_values, st.integers(0, 2**32), max_size=20))
def test_without_its_groups_a_census_counts_their_takers_and_names_none(takers: dict[bytes, int]) -> None:
    told = wire.without_groups(wire.topic_info(1, takers, 0, 300, 5))
    total = sum(takers.values())
    assert told == wire.without_groups(wire.topic_info(1, {wire.NIL: total}, 0, 300, 5))
    expected = {"receivers": 1, "takers": {None: total} if total else {}, "senders": 0, "subscribers": 300, "age": 5}
    assert unpack(told) == expected


@given(st.dictionaries(encoded_values, st.integers(1, 2**32), max_size=20))
def test_a_census_can_be_told_in_python_whatever_its_groups_are(takers: dict[bytes, int]) -> None:
    told = wire.topic_answer(wire.topic_info(1, takers, 0, 300, 5))
    assert told | {"takers": {}} == {"receivers": 1, "takers": {}, "senders": 0, "subscribers": 300, "age": 5}
    assert 0 < sum(told["takers"].values()) <= sum(takers.values()) or not takers


def test_groups_that_python_has_no_keys_for_have_others_in_their_place() -> None:
    no_timestamp = b"\xd5\xff\0\0"
    takers = {pack([1, [2]]): 1, pack({"a": [3]}): 2, no_timestamp: 3, wire.NIL: 4, pack("a"): 5}
    told = wire.topic_answer(wire.topic_info(0, takers, 0, 0, 0))
    assert told["takers"] == {(1, (2,)): 1, (("a", (3,)),): 2, None: 7, "a": 5}


@pytest.mark.parametrize("value", [1, "takers", {}, {"takers": 1}, {"takers": {"group": "many"}}, {"receivers": 1}, []])
def test_what_is_no_census_has_no_groups_that_could_be_left_out(value: object) -> None:
    with pytest.raises(ValueError, match="it does not say who waits"):
        wire.without_groups(pack(value))
