"""Rows as messages: what is sent for a row of a table, and to which topic.

The topic is in a column of its own, or one for all rows. Of the other columns a message is a map from name to value;
a lone column `value` is the message itself, and if it is BINARY, its encoded form, as reading a topic yields it. So
what was read and is written again is the same message, byte for byte.
"""

from __future__ import annotations

import datetime
import decimal
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, Final

import msgpack
from pyspark.sql import types

from skywalker.errors import ConfigError, LocalProtocolError
from skywalker.wire import values
from skywalker.wire.junction import NIL

if TYPE_CHECKING:
    import pyarrow

VALUE: Final = "value"
"""The column that is the message itself, if there is no other."""

ID: Final = "_id"
"""The key of a message under which its de-duplication id is."""

_ATOMS: Final = (
    *(types.NullType, types.BooleanType, types.ByteType, types.ShortType, types.IntegerType, types.LongType),
    *(types.FloatType, types.DoubleType, types.StringType, types.CharType, types.VarcharType, types.BinaryType),
    *(types.TimestampType, types.TimestampNTZType, types.DateType, types.DecimalType),
)
_TOPICS: Final = (
    *(types.StringType, types.CharType, types.VarcharType, types.BinaryType),
    *(types.ByteType, types.ShortType, types.IntegerType, types.LongType),
)


class Encoder:
    """Makes messages of the rows of one schema. It can be pickled."""

    def __init__(self, schema: types.StructType, *, topic: str | None, topic_column: str) -> None:
        """Send to `topic`, or without one to what `topic_column` says, which is not in the message in either case.

        Raises ConfigError if the columns don't allow that.
        """
        self._topic = None if topic is None else values.pack(topic)
        self._topic_column = topic_column
        fields = [field for field in schema.fields if field.name != topic_column]
        if topic is None:
            _check_topic(schema, topic_column)
        if not fields:
            raise ConfigError(f"there is no column besides {topic_column!r}; a message needs one, such as 'value'")
        for field in fields:
            _check(field.name, field.dataType)
        self._names = [field.name for field in fields]
        if len({*self._names}) < len(self._names):
            raise ConfigError(f"two columns have one name, of {', '.join(self._names)}; rename one")
        self._is_value = self._names == [VALUE]
        self._is_encoded = self._is_value and isinstance(fields[0].dataType, types.BinaryType)

    def check_ids(self) -> None:
        """Raise ConfigError if the messages can't have ids because the rows have some already."""
        if ID in self._names:
            raise ConfigError(f"the rows have a column {ID!r}, which is where dedup would put ids of its own; drop one")

    def messages(self, batch: pyarrow.RecordBatch, ids: Ids | None = None) -> Iterable[tuple[bytes, bytes]]:
        """Return for each row the encoded topic and the encoded message, with an id if `ids` are given.

        Raises LocalProtocolError for a row without a topic, or one that can't be sent.
        """
        return zip(self._topics(batch), self._values(batch, ids), strict=False)

    def _topics(self, batch: pyarrow.RecordBatch) -> Iterable[bytes]:
        if self._topic is not None:
            return repeat(self._topic, batch.num_rows)
        column = batch.column(self._topic_column)
        if column.null_count:
            raise LocalProtocolError(
                f"{column.null_count} rows have no topic: column {self._topic_column!r} is null; filter them out"
            )
        return map(_packer().pack, column.to_pylist())

    def _values(self, batch: pyarrow.RecordBatch, ids: Ids | None) -> Iterable[bytes]:
        if self._is_value:
            column = batch.column(VALUE)
            # The form of what is encoded already is for the node to check, which does in any case.
            encoded = column.fill_null(NIL).to_pylist() if self._is_encoded else _packed(column)
            return encoded if ids is None else ids.around(encoded)
        pack, header = _packer().pack, msgpack.Packer().pack_map_header
        if ids is None:
            return _joined(header(len(self._names)), self._pairs(batch, pack))
        return ids.before(header(len(self._names) + 1), _joined(b"", self._pairs(batch, pack)))

    def _pairs(self, batch: pyarrow.RecordBatch, pack: Callable[[str], bytes]) -> list[Iterable[bytes]]:
        parts: list[Iterable[bytes]] = []
        for name in self._names:
            parts += (repeat(pack(name)), _packed(batch.column(name)))
        return parts


class Ids:
    """The de-duplication ids of one partition: text that says where the row was, and a checksum of the message.

    A row that is sent again from the same place is the same message, unless its source had others the second time;
    then the checksum differs, so that no receiver drops it for the first.
    """

    def __init__(self, place: str) -> None:
        """Have ids begin with `place`, which no other partition has."""
        self._place = place
        self._rows = count()

    def around(self, encoded: Iterable[bytes]) -> Iterator[bytes]:
        """Yield maps of an id and the value."""
        return self.before(b"\x82", (_VALUE_KEY + value for value in encoded))

    def before(self, header: bytes, pairs: Iterable[bytes]) -> Iterator[bytes]:
        """Yield maps whose first pair is the id; the header counts it."""
        pack = _packer().pack
        start = header + values.pack(ID)
        for row, rest in zip(self._rows, pairs, strict=False):
            yield b"".join((start, pack(f"{self._place}/{row}/{zlib.crc32(rest):08x}"), rest))


_VALUE_KEY: Final = values.pack(VALUE)


def _joined(start: bytes, parts: list[Iterable[bytes]]) -> Iterable[bytes]:
    return map(b"".join, zip(repeat(start), *parts, strict=False))


def _packer() -> msgpack.Packer:
    return msgpack.Packer(datetime=True, default=_as_text, unicode_errors="surrogateescape")


def _packed(column: pyarrow.Array) -> Iterable[bytes]:
    return map(_packer().pack, column.to_pylist(maps_as_pydicts="strict"))


def _as_text(value: Any) -> str:
    """Return what MessagePack has no type for. It does for a time with a zone, which never gets here."""
    if isinstance(value, datetime.date):  # also a datetime without a zone
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"  # and not 0E-18
    raise TypeError(f"{type(value).__name__} cannot be encoded as MessagePack")


def _check_topic(schema: types.StructType, column: str) -> None:
    if column not in schema.names:
        raise ConfigError(
            f"no topic: give the option 'topic', or a column {column!r} (its name is the option 'topicColumn'); "
            f"there are {', '.join(schema.names)}"
        )
    kind = schema[column].dataType
    if not isinstance(kind, _TOPICS):
        raise ConfigError(f"the topic column {column!r} is {kind.simpleString()}; cast it to string, integer or binary")


def _check(name: str, kind: types.DataType) -> None:
    """Raise ConfigError if a column's type cannot be encoded as MessagePack."""
    match kind:
        case types.ArrayType(elementType=element):
            _check(name, element)
        case types.MapType(keyType=key, valueType=value):
            if isinstance(key, types.ArrayType | types.MapType | types.StructType):
                raise ConfigError(f"column {name!r} is a map with keys of type {key.simpleString()}; cast them")
            _check(name, key)
            _check(name, value)
        case types.StructType(fields=fields, names=names):
            if len({*names}) < len(names):
                raise ConfigError(f"column {name!r} has two fields of one name, of {', '.join(names)}; rename one")
            for field in fields:
                _check(f"{name}.{field.name}", field.dataType)
        case _ if not isinstance(kind, _ATOMS):
            raise ConfigError(f"column {name!r} is {kind.simpleString()}, which MessagePack does not have: cast it")
