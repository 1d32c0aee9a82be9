"""Fuzz the way from a byte stream to frames, topics and timeouts.

The invariant: any bytes, cut anywhere, give the same frames and the same rest, in which every byte
is accounted for. The msgpack library agrees on which frames are well-formed. Of those, each element
has a canonical form that is its own canonical form, and is a timeout or refused with BadTimeout.
Nothing raises anything else.

    python tests/fuzz/fuzz_frames.py -runs=1000000

The first byte of an input chooses where the stream is cut. Coverage guides atheris through the
sources, so this needs skywalker uncompiled.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["skywalker.wire"]):
    from skywalker.wire import frames, values

from skywalker.errors import BadTimeout
from skywalker.limits import MAX_ARGUMENTS
from tests.wire.streams import cut, decode_pieces, framed, is_one_array


def check_stream(data: bytes) -> None:
    """Hold the invariant for the stream that follows the first byte."""
    step, stream = max(1, data[0]), data[1:]
    found, rest = frames.split(stream)
    assert decode_pieces(frames.split, cut(stream, range(step, len(stream), step))) == (found, rest)
    start = 0
    for frame in found:
        end = start + 2 + int.from_bytes(stream[start : start + 2], "big")
        check_frame(stream[start + 2 : end], frame)
        start = end
    assert stream[start:] == rest


def check_frame(body: bytes, frame: frames.Frame) -> None:
    """Hold the invariant for what became of the body of one frame."""
    if isinstance(frame, frames.BadFrame):
        assert frame[0] == b""
        assert frame.reason
        assert "deeper" in frame.reason or not is_one_array(body)
        return
    assert is_one_array(body)
    assert body.endswith(b"".join(frame))
    for element in frame[:MAX_ARGUMENTS]:
        topic = values.canonical(element)
        assert values.canonical(topic) == topic
        with contextlib.suppress(BadTimeout):
            values.timeout_seconds(element)


def check_input(data: bytes) -> None:
    """Hold the invariant for an input as a stream, and as the body of one frame, which chance seldom makes."""
    if data:
        check_stream(data)
    body = data[1:0xFFFF]
    (frame,), rest = frames.split(framed(body))
    assert rest == b""
    check_frame(body, frame)


if __name__ == "__main__":
    atheris.Setup(sys.argv, check_input)
    atheris.Fuzz()
