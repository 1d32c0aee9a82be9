from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skywalker.errors import LocalProtocolError
from skywalker.wire import pubsub as wire
from skywalker.wire.pubsub import (
    ACKED,
    MAX_PAYLOAD,
    MAX_TOPIC,
    Item,
    bus_topic,
    bus_value,
    inflate,
    split,
)
from skywalker.wire.values import canonical

# Codes and lengths of one byte are what makes a difference.
likely_bytes = st.lists(st.sampled_from([*range(9), 255]) | st.integers(0, 255), max_size=60).map(bytes)


def read_slowly(stream: bytes) -> tuple[list[Item], bytes]:
    """Return what split() is to return: the description of the dialect, taken at its word, byte after byte."""
    items: list[Item] = []
    done = 0
    while done < len(stream):
        source = iter(stream[done:])
        taken = bytearray()

        def take(count: int, source: Callable[[], int] = source.__next__, taken: bytearray = taken) -> bytes:
            some = bytearray()
            for _ in range(count):
                some.append(source())
                taken.append(some[-1])
            return bytes(some)

        try:
            (code,) = take(1)
            topic = form = payload = b""
            if code in (1, 2, 3, 5, 6):
                topic = take(take(1)[0])
            if code == 6:
                form = take(2)
            if code in (1, 6):
                low, high = take(2)
                payload = take(low + 256 * high)
        except StopIteration:
            return items, stream[done:]
        if code not in (1, 2, 3, 4, 5, 6):
            return [*items, (code, b"", b"", b"", b"")], b""
        items.append((code, topic, form, payload, bytes(taken)))
        done += len(taken)
    return items, b""


# Messages.


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (wire.publish(b"t", b"hi"), "01 01 74 02 00 6869"),
        (wire.publish(b"", b""), "01 00 00 00"),
        (wire.publish(b"sys", bytes(258)), "01 03 737973 02 01" + "00" * 258),
        (wire.publish_typed(b"t", b"\x07\x01", b"hi"), "06 01 74 07 01 02 00 6869"),
        (wire.subscribe(b"sys.alert"), "02 09 7379732e616c657274"),
        (wire.subscribe(b"t", typed=True), "05 01 74"),
        (wire.unsubscribe(b""), "03 00"),
        (ACKED, "04"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_messages_have_the_published_bytes(made: bytes, expected: str) -> None:
    assert made == bytes.fromhex(expected)


@given(likely_bytes | st.binary(max_size=200))
@example(b"")
@example(b"\x06\x00\x00\x00\xff\xff" + bytes(65_534))
@example(b"\x06\x00\x00\x00\x02\x01" + bytes(258) + ACKED)
@example(wire.publish(b"\x04" * MAX_TOPIC, b"\x04" * 256) + ACKED)
def test_any_bytes_are_read_as_the_description_says(stream: bytes) -> None:
    assert split(stream) == read_slowly(stream)


def test_messages_hold_copies_and_not_the_whole_read() -> None:
    items, rest = split(wire.publish_typed(b"topic", b"ab", b"payload") * 2 + b"\x01")
    assert {type(part) for item in items for part in item[1:]} == {bytes}
    assert type(rest) is bytes


@pytest.mark.timeout(30)
@pytest.mark.parametrize("data", [ACKED, wire.publish(b"", b""), wire.subscribe(b"t")], ids=bytes.hex)
def test_time_goes_with_the_bytes_of_a_read_of_many_messages(data: bytes) -> None:
    items, rest = split(data * 500_000)
    assert (len(items), rest) == (500_000, b"")


@pytest.mark.parametrize("extra", [0, 1, 1000, 70_000])
def test_what_is_too_long_is_not_made_and_the_numbers_are_told(extra: int) -> None:
    makers = {
        "topic": (MAX_TOPIC, [wire.subscribe, wire.unsubscribe, lambda topic: wire.publish(topic, b"")]),
        "payload": (MAX_PAYLOAD, [lambda data: wire.publish(b"t", data), lambda d: wire.publish_typed(b"t", b"ab", d)]),
    }
    for what, (limit, ways) in makers.items():
        for make in ways:
            if not extra:
                assert len(split(make(bytes(limit)))[0]) == 1
                continue
            with pytest.raises(LocalProtocolError, match=rf"{what} of {limit + extra} bytes.*\b{limit}\b"):
                make(bytes(limit + extra))


# Compressed payloads.


def stored(data: bytes) -> bytes:
    """Return a zlib stream that is longer than what it holds."""
    return zlib.compress(data, 0)


@given(st.binary(max_size=300))
def test_what_was_compressed_is_the_same_afterwards(payload: bytes) -> None:
    assert inflate(wire.deflate(payload)) == payload
    for level in range(10):
        assert inflate(zlib.compress(payload, level)) == payload


@pytest.mark.parametrize("size", [0, 1, MAX_PAYLOAD - 1, MAX_PAYLOAD])
def test_a_compressed_payload_holds_as_much_as_one_that_is_not(size: int) -> None:
    for data in (bytes(size), random.Random(1).randbytes(size)):
        assert inflate(wire.deflate(data)) == inflate(stored(data)) == data


@pytest.mark.parametrize("size", [MAX_PAYLOAD + 1, MAX_PAYLOAD + 2, 10 * MAX_PAYLOAD])
def test_one_that_holds_more_is_refused_with_the_limit(size: int) -> None:
    for data in (bytes(size), random.Random(1).randbytes(size)):
        with pytest.raises(ValueError, match=f"more than {MAX_PAYLOAD}"):
            inflate(wire.deflate(data))


@pytest.mark.timeout(30)
def test_a_bomb_costs_no_more_than_the_limit() -> None:
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    assert len(bomb) <= MAX_PAYLOAD, "it fits into one message"
    tracemalloc.start()
    try:
        for _ in range(20):
            with pytest.raises(ValueError, match="holds more than"):
                inflate(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * MAX_PAYLOAD


@given(st.binary(max_size=100), st.data())
def test_a_stream_that_is_cut_short_is_refused(payload: bytes, data: st.DataObject) -> None:
    whole = wire.deflate(payload)
    with pytest.raises(ValueError, match="zlib"):
        inflate(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.binary(max_size=100), st.binary(min_size=1, max_size=20))
def test_bytes_behind_a_stream_are_refused(payload: bytes, tail: bytes) -> None:
    for garbage in (tail, wire.deflate(tail)):
        with pytest.raises(ValueError, match="not one whole zlib stream"):
            inflate(wire.deflate(payload) + garbage)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def with_dictionary(data: bytes) -> bytes:
    packer = zlib.compressobj(zdict=b"hello")
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    "payload",
    [b"", b"x", b"not compressed at all", gzip.compress(b"hello"), raw_deflate(b"hello"), with_dictionary(b"hello")],
    ids=lambda payload: payload[:4].hex(),
)
def test_what_is_not_zlib_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="zlib"):
        inflate(payload)


