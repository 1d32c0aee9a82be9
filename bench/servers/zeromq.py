"""ZeroMQ: a ROUTER broker in Python, and clients that are DEALERs, speaking ZMTP 3.0 on a plain socket.

A call is [kind and id, topic] or [kind and id, topic, value]; its answer [id, value] or [id, "true"].
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Final

from bench.servers.peer import HOST, Peer, Running, free_port, process, said
from bench.servers.script import Lanes, Opening, Pair, Script

RECV: Final = b"R"
SEND: Final = b"S"
TRUE: Final = b"true"

GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
"""Signature, version 3.0, mechanism, not as a server, filler: 64 bytes."""

_SOCKET_TYPE: Final = b"\x0bSocket-Type\0\0\0\x06"
_READY: Final = b"\x05READY" + _SOCKET_TYPE + b"DEALER"
OPENING: Final = Opening.until(
    GREETING + b"\x04" + bytes([len(_READY)]) + _READY,
    re.escape(_SOCKET_TYPE + b"ROUTER\x08Identity\0\0\0\0") + rb"\Z",
)


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run a broker. Raises BenchError."""
    port = free_port()
    with process([sys.executable, "-m", "bench.servers.zeromq_broker", str(port)], port) as pid:
        versions = "import zmq; print(f'libzmq {zmq.zmq_version()}, pyzmq {zmq.pyzmq_version()}')"
        yield Running(HOST, port, pid, f"ROUTER broker in Python, {said([sys.executable, '-c', versions])}")


def encode(lanes: Lanes) -> Pair:
    """Return the scripts of a pair."""
    ids = [b"\xcd\x01" + bytes([lane]) for lane in range(len(lanes.topics))]
    topics = [topic.encode() for topic in lanes.topics]
    lane_at = 2 + len(ids[0]) - 1
    receiver = Script(
        [_message(RECV + id, topic) for id, topic in zip(ids, topics, strict=True)],
        [_message(id, value) for id, value in zip(ids, lanes.values, strict=True)],
        lane_at,
        OPENING,
    )
    sender = Script(
        [_message(SEND + id, *rest) for id, *rest in zip(ids, topics, lanes.values, strict=True)],
        [_message(id, TRUE) for id in ids],
        lane_at,
        OPENING,
    )
    return Pair(receiver, sender)


def _message(*frames: bytes) -> bytes:
    return b"".join([_frame(frame, at < len(frames)) for at, frame in enumerate(frames, 1)])


def _frame(body: bytes, more: bool) -> bytes:
    if len(body) < 256:
        return bytes([more, len(body)]) + body
    return bytes([more | 2]) + len(body).to_bytes(8, "big") + body


PEER: Final = Peer("zeromq", started, encode)
