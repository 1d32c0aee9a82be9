"""Values of topics to rows, as Arrow batches of just the schema that was asked for.

`topic` is the topic's name. If there is only `value` besides, it is the whole value: its very
bytes in MessagePack for BINARY, else decoded as the column's type. All other columns are the
values of a map by their names; a key that is missing is null, one without a column is left out.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgpack
import numpy
import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from skywalker.errors import ConfigError, RemoteProtocolError
from skywalker.pipeline.losses import DataLossError
from skywalker.pipeline.tables.cells import Convert, MisfitError, converter, exact_types
from skywalker.pipeline.tables.reading import Mode

TOPIC: Final = "topic"
VALUE: Final = "value"
CORRUPT: Final = "_corrupt_record"
"""A column of this name has the bytes of a value that did not fit, as in Spark's own sources, and else null."""

DEFAULT_SCHEMA: Final = f"{TOPIC} STRING, {VALUE} BINARY"

ROWS: Final = 20_000
"""Rows of one Arrow batch, about: enough that what a batch costs by itself does not count."""

_CANNOT: Final = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError)
_NO_VALUE: Final = object()  # of what cannot be represented in Python


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column that values are decoded for."""

    name: str
    arrow: pa.DataType
    nullable: bool
    exact: frozenset[type] | None
    convert: Convert

    def array(self, cells: list[Any]) -> tuple[pa.Array, list[int]]:
        """Return the column of some values, with null for each that does not fit, and where these are."""
        if self.exact is not None and self.exact.issuperset(map(type, cells)):
            try:
                return pa.array(cells, self.arrow), []
            except _CANNOT:
                pass  # one of them does not fit
        misfits = []
        for at, cell in enumerate(cells):
            try:
                cells[at] = self.convert(cell)
            except MisfitError:
                cells[at] = None
                misfits.append(at)
        return pa.array(cells, self.arrow), misfits


class Decoder:
    """Makes rows of one schema."""

    def __init__(self, schema: types.StructType, mode: Mode) -> None:
        """Raises ConfigError if a column has a type that no value can be of."""
        self._mode = mode
        self._schema = to_arrow_schema(schema, timezone="UTC")
        names = {field.name for field in schema.fields}
        self._whole = names - {TOPIC, CORRUPT} == {VALUE}
        self._columns: list[Column] = []
        self._raw = CORRUPT in names
        for field in schema.fields:
            if field.name == TOPIC:
                _need(field, types.StringType())
            elif field.name == CORRUPT:
                _need(field, types.BinaryType())
            elif self._whole and isinstance(field.dataType, types.BinaryType):
                self._raw = True
            else:
                self._columns.append(
                    Column(
                        field.name,
                        self._schema.field(field.name).type,
                        field.nullable,
                        exact_types(field.dataType),
                        converter(field.dataType, field.name),
                    )
                )

    def batches(self, bodies: Iterable[tuple[bytes | memoryview, int, int]]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some blocks: of each its body, how many rows to leave out, and how many to take then."""
        topics: list[tuple[str, int]] = []
        found: list[Any] = []
        raw: list[bytes] = []
        for body, skip, take in bodies:
            for topic, count, values, encoded in self._parts(body, skip, take):
                topics.append((topic, count))
                found += values
                raw += encoded
            if max(len(found), len(raw)) >= ROWS:
                yield self._batch(topics, found, raw)
                topics, found, raw = [], [], []
        if topics:
            yield self._batch(topics, found, raw)

    def _parts(
        self, body: bytes | memoryview, skip: int, take: int
    ) -> Iterator[tuple[str, int, Sequence[Any], list[bytes]]]:
        """Yield by topic how many values of a block there are; these decoded, if that is wanted, and as they came."""
        parts = _decoded(body) if not self._raw else _cut(body, decode=bool(self._columns))
        for topic, count, values, encoded in parts:
            begin, end = min(skip, count), min(skip + take, count)
            skip -= begin
            take -= end - begin
            if begin < end:
                yield topic, end - begin, values[begin:end], encoded[begin:end]
        if take:
            raise _damaged()

    def _batch(self, topics: list[tuple[str, int]], found: list[Any], raw: list[bytes]) -> pa.RecordBatch:
        misfits: set[int] = set()
        arrays: dict[str, pa.Array] = {}
        if self._columns and not self._whole:
            misfits = {at for at, value in enumerate(found) if type(value) is not dict}
            self._check(misfits, topics, "the value", "a map")
            found = [value if type(value) is dict else {} for value in found]
        for column in self._columns:
            cells = [*found] if self._whole else [value.get(column.name) for value in found]
            array, wrong = column.array(cells)
            self._check(wrong, topics, f"column {column.name}", str(column.arrow))
            if not column.nullable and array.null_count:
                topic = _topic_of(array.is_null().index(True).as_py(), topics)
                raise RemoteProtocolError(
                    f"topic {topic!r}: column {column.name} is NOT NULL, and a value for it is missing or misfit"
                )
            arrays[column.name] = array
            misfits.update(wrong)
        if TOPIC in self._schema.names:
            names = pa.array([topic for topic, _ in topics], pa.string())
            arrays[TOPIC] = names.take(pa.array(numpy.repeat(numpy.arange(len(topics)), [rows for _, rows in topics])))
        if CORRUPT in self._schema.names:
            arrays[CORRUPT] = pa.array([each if at in misfits else None for at, each in enumerate(raw)], pa.binary())
        if VALUE in self._schema.names and VALUE not in arrays:
            arrays[VALUE] = pa.array(raw, pa.binary())
        return pa.RecordBatch.from_arrays([arrays[name] for name in self._schema.names], schema=self._schema)

    def _check(self, misfits: Iterable[int], topics: list[tuple[str, int]], what: str, wanted: str) -> None:
        """Raise RemoteProtocolError for the first misfit, if that is the mode."""
        if self._mode == "FAILFAST":
            for at in misfits:
                topic = _topic_of(at, topics)
                raise RemoteProtocolError(f"topic {topic!r}: {what} is not {wanted}; mode PERMISSIVE makes it null")


