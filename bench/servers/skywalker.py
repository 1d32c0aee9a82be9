"""skywalker: a node of one worker, or of several with its pub/sub door open."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import skywalker
from bench.servers.peer import Lanes, Pair, Peer, Running, Script
from skywalker import build
from skywalker.limits import MAX_TIMEOUT_MS
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, split

if TYPE_CHECKING:
    from skywalker.embedding import Node

_FIRST_ID: Final = 0x0100
"""Ids from here on have three bytes, as those of a client that has been running for a while, and end in the lane."""

LANE_AT: Final = len(wire.frame(wire.SEND, values.pack(_FIRST_ID), b"")) - 1
"""Where a reply names its lane; all methods are of one length."""


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run a node. Raises StartError."""
    from skywalker.embedding import embedded

    with embedded(workers=1) as node:
        yield Running(node.host, node.port, node.pid, version(1))


@contextlib.contextmanager
def started_pubsub(workers: int) -> Iterator[Running]:
    """Run a node, to be spoken to at its pub/sub door. Raises StartError."""
    from skywalker.address import Address
    from skywalker.embedding import embedded

    with embedded(workers=workers, pubsub=True) as node:
        door = Address.parse(node.pubsub_address)
        yield Running(door.host, door.port, node.pid, version(workers))


@contextlib.contextmanager
def cluster(*settings: dict[str, Any]) -> Iterator[list[Node]]:
    """Run a node with each of these settings, all in one cluster. Raises StartError."""
    from skywalker.embedding import start

    with contextlib.ExitStack() as stack:
        nodes: list[Node] = []
        for each in settings:
            # A node has to be told where it can be found before it has a port: so of itself, only the last is told.
            join = nodes[0].address if nodes else "127.0.0.1:1"
            state_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="skywalker-bench-"))
            nodes.append(start(join=join, state_dir=state_dir, **each))
            stack.callback(nodes[-1].stop)
        yield nodes


def version(workers: int) -> str:
    """Return what a node of so many workers is, in words."""
    count = f"{workers} worker{'s' if workers > 1 else ''}"
    return f"skywalker {skywalker.__version__}, {count}, {build.described()}"


def encode(lanes: Lanes) -> Pair:
    """Return the scripts of a pair."""
    named = [wire.CLOJURE_TIMED_OUT] if lanes.is_first_dialect else []
    # A receiver that nobody calls for a while has not failed, so it waits for as long as it may.
    recv_wait = [values.pack(MAX_TIMEOUT_MS), *named]
    send_wait = [values.pack(lanes.timeout_ms), *named]
    ids = [values.pack(_FIRST_ID + lane) for lane in range(len(lanes.topics))]
    topics = [values.pack(topic) for topic in lanes.topics]
    sent = [values.pack(value) for value in lanes.values]
    method, group = (wire.TAKE, [values.pack("bench")]) if lanes.takes else (wire.RECV, [])
    receiver = Script(
        [wire.frame(method, id, *recv_wait, topic, *group) for id, topic in zip(ids, topics, strict=True)],
        [wire.frame(method, id, value) for id, value in zip(ids, sent, strict=True)],
        LANE_AT,
        topics=topics,
    )
    sender = Script(
        [wire.frame(wire.SEND, id, *send_wait, *rest) for id, *rest in zip(ids, topics, sent, strict=True)],
        [wire.frame(wire.SEND, id, wire.TRUE) for id in ids],
        LANE_AT,
        topics=topics,
    )
    return Pair(receiver, sender)


def lane_of(id: bytes) -> int | None:
    """Return the lane that an encoded id belongs to, None if it is none of ours."""
    return id[2] if len(id) == 3 and id[:2] == b"\xcd\x01" else None


def call_after(call: bytes, seconds: float) -> bytes:
    """Return a call with the time that is left of its own after so many seconds."""
    (frame,), _ = split(call)
    assert not isinstance(frame, BadFrame)
    method, id, timeout, *rest = frame
    left = max(0, values.unpack(timeout) - round(seconds * 1000))
    return wire.frame(method, id, values.pack(left), *rest)


PEER: Final = Peer("skywalker", started, encode)
