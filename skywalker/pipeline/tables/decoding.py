"""Values of topics to rows, as Arrow batches of just the schema that was asked for.

`topic` is the topic's name. If there is only `value` besides, it is the whole value: its very
bytes in MessagePack for BINARY, else decoded as the column's type. All other columns are the
values of a map by their names; a key that is missing is null, one without a column is left out.

A value either fits its column, perhaps in another form, or is a misfit. It is never bent until it fits: 1.5
is no BIGINT, and "1" is none either.
"""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import decimal
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgpack
import numpy
import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from skywalker.errors import ConfigError, RemoteProtocolError
from skywalker.pipeline.mistakes import DataLossError
from skywalker.pipeline.tables.reading import Mode

Convert = Callable[[Any], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)  # Python's Decimal takes more
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)  # and its date takes weeks

_INTEGERS: Final[dict[type[types.DataType], int]] = {
    types.ByteType: 8,
    types.ShortType: 16,
    types.IntegerType: 32,
    types.LongType: 64,
}


class MisfitError(ValueError):
    """A value is not of the type of its column."""


def exact_types(of: types.DataType) -> frozenset[type] | None:
    """Return the Python types of which Arrow itself makes a column as converter() would; None if there are none.

    Arrow may refuse such a value nevertheless, a number that is too large for one.
    """
    if isinstance(of, tuple(_INTEGERS)):
        return frozenset((int, type(None)))
    if isinstance(of, types.DoubleType):
        return frozenset((float, int, type(None)))
    if isinstance(of, types.BooleanType):
        return frozenset((bool, type(None)))
    if isinstance(of, types.StringType):
        return frozenset((str, type(None)))
    if isinstance(of, types.BinaryType):
        return frozenset((bytes, type(None)))
    return None


def converter(of: types.DataType, where: str, *, nullable: bool = True) -> Convert:
    """Return what turns a value into one that Arrow takes for a column of a type, and raises MisfitError if it can't.

    Raises ConfigError, naming the column `where` it is, for a type that no message has a form for.
    """
    inner = _scalar(of) or _container(of, where)
    if inner is None:
        raise ConfigError(f"column {where}: messages hold nothing of type {of.simpleString()}; read it as STRING")
    return (lambda value: None if value is None else inner(value)) if nullable else lambda value: inner(_present(value))


def _scalar(of: types.DataType) -> Convert | None:
    if isinstance(of, tuple(_INTEGERS)):
        limit = 1 << _INTEGERS[type(of)] - 1
        return lambda value: _integer(value, limit)
    if isinstance(of, types.DecimalType):
        return lambda value: _decimal(value, of.precision, of.scale)
    found: dict[type[types.DataType], Convert] = {
        types.BooleanType: lambda value: _of(value, bool),
        types.FloatType: _float32,
        types.DoubleType: _float64,
        types.StringType: _string,
        types.BinaryType: lambda value: (
            value.encode(errors="surrogateescape") if type(value) is str else _of(value, bytes)
        ),
        types.DateType: _date,
        types.TimestampType: _timestamp,
        types.TimestampNTZType: lambda value: _timestamp(value).replace(tzinfo=None),
    }
    return found.get(type(of))


def _container(of: types.DataType, where: str) -> Convert | None:
    if isinstance(of, types.ArrayType):
        element = converter(of.elementType, f"{where}.element", nullable=of.containsNull)
        return lambda value: [element(each) for each in _of(value, list)]
    if isinstance(of, types.MapType):
        key = converter(of.keyType, f"{where}.key", nullable=False)
        item = converter(of.valueType, f"{where}.value", nullable=of.valueContainsNull)
        return lambda value: [(key(name), item(each)) for name, each in _of(value, dict).items()]
    if isinstance(of, types.StructType):
        if len({*of.names}) < len(of.names):
            raise ConfigError(f"column {where} has two fields of one name, of {', '.join(of.names)}; rename one")
        fields = [
            (field.name, converter(field.dataType, f"{where}.{field.name}", nullable=field.nullable))
            for field in of.fields
        ]
        return lambda value: {name: convert(_of(value, dict).get(name)) for name, convert in fields}
    return None


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise MisfitError
    return value


def _present(value: Any) -> Any:
    if value is None:
        raise MisfitError
    return value


def _integer(value: Any, limit: int) -> int:
    if type(value) is not int or not -limit <= value < limit:
        raise MisfitError
    return value


def _float64(value: Any) -> float:
    if type(value) not in (int, float):
        raise MisfitError
    return float(value)


def _float32(value: Any) -> float:
    number = _float64(value)
    if math.isfinite(number) and abs(number) >= 2.0**128:
        raise MisfitError
    return number


def _string(value: Any) -> str:
    try:
        if type(value) is bytes:
            return value.decode()
        str(_of(value, str)).encode()  # bytes that are no UTF-8 have come as halves of surrogates
    except UnicodeError as error:
        raise MisfitError from error
    return str(value)


def _decimal(value: Any, precision: int, scale: int) -> decimal.Decimal:
    if type(value) not in (int, float, str) or not _NUMBER.fullmatch(str(value)):
        raise MisfitError
    try:
        number = decimal.Decimal(str(value))
        exact = number.quantize(decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=precision))
    except decimal.InvalidOperation as error:  # too many digits
        raise MisfitError from error
    if exact != number:
        raise MisfitError
    return exact


def _timestamp(value: Any) -> datetime.datetime:
    """Read a MessagePack timestamp, ISO 8601 or seconds since 1970, whole or not."""
    try:
        if type(value) is str:
            moment = datetime.datetime.fromisoformat(value)
            return moment.astimezone(datetime.UTC) if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        if isinstance(value, msgpack.Timestamp):
            return _EPOCH + datetime.timedelta(microseconds=value.to_unix_nano() // 1000)
        return _EPOCH + datetime.timedelta(seconds=_float64(value) if type(value) is float else _of(value, int))
    except (ValueError, OverflowError) as error:
        raise MisfitError from error


def _date(value: Any) -> datetime.date:
    if isinstance(value, msgpack.Timestamp):
        return _timestamp(value).date()
    if not _DAY.fullmatch(_of(value, str)):  # a number may be of days or of seconds
        raise MisfitError
    try:
        return datetime.date.fromisoformat(value)
    except ValueError as error:
        raise MisfitError from error


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
