"""Frames that the core takes apart in place, against skywalker.wire: the same elements, and the same refusals."""

from __future__ import annotations

import os
import random
from typing import Any, Final

import msgpack
import pytest

from skywalker import errors
from skywalker.limits import MAX_DEPTH
from skywalker.wire import frames, values
from skywalker.wire.junction import is_reserved
from tests.workers.core import _parts

FRAMES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "400")) * 20

METHODS: Final = (":send!", ":recv!", ":take!", ":cancel", ":ack", ":hello", 5, None)


def some_value(luck: random.Random, depth: int = 0) -> Any:
    kind = luck.randrange(12 if depth < 4 else 9)
    match kind:
        case 0:
            return luck.choice((None, True, False))
        case 1 | 2:
            return luck.choice((-1, 1)) * luck.choice(
                (luck.randrange(300), luck.randrange(70_000), luck.getrandbits(62))
            )
        case 3:
            return luck.uniform(-1e9, 1e9)
        case 4 | 5 | 6:
            return "x" * luck.choice((0, 1, 5, 31, 32, 33, 255, 256, 300))
        case 7:
            return luck.randbytes(luck.choice((0, 1, 15, 16, 255, 256)))
        case 8:
            return msgpack.ExtType(
                luck.choice((0x45, 0x54, 1, 3)), luck.randbytes(luck.choice((0, 1, 2, 3, 4, 8, 16, 17, 300)))
            )
        case 9 | 10:
            return [some_value(luck, depth + 1) for _ in range(luck.choice((0, 1, 3, 16, 17)))]
        case _:
            return {str(key): some_value(luck, depth + 1) for key in range(luck.choice((0, 1, 3, 16)))}


def lengthened(luck: random.Random, data: bytes) -> bytes:
    """Return the same value with a longer header where that is easy: not canonical, and as good."""
    head = data[0]
    if head < 0x80:
        return luck.choice((b"\xcc" + data, b"\xcd\0" + data, b"\xd0" + data, b"\xd3" + bytes(7) + data))
    if 0xA0 <= head < 0xC0:
        return luck.choice((b"\xd9" + bytes((head & 31,)), b"\xda\0" + bytes((head & 31,)))) + data[1:]
    if 0x90 <= head < 0xA0:
        return b"\xdc\0" + bytes((head & 15,)) + data[1:]
    if 0x80 <= head < 0x90:
        return b"\xde\0" + bytes((head & 15,)) + data[1:]
    return data


def some_frame(luck: random.Random) -> bytes:
    elements = [
        values.pack(luck.choice(METHODS)),
        *(values.pack(some_value(luck)) for _ in range(luck.choice((0, 1, 2, 3, 4, 5, 6, 9, 17)))),
    ]
    if luck.random() < 0.2:
        elements = [lengthened(luck, each) for each in elements]
    count = len(elements)
    head = bytes((0x90 | count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")
    body = head + b"".join(elements)
    return mutated(luck, body) if luck.random() < 0.6 else body


def mutated(luck: random.Random, body: bytes) -> bytes:
    body = bytearray(body)
    for _ in range(luck.choice((1, 1, 1, 2, 5))):
        at = luck.randrange(len(body)) if body else 0
        match luck.randrange(5):
            case 0 if body:
                body[at] = luck.randrange(256)
            case 1 if body:
                body[at] = luck.choice((0xC1, 0xDC, 0xDD, 0xDF, 0xC6, 0xC9, 0xDB, 0x90, 0x80, 0xFF))
            case 2:
                del body[at:]
            case 3:
                body[at:at] = luck.randbytes(luck.randrange(5))
            case _:
                body += luck.randbytes(luck.randrange(3))
    return bytes(body)


def as_split_has_it(body: bytes) -> list[bytes] | tuple[str, bytes, bytes]:
    (found,), rest = frames.split(len(body).to_bytes(4, "big") + body, 4)
    assert not rest
    if isinstance(found, frames.BadFrame):
        return found.reason, found.method, found.id
    return found


@pytest.mark.parametrize("seed", range(4))
def test_frames_come_apart_as_split_has_them(seed: int) -> None:
    luck = random.Random(seed)
    for _ in range(FRAMES // 4):
        body = some_frame(luck)
        assert _parts.parse(body) == as_split_has_it(body), body.hex()


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1])
@pytest.mark.parametrize("head", [b"\x91", b"\x81\xc0", b"\xdc\x00\x01"])
def test_depth_has_the_same_limit(depth: int, head: bytes) -> None:
    body = b"\x92\xc0" + head * depth + b"\xc0"
    assert _parts.parse(body) == as_split_has_it(body)


@pytest.mark.parametrize("first", range(256))
def test_every_first_byte_is_taken_alike(first: int) -> None:
    for rest in (b"", b"\0", b"\1\2\3\4\5\6\7\x08\x09" * 40, b"\xff" * 20):
        value = bytes((first,)) + rest
        for body in (value, b"\x91" + value, b"\x97" + value + b"\xc0" * 6, b"\x97" + b"\xc0" * 6 + value):
            assert _parts.parse(body) == as_split_has_it(body)


@pytest.mark.parametrize("seed", range(4))
def test_values_are_judged_alike(seed: int) -> None:
    luck = random.Random(seed)
    for _ in range(FRAMES // 4):
        data = values.pack(some_value(luck))
        if luck.random() < 0.5:
            data = lengthened(luck, data)
        if luck.random() < 0.2:
            data = mutated(luck, data)
        assert (_parts.parse(b"\x91" + data) == [data]) == frames.is_value(data)
        if not frames.is_value(data):
            continue
        assert _parts.canonical(data) == (values.canonical(data) == data), data.hex()
        assert _parts.reserved(data) == is_reserved(data)
        judge_timeout(data)


@pytest.mark.parametrize(
    "ms", [0, 127, 128, 255, 256, 65_535, 65_536, 86_400_000, 86_400_001, 2**32 - 1, 2**32, -1, 1.5]
)
def test_timeouts_are_judged_alike(ms: float) -> None:
    judge_timeout(values.pack(ms))


def judge_timeout(data: bytes) -> None:
    found = _parts.timeout(data)
    try:
        seconds = values.timeout_seconds(data)
    except errors.BadTimeout:
        assert found == -1
    else:
        # What is no short unsigned integer is for Python to look at.
        assert found == (round(seconds * 1000) if data[0] < 0x80 or 0xCC <= data[0] <= 0xCE else -1)
