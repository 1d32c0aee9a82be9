"""Journals for tests, made without a node: records with any numbers, in files in any state."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from skywalker.journal import names
from skywalker.journal.header import CALLS, NAMES, Header
from skywalker.journal.reading import RECORD, Records
from skywalker.journal.record import DOORS, METHODS, OUTCOMES, ROUTES
from skywalker.journal.segments import OPEN, writer_of

SECOND = 1_000_000_000
NOON = 1_750_000_000 * SECOND
"""Unix ns at which journals of tests begin, unless they say otherwise."""


def header(**changes: Any) -> Header:
    """The header of a file of calls of worker 0 of the node "red"; its monotonic clock began at NOON."""
    whole = Header(CALLS, "node", "red", "red", 0, "r1", NOON, NOON)
    return dataclasses.replace(whole, **changes)


def records(count: int, seed: int = 0, **fields: Any) -> Records:
    """So many records of one second, in order; of the fields that are not given each has any that is allowed."""
    random = np.random.default_rng(seed)
    made = np.zeros(count, RECORD)
    made["ended"] = np.sort(random.random(count))
    made["token"] = random.integers(-(2**63), 2**63 - 1, count)
    made["wait"] = random.exponential(0.01, count)
    made["size"] = random.integers(0, 65_000, count)
    made["connection"] = random.integers(0, 100, count)
    made["method"] = random.integers(1, len(METHODS), count)
    made["outcome"] = random.integers(1, len(OUTCOMES), count)
    made["route"] = random.integers(0, len(ROUTES), count)
    made["door"] = random.integers(1, len(DOORS), count)
    for name, value in fields.items():
        made[name] = value
    return made


def put(directory: Path, header: Header, made: Records, *, is_open: bool = False, torn: bytes = b"") -> Path:
    """Write a file of calls as its writer would have, with `torn` bytes behind its records."""
    directory.mkdir(parents=True, exist_ok=True)
    end = f".calls{OPEN if is_open else ''}"
    path = directory / f"{writer_of(header.node, header.worker)}-{header.opened_ns // 1000:016d}{end}"
    path.write_bytes(header.pack() + made.tobytes() + torn)
    return path


def put_names(directory: Path, header: Header, entries: dict[int, bytes], torn: bytes = b"") -> Path:
    """Write a file of names as its writer would have."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{writer_of(header.node, header.worker)}-{header.opened_ns // 1000:016d}.names"
    packed = b"".join(names.pack(token, topic) for token, topic in entries.items())
    path.write_bytes(dataclasses.replace(header, kind=NAMES).pack() + packed + torn)
    return path


def add(path: Path, made: Records) -> None:
    """Add records to a file."""
    with path.open("ab") as file:
        file.write(made.tobytes())


def complete(path: Path) -> Path:
    """Rename a file as its writer does when it is complete."""
    return path.rename(path.with_suffix(""))
