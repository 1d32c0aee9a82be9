"""Rings that are known, asked for the owners of topics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pyspark.sql import functions as F

from skywalker.errors import ConfigError, JournalError
from skywalker.journal import rings
from skywalker.members import Member, Snapshot, arcs
from skywalker.ring import TOKENS
from skywalker.wire import values

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ID: Final = 8
"""Characters of a node's id that tell it from others."""

LEAST_BANDS: Final = 6
MOST_BANDS: Final = 14
"""Logarithms of how many equal bands a ring is cut into, so that a topic is looked for among few arcs."""


class Owners:
    """Who owns which tokens in each ring: that of a topic belongs to the biggest of the ring's tokens that is less."""

    def __init__(self, rings: Mapping[str, Snapshot], for_all: Snapshot | None = None) -> None:
        """Take the rings by their versions; `for_all` is one for all calls, whichever they were made in."""
        self._rings = {"": for_all} if for_all is not None else rings
        self._for_all = for_all is not None
        self._nodes = {member.id: member.name for each in (*rings.values(), for_all) for member in each or ()}

    @property
    def count(self) -> int:
        """How many rings are known."""
        return len(self._rings)

    @classmethod
    def of_files(cls, files: Iterable[Path]) -> Self:
        """Take the rings that a journal keeps. One that is damaged is not known."""
        found = {}
        for path in files:
            try:
                members = _members(values.unpack(rings.read(path), text_keys=True))
            except (JournalError, OSError, ValueError):
                continue
            if members:
                found[path.stem] = Snapshot(members)
        return cls(found)

    def with_ring(self, file: Path) -> Self:
        """Go by the ring that `skywalker ring --json` printed, for all calls. Raises ConfigError if it is no such."""
        try:
            said = json.loads(file.read_bytes())
        except OSError as error:
            raise ConfigError(f"cannot read the ring in {file}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{file} is no JSON: {error}") from error
        match said:
            case {"value": {"nodes": [_, *_] as nodes}} if members := _members(nodes):
                return type(self)(self._rings, Snapshot(members))
        raise ConfigError(f"{file} does not hold a ring; write one by: skywalker ring --json > {file}")

    def called(self, node: str) -> str:
        """Return the name of a node, with the beginning of its id if others have it, too; that alone if it has none."""
        name = self._nodes.get(node, "")
        alone = [*self._nodes.values()].count(name) == 1
        return name if name and alone else f"{name} {node[:ID]}".lstrip()

    def known(self) -> Column:
        """Return whether the ring of a call is known."""
        return F.lit(True) if self._for_all else F.col("ring").isin(*self._rings) if self._rings else F.lit(False)

    def told(self, calls: DataFrame) -> DataFrame:
        """Return calls whose ring is known, with owner_node, owner_worker and owner_token of each `token`."""
        if self._for_all:
            calls = calls.withColumn("ring", F.lit(""))
        bits = self._bands
        rows = [
            (version, *piece, arc.start, *arc.share)
            for version, ring in self._rings.items()
            for arc in arcs(ring)
            for piece in _pieces(arc.start, arc.length, bits)
        ]
        pieces = calls.sparkSession.createDataFrame(
            rows,
            "ring string, band int, low bigint, high bigint,"
            " owner_token bigint, owner_node string, first int, workers int",
        )
        is_its = F.col("token").between(F.col("low"), F.col("high"))
        banded = calls.withColumn("band", F.shiftright("token", 64 - bits).cast("int"))
        return (
            banded.alias("calls")
            .join(F.broadcast(pieces), ["ring", "band"])
            .where(is_its)
            # As skywalker.ring.worker_of has it.
            .withColumn("owner_worker", F.expr("first + int(shiftright((token & 4294967295) * workers, 32))"))
            .select("calls.*", "owner_node", "owner_worker", "owner_token")
            .drop("band")
        )

    def arcs(self, spark: SparkSession) -> DataFrame:
        """Return which part of a ring a worker has by each token: ring, owner_node, owner_worker, owner_token, arc."""
        rows = [
            (version, *place, arc.start, arc.length / TOKENS / arc.share.workers)
            for version, ring in self._rings.items()
            for arc in arcs(ring)
            for place in arc.share.places()
        ]
        schema = "ring string, owner_node string, owner_worker int, owner_token bigint, arc double"
        return spark.createDataFrame(rows, schema)

    @property
    def _bands(self) -> int:
        most = max((sum(len(member.tokens) for member in ring) for ring in self._rings.values()), default=0)
        return min(max(most.bit_length(), LEAST_BANDS), MOST_BANDS)


NO_OWNERS: Final = Owners({})
"""No ring is known."""


def _members(data: object) -> list[Member]:
    """Return the members of a ring; none if one of them makes no sense."""
    members = [Member.parse(each) for each in data] if isinstance(data, list) else []
    known = [member for member in members if member is not None]
    return known if len(known) == len(members) else []


def _pieces(start: int, length: int, bits: int) -> Iterator[tuple[int, int, int]]:
    """Yield the bands that an arc lies in, and the first and the last token of it in each."""
    shift = 64 - bits
    first, end = start + 1, start + length
    for low, high in ((first, min(end, TOKENS // 2 - 1)), (max(first, TOKENS // 2) - TOKENS, end - TOKENS)):
        for band in range(low >> shift, (high >> shift) + 1) if low <= high else ():
            yield band, max(low, band << shift), min(high, (band + 1 << shift) - 1)
