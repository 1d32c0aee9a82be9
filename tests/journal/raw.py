"""Journals read by the page on their format alone, without a line of what is tested."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

HEADER_BYTES = 1024
RECORD = struct.Struct("<dqfIIBBBB")

METHODS = ("?", "send", "recv", "take", "publish")
OUTCOMES = ("?", "met", "prompt", "timed-out", "cancelled", "gone", "busy", "draining", "error", "unknown-outcome")
ROUTES = ("here", "sibling", "node")
DOORS = ("?", "junction", "pubsub")


class Record(NamedTuple):
    """One record, and the worker whose it is."""

    worker: int
    ended: float
    token: int
    wait: float
    size: int
    connection: int
    method: str
    outcome: str
    route: str
    door: str


def header_of(path: Path) -> dict[str, Any]:
    """Return what the header of a file says."""
    data = path.read_bytes()[:HEADER_BYTES]
    magic, version, _, length = struct.unpack_from("<8sHHI", data)
    assert (magic, version) == (b"skyjrnl\0", 1)
    said: dict[str, Any] = msgpack.unpackb(data[16 : 16 + length])
    return said


def records_of(*paths: Path) -> list[Record]:
    """Return the whole records of files."""
    found = []
    for path in paths:
        worker = header_of(path)["worker"]
        data = path.read_bytes()[HEADER_BYTES:]
        for at in range(0, len(data) - RECORD.size + 1, RECORD.size):
            ended, token, wait, size, connection, method, outcome, route, door = RECORD.unpack_from(data, at)
            words = METHODS[method], OUTCOMES[outcome], ROUTES[route], DOORS[door]
            found.append(Record(worker, ended, token, wait, size, connection, *words))
    return found


def calls_in(directory: Path) -> list[Record]:
    """Return all records of a journal, those in segments that are still open among them."""
    return records_of(*sorted(directory.glob("*.calls")), *sorted(directory.glob("*.calls.open")))


def names_in(directory: Path) -> dict[int, Any]:
    """Return what the tokens in a journal stand for."""
    found = {}
    for path in sorted(directory.glob("*.names")):
        data = path.read_bytes()
        at = HEADER_BYTES
        while at < len(data):
            token, length = struct.unpack_from("<qH", data, at)
            at += 10 + length
            found[token] = msgpack.unpackb(data[at - length : at])
    return found
