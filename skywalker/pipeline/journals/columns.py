"""Records and names as Arrow batches, with the columns that were asked for and no others.

Words and what is the same in all of a file cost most on their way into Spark: who needs few columns, asks for few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from skywalker.errors import ConfigError
from skywalker.journal.header import CALLS, NAMES, Header
from skywalker.journal.reading import KINDS, Records, kinds, unix_ns, waits_us

_TYPES: Final[Mapping[str, Mapping[str, DataType]]] = {
    CALLS: {
        "time": TimestampType(),
        "node": StringType(),
        "worker": IntegerType(),
        "connection": LongType(),
        "door": StringType(),
        "method": StringType(),
        "outcome": StringType(),
        "route": StringType(),
        "token": LongType(),
        "wait_us": LongType(),
        "size": IntegerType(),
        "sample": IntegerType(),
        "ring": StringType(),
        "source": StringType(),
    },
    NAMES: {"node": StringType(), "token": LongType(), "topic": StringType()},
}

_ARROW: Final[Mapping[DataType, pa.DataType]] = {
    TimestampType(): pa.timestamp("us", tz="UTC"),
    StringType(): pa.string(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
}

_FROM_RECORDS: Final[Mapping[str, Callable[[Records, Header], pa.Array]]] = {
    "time": lambda records, header: pa.array(unix_ns(records, header) // 1000).view(_ARROW[TimestampType()]),
    "connection": lambda records, header: pa.array(records["connection"].astype(np.int64)),
    "token": lambda records, header: pa.array(np.ascontiguousarray(records["token"])),
    "wait_us": lambda records, header: pa.array(waits_us(records)),
    "size": lambda records, header: pa.array(records["size"].astype(np.int32)),
}
_FROM_HEADER: Final[Mapping[str, Callable[[Header], str | int]]] = {
    "node": lambda header: header.node,
    "worker": lambda header: header.worker,
    "sample": lambda header: header.sample,
    "ring": lambda header: header.ring,
    "source": lambda header: header.source,
}
_WORDS: Final = {field: pa.array(words, pa.string()) for field, words in KINDS.items()}

Name: TypeAlias = tuple[str, int, str]
"""Node, token and topic."""


def schema_of(kind: str) -> StructType:
    """Return all columns that there are of one kind, CALLS or NAMES."""
    schema = StructType()
    for name, type in _TYPES[kind].items():
        schema = schema.add(name, type)
    return schema


def check(schema: StructType, kind: str) -> None:
    """Raise ConfigError if a column that was asked for is none, or is of another type."""
    types = _TYPES[kind]
    for field in schema:
        if field.name not in types:
            raise ConfigError(f"schema: {kind} have no column {field.name!r}; they have {', '.join(types)}")
        if field.dataType != types[field.name]:
            given, right = field.dataType.simpleString(), types[field.name].simpleString()
            raise ConfigError(f"schema: column {field.name!r} is {right}, not {given}")


class Columns:
    """Makes batches of the records of one file."""

    def __init__(self, schema: StructType, header: Header) -> None:
        self._header = header
        self._schema = _arrow_schema(schema)
        self._constants: dict[str, pa.Array] = {}  # by column, as long as the longest batch

    def batch(self, records: Records) -> pa.RecordBatch:
        """Return them as a batch."""
        return pa.RecordBatch.from_arrays([self._column(field, records) for field in self._schema], schema=self._schema)

    def _column(self, field: pa.Field, records: Records) -> pa.Array:
        name = field.name
        if name in _WORDS:
            return _WORDS[name].take(pa.array(kinds(records, name)))
        if name in _FROM_RECORDS:
            return _FROM_RECORDS[name](records, self._header)
        known = self._constants.get(name)
        if known is None or len(known) < len(records):
            known = pa.repeat(pa.scalar(_FROM_HEADER[name](self._header), field.type), len(records))
            self._constants[name] = known
        return known.slice(0, len(records))


def names_batch(schema: StructType, names: Iterable[Name]) -> pa.RecordBatch:
    """Return names as a batch."""
    rows = [*names]
    by_name = {name: [row[at] for row in rows] for at, name in enumerate(_TYPES[NAMES])}
    arrow = _arrow_schema(schema)
    return pa.RecordBatch.from_arrays([pa.array(by_name[field.name], field.type) for field in arrow], schema=arrow)


def _arrow_schema(schema: StructType) -> pa.Schema:
    return pa.schema([pa.field(field.name, _ARROW[field.dataType], field.nullable) for field in schema])
