"""Segments of a journal, written as a worker writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skywalker.journal import names
from skywalker.journal.header import CALLS, HEADER_BYTES, NAMES, Header
from skywalker.journal.reading import RECORD
from skywalker.journal.record import RECORD_BYTES

MIDNIGHT_S = 1_767_312_000  # 2026-01-02, UTC


def write(
    directory: Path, count: int, worker: int = 0, begin: int = MIDNIGHT_S, span: float = 10.0, suffix: str = ".calls"
) -> Path:
    """Write a segment of so many records, answered one after the other in the `span` seconds from `begin` on."""
    directory.mkdir(parents=True, exist_ok=True)
    records = np.zeros(count, RECORD)
    records["ended"] = 1000 + np.arange(count) * span / max(count, 1)
    records["token"] = np.arange(count) % 7 - 3
    records["wait"] = 0.25
    records["size"] = 3
    records["method"] = 1 + np.arange(count) % 2
    records["outcome"] = 1 + np.arange(count) % 3
    records["door"] = 1
    header = Header(CALLS, "node", "a", "red", worker, "r1", (begin - 1000) * 10**9, begin * 10**9, 2)
    path = directory / f"a-w{worker}-{begin * 10**6:016d}{suffix}"
    path.write_bytes(header.pack() + records.tobytes())
    return path


def grow(path: Path, count: int) -> None:
    """Add so many records to a segment: copies of its first."""
    first = path.read_bytes()[HEADER_BYTES : HEADER_BYTES + RECORD_BYTES]
    with path.open("ab") as file:
        file.write(first * count)


def write_names(directory: Path, topics: dict[int, bytes]) -> Path:
    """Write a file of names."""
    header = Header(NAMES, "node", "a", "red", 0, "r1", 0, MIDNIGHT_S * 10**9)
    path = directory / f"a-w0-{MIDNIGHT_S * 10**6:016d}.names"
    path.write_bytes(header.pack() + b"".join(names.pack(token, topic) for token, topic in topics.items()))
    return path