def _topic_of(at: int, topics: list[tuple[str, int]]) -> str:
    """Return the topic of a row."""
    ends = [*itertools.accumulate(rows for _, rows in topics)]
    return topics[bisect.bisect_right(ends, at)][0]


def _need(field: types.StructField, wanted: types.DataType) -> None:
    if type(field.dataType) is not type(wanted):
        raise ConfigError(f"column {field.name} is {field.dataType.simpleString()}, it must be {wanted.simpleString()}")


def _unpacker() -> msgpack.Unpacker:
    return msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape", max_buffer_size=0)


def _decoded(body: bytes | memoryview) -> Iterator[tuple[str, int, list[Any], list[bytes]]]:
    """Yield each topic of a body and its values, decoded."""
    unpacker = _unpacker()
    unpacker.feed(body)
    parts: list[tuple[str, int, list[Any], list[bytes]]] = []
    try:
        while (begin := unpacker.tell()) < len(body):
            topic, count = _head(unpacker)
            values = list(itertools.islice(unpacker, count))
            if len(values) < count:
                raise _damaged()
            parts.append((topic, count, values, []))
    except (ValueError, TypeError):  # somewhere in it is what cannot be represented in Python
        yield from parts
        yield from ((topic, count, values, []) for topic, count, values, _ in _cut(body[begin:], decode=True))
    else:
        yield from parts


def _cut(body: bytes | memoryview, *, decode: bool) -> Iterator[tuple[str, int, list[Any], list[bytes]]]:
    """Yield each topic of a body and its values, as they came, and decoded too if that is wanted."""
    unpacker = _unpacker()
    unpacker.feed(body)
    while unpacker.tell() < len(body):
        topic, count = _head(unpacker)
        cuts = [unpacker.tell()]
        try:
            for _ in range(count):
                unpacker.skip()
                cuts.append(unpacker.tell())
        except msgpack.OutOfData:
            raise _damaged() from None
        encoded = [bytes(body[low:high]) for low, high in itertools.pairwise(cuts)]
        yield topic, count, [_value(each) for each in encoded] if decode else [], encoded


def _head(unpacker: msgpack.Unpacker) -> tuple[str, int]:
    """Return a topic and how many values of it follow. Raises DataLossError."""
    try:
        topic, count = unpacker.unpack(), unpacker.unpack()
    except msgpack.OutOfData:
        raise _damaged() from None
    if not isinstance(topic, str) or type(count) is not int or count < 0:
        raise _damaged()
    return topic, count


def _damaged() -> DataLossError:
    return DataLossError("rows are lost: a block of them holds fewer values than it says, so it is damaged")


def _value(encoded: bytes) -> Any:
    try:
        return msgpack.unpackb(encoded, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError):
        return _NO_VALUE