# On the bus.

NOT_UTF_8 = [
    b"\xff",
    b"\x80",
    b"a\xc3",
    b"\xc0\xaf",  # a slash, longer than need be
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\xed\xb2\x80",  # what Python makes of a lone 0x80
    b"\xed\xa0\x80\xed\xb0\x80",  # both halves
    b"\xf4\x90\x80\x80",  # beyond the last character
    b"\xff" * MAX_TOPIC,
]
UTF_8 = [b"", b"a", b"sys.alert", "ü€𝄞\0\ufeff\uffff".encode(), b"a" * 31, b"a" * 32, b"a" * 255]

any_topic = st.one_of(
    st.binary(max_size=MAX_TOPIC),
    st.text(max_size=60).map(str.encode),
    st.sampled_from([*NOT_UTF_8, *UTF_8]),
    st.integers(0, MAX_TOPIC).map(lambda size: b"a" * size),
    st.integers(0, MAX_TOPIC).map(lambda size: b"\xff" * size),
)


@pytest.mark.parametrize("topic", UTF_8, ids=lambda topic: topic[:8].hex() or "empty")
def test_a_topic_is_the_string_of_its_bytes(topic: bytes) -> None:
    assert bus_topic(topic) == msgpack.packb(topic.decode())


@pytest.mark.parametrize("topic", NOT_UTF_8, ids=lambda topic: topic[:8].hex())
def test_a_topic_that_is_not_utf_8_is_the_binary_of_its_bytes(topic: bytes) -> None:
    assert bus_topic(topic) == msgpack.packb(topic)


@given(any_topic)
def test_a_topic_survives_the_bus_and_its_name_is_canonical(topic: bytes) -> None:
    name = bus_topic(topic)
    assert canonical(name) == name
    assert msgpack.unpackb(name, raw=True) == topic


def test_topics_that_python_takes_for_one_are_two_on_the_bus() -> None:
    # Read as an escape, the byte 0x80 becomes the surrogate U+DC80, whose own bytes are no UTF-8 either.
    alike = [b"\x80", b"\xed\xb2\x80", "\udc80".encode(errors="surrogatepass"), "\x80".encode()]
    assert len({bus_topic(topic) for topic in alike}) == len(set(alike)) == 3


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 257, MAX_PAYLOAD - 1, MAX_PAYLOAD])
def test_a_payload_is_a_binary_on_the_bus(size: int) -> None:
    for payload in (bytes(size), b"a" * size):
        assert bus_value(payload) == msgpack.packb(payload)
