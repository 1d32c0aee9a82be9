"""ZeroMQ: a ROUTER broker in Python, and clients that are DEALERs, speaking ZMTP 3.0 on a plain socket.

A call is [kind and id, topic] or [kind and id, topic, value]; its answer [id, value] or [id, "true"].
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections import deque
from collections.abc import Iterator
from typing import Final

from bench.servers.peer import HOST, Lanes, Opening, Pair, Peer, Running, Script, free_port, process, said

BROKER: Final = "import sys; from bench.servers.zeromq import serve; serve(int(sys.argv[1]))"

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
    with process([sys.executable, "-c", BROKER, str(port)], port) as pid:
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


def serve(port: int) -> None:
    """Bring together who sends and who receives, one to one in the order they came, until it is killed."""
    import zmq  # by the broker alone

    router: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
    router.bind(f"tcp://{HOST}:{port}")
    waiting: dict[bytes, deque[tuple[bool, bytes, bytes, bytes]]] = {}  # by topic: senders or receivers, never both
    receive, answer = router.recv_multipart, router.send_multipart
    while True:
        router.poll()
        with contextlib.suppress(zmq.Again):
            while True:
                peer, call, topic, *values = receive(zmq.NOBLOCK)
                sends, id, value = call[:1] == SEND, call[1:], values[0] if values else b""
                line = waiting.get(topic)
                if line is None:
                    waiting[topic] = deque([(sends, peer, id, value)])
                elif line[0][0] == sends:
                    line.append((sends, peer, id, value))
                else:
                    _, other, other_id, other_value = line.popleft()
                    if not line:
                        del waiting[topic]
                    answer((peer, id, TRUE if sends else other_value))
                    answer((other, other_id, value if sends else TRUE))
