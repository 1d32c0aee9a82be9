"""The way from a byte stream to frames.

Any bytes, cut anywhere, give the same frames and the same rest, in which every byte is accounted for, compiled and
plain. The msgpack library agrees on which frames are well-formed. Nothing raises anything.

The first byte of an input chooses where the stream is cut; chance seldom makes the length of a frame, so what follows
is also taken for the body of one.
"""

from __future__ import annotations

from typing import Any

from skywalker.limits import MAX_ARGUMENTS, MAX_FRAME
from tests.fuzz.twins import agreed, twins
from tests.wire.streams import cut, decode_pieces, framed, is_one_array

FORMS = twins("skywalker.wire.frames")


def check_input(data: bytes) -> object:
    """Hold the invariant for an input."""
    if not data:
        return None
    step, stream = max(1, data[0]), data[1:]
    body = stream[:MAX_FRAME]
    check_body(body, split(framed(body), 2)[0][0])
    return check_stream(stream, step, 2), check_stream(stream, step, 4)


def split(stream: bytes, width: int) -> Any:
    """Return what both forms make of a stream."""
    return agreed(form.split(stream, width) for form in FORMS)


def check_stream(stream: bytes, step: int, width: int) -> object:
    """Hold the invariant for a stream whose frames have lengths of so many bytes."""
    found, rest = split(stream, width)
    pieces = cut(stream, range(step, len(stream), step))
    assert decode_pieces(lambda data: split(data, width), pieces) == (found, rest)
    start = 0
    for frame in found:
        body = start + width
        end = body + int.from_bytes(stream[start:body], "big")
        check_body(stream[body:end], frame)
        start = end
    assert stream[start:] == rest
    assert len(rest) < width or len(rest) < width + int.from_bytes(rest[:width], "big")
    return found, rest


def check_body(body: bytes, frame: Any) -> None:
    """Hold the invariant for what became of the body of one frame."""
    if not isinstance(frame, list):
        assert frame[0] == b""
        assert frame.reason
        assert "deeper" in frame.reason or not is_one_array(body)
        return
    assert is_one_array(body)
    assert body.endswith(b"".join(frame))
    assert len(frame) <= MAX_ARGUMENTS + 1
