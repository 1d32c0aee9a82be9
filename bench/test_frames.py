"""Micro benchmarks of the way between a byte stream and calls. Every round handles the same number of bytes."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from skywalker.wire import junction as wire
from skywalker.wire.frames import split
from skywalker.wire.values import canonical, pack, topic_bytes

ROUND_BYTES = 64 * 1024


def send_frame(value_bytes: int) -> bytes:
    return wire.frame(wire.SEND, pack(123_456), pack(60_000), pack("orders/eu/17"), pack(bytes(value_bytes)))


@pytest.mark.parametrize("value_bytes", [16, 1024, 16 * 1024])
def test_split_a_read_full_of_sends(benchmark: BenchmarkFixture, value_bytes: int) -> None:
    frame = send_frame(value_bytes)
    read = frame * (ROUND_BYTES // len(frame))
    benchmark.extra_info["frames"] = len(read) // len(frame)
    frames, _ = benchmark(split, read)
    assert len(frames) == len(read) // len(frame)


def test_split_a_read_of_one_send(benchmark: BenchmarkFixture) -> None:
    frames, _ = benchmark(split, send_frame(16))
    assert len(frames) == 1


def test_split_one_frame_of_nested_values(benchmark: BenchmarkFixture) -> None:
    row = {"id": 17, "name": "x" * 20, "tags": ["a", "b", "c"], "price": 9.5, "seen": None}
    frame = wire.frame(wire.SEND, pack(1), pack(1000), pack("rows"), pack([row] * 800))
    frames, _ = benchmark(split, frame)
    assert len(frames[0]) == 5


@pytest.mark.parametrize(
    "topic", ["orders/eu/17", "x" * 200, ["room", 7, {"floor": 2}]], ids=["short string", "long string", "list"]
)
def test_make_a_topic_canonical(benchmark: BenchmarkFixture, topic: object) -> None:
    encoded = pack(topic)
    assert benchmark(topic_bytes, encoded) == encoded


def test_make_a_topic_of_long_headers_canonical(benchmark: BenchmarkFixture) -> None:
    assert benchmark(canonical, b"\xdd\0\0\0\x02\xdb\0\0\0\x04room\xd3\0\0\0\0\0\0\0\x07") == pack(["room", 7])
