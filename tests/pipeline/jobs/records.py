"""Records of calls by chance, as tables and as plain tuples: what jobs are checked on."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from skywalker.address import Address
from skywalker.members import Member, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = (
    *(pa.timestamp("us", "UTC"), pa.string(), pa.int32(), pa.int64(), pa.string(), pa.string(), pa.string()),
    *(pa.string(), pa.int64(), pa.int64(), pa.int32(), pa.int32(), pa.string(), pa.string()),
)
"""Of the columns, in the order of Record."""

METHODS = ("send", "recv", "take", "publish")
OUTCOMES = ("met", "prompt", "timed-out", "cancelled", "gone", "busy", "draining", "error", "unknown")
EPOCH_US = 1_735_689_597_000_000  # 3 s before a minute, and a year, begins
NAMES = ("a", "b", "node c")


class Record(NamedTuple):
    """One call, as the table has it; but `time` is in µs of Unix time."""

    time: int
    node: str
    worker: int
    connection: int
    door: str
    method: str
    outcome: str
    route: str
    token: int
    wait_us: int
    size: int
    sample: int
    ring: str
    source: str


def by_chance(count: int, seed: int, topics: int = 40, seconds: float = 150.0) -> list[Record]:
    """Make calls of every kind: extreme tokens and waits, equal times, routes that fit the owner of two rings."""
    random = np.random.default_rng(seed)
    edges = [-(2**63), 2**63 - 1, 0, -1]
    tokens = [*edges, *random.integers(-(2**63), 2**63, max(0, topics - len(edges))).tolist()][:topics]
    owners = {
        (ring, token): (NAMES[random.integers(len(NAMES))], int(random.integers(2)))
        for ring in ("r1", "r2")
        for token in tokens
    }
    records = []
    for _ in range(count):
        token = tokens[min(int(random.exponential(topics / 5)), topics - 1)]
        ring = "r1" if random.random() < 0.7 else "r2"
        node, worker = NAMES[random.integers(len(NAMES))], int(random.integers(2))
        owner = owners[ring, token]
        route = "here" if owner == (node, worker) else "sibling" if owner[0] == node else "node"
        wait = int(random.choice([0, 1, 999, 1000, 2**32 - 1]) if random.random() < 0.2 else random.lognormal(8, 3))
        records.append(
            Record(
                EPOCH_US + int(random.integers(int(seconds * 50))) * 20_000,
                node,
                worker,
                int(random.integers(9)),
                str(random.choice(["junction", "pubsub"])),
                str(random.choice(METHODS)),
                str(random.choice(OUTCOMES, p=[0.2, 0.3, 0.3, 0.04, 0.04, 0.04, 0.03, 0.03, 0.02])),
                route,
                token,
                min(wait, 2**32 - 1),
                int(random.integers(100)),
                int(random.choice([1, 16])),
                ring,
                "node",
            )
        )
    return records


def table(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    """Return records as a table."""
    columns = [*zip(*records, strict=True)] or [()] * len(TYPES)
    arrays = [pa.array(column, type) for column, type in zip(columns, TYPES, strict=True)]
    return spark.createDataFrame(pa.table(arrays, Record._fields))


def us_of(time: datetime.datetime) -> int:
    """Return the Unix time in µs of what Spark gives: a time of this machine's zone."""
    return round(time.astimezone(datetime.UTC).timestamp() * 1e6)


def a_ring() -> Snapshot:
    """Make a ring of three nodes, whose tokens include the lowest and the highest."""
    tokens = {"a": (-(2**63), 5), "b": (-(2**62), 0, 2**62), "node c": (17, 2**63 - 1)}
    return Snapshot(
        Member(name, f"called {name}", Address("127.0.0.1", 1 + at), 2, False, each)
        for at, (name, each) in enumerate(tokens.items())
    )
