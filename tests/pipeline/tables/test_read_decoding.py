"""Values to rows: what fits which column, what becomes null, and that nothing is bent to fit."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import msgpack
import pytest
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from skywalker.errors import ConfigError, RemoteProtocolError
from skywalker.pipeline.tables.decoding import Decoder
from skywalker.pipeline.tables.reading import Mode
from skywalker.pipeline.tables.spool import HEADER_BYTES, pack

S = types
NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 250_000, tzinfo=datetime.UTC)
BAD_KEY = b"\x81\x91\x01\x02"  # {[1]: 2}, which Python has no form for


def schema(**columns: types.DataType) -> types.StructType:
    return types.StructType([types.StructField(name, of) for name, of in columns.items()])


STRICT = types.StructType([types.StructField("a", types.LongType(), nullable=False)])


def body(groups: dict[str, list[bytes]]) -> bytes:
    return pack(0, groups)[HEADER_BYTES:]


def rows(of: types.StructType, *values: Any, mode: Mode = "PERMISSIVE", raw: bool = False) -> list[dict[str, Any]]:
    encoded = list(values) if raw else [msgpack.packb(value) for value in values]
    found = list(Decoder(of, mode).batches([(body({"t": encoded}), 0, len(encoded))]))
    assert all(batch.schema.equals(to_arrow_schema(of, timezone="UTC")) for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("of", "value", "cell"),
    [
        (S.LongType(), 5, 5),
        (S.LongType(), -(2**63), -(2**63)),
        (S.LongType(), 2**63, None),
        (S.LongType(), 1.0, None),
        (S.LongType(), "1", None),
        (S.LongType(), True, None),
        (S.ByteType(), 127, 127),
        (S.ByteType(), 128, None),
        (S.DoubleType(), 1, 1.0),
        (S.DoubleType(), 2**53 + 1, float(2**53 + 1)),
        (S.DoubleType(), True, None),
        (S.DoubleType(), "1.5", None),
        (S.FloatType(), 0.5, 0.5),
        (S.FloatType(), 1e300, None),
        (S.BooleanType(), True, True),
        (S.BooleanType(), 1, None),
        (S.StringType(), "é", "é"),
        (S.StringType(), b"caf\xc3\xa9", "café"),
        (S.StringType(), b"\xff", None),
        (S.StringType(), 1, None),
        (S.BinaryType(), b"\xff\x00", b"\xff\x00"),
        (S.BinaryType(), "é", "é".encode()),
        (S.BinaryType(), [1], None),
        (S.DecimalType(6, 2), "1234.5", decimal.Decimal("1234.50")),
        (S.DecimalType(6, 2), 0.1, decimal.Decimal("0.10")),
        (S.DecimalType(6, 2), 12345, None),
        (S.DecimalType(6, 2), "0.125", None),
        (S.DecimalType(6, 2), "x", None),
        (S.DecimalType(6, 2), "NaN", None),
        (S.DecimalType(6, 2), "-1.5e2", decimal.Decimal("-150.00")),
        (S.DecimalType(6, 2), 1e-2, decimal.Decimal("0.01")),
        (S.DecimalType(6, 2), "1_0", None),
        (S.DecimalType(6, 2), " 1 ", None),
        (S.DecimalType(6, 2), "\uff11", None),
        (S.DecimalType(6, 2), "", None),
        (S.TimestampType(), msgpack.Timestamp.from_datetime(NOON), NOON),
        (S.TimestampType(), "2024-02-29T14:00:00.25+02:00", NOON),
        (S.TimestampType(), "2024-02-29 12:00:00.25", NOON),
        (S.TimestampType(), NOON.timestamp(), NOON),
        (S.TimestampType(), int(NOON.timestamp()), NOON.replace(microsecond=0)),
        (S.TimestampType(), 10**18, None),
        (S.TimestampType(), float("nan"), None),
        (S.TimestampType(), "noon", None),
        (S.TimestampNTZType(), "2024-02-29T12:00:00.25Z", NOON.replace(tzinfo=None)),
        (S.DateType(), "2024-02-29", NOON.date()),
        (S.DateType(), "2024-02-30", None),
        (S.DateType(), "2024-02-29T13:00:00", None),
        (S.DateType(), "2024-W01-1", None),
        (S.DateType(), "20240229", None),
        (S.DateType(), 19782, None),
        (S.DateType(), msgpack.Timestamp.from_datetime(NOON), NOON.date()),
        (S.ArrayType(S.LongType()), [1, None, 3], [1, None, 3]),
        (S.ArrayType(S.LongType()), [1, "2"], None),
        (S.ArrayType(S.StringType()), "ab", None),
        (S.ArrayType(S.LongType(), containsNull=False), [1, 2], [1, 2]),
        (S.ArrayType(S.LongType(), containsNull=False), [1, None], None),
        (S.ArrayType(S.ArrayType(S.LongType(), containsNull=False)), [[1], None, [None]], None),
        (S.MapType(S.StringType(), S.LongType(), valueContainsNull=False), {"a": None}, None),
        (STRICT, {"a": 1}, {"a": 1}),
        (STRICT, {"a": None}, None),
        (STRICT, {}, None),
        (S.ArrayType(S.ByteType()), b"ab", None),
        (S.MapType(S.StringType(), S.DoubleType()), {"a": 1, "b": None}, [("a", 1.0), ("b", None)]),
        (S.MapType(S.LongType(), S.BooleanType()), {1: True}, [(1, True)]),
        (S.MapType(S.StringType(), S.LongType()), {1: 1}, None),
        (S.MapType(S.StringType(), S.LongType()), {None: 1}, None),
        (schema(a=S.LongType(), b=schema(c=S.StringType())), {"b": {"c": "x", "d": 1}}, {"a": None, "b": {"c": "x"}}),
        (schema(a=S.LongType()), [1], None),
        (schema(a=S.LongType()), {"a": "x"}, None),
        (S.LongType(), None, None),
    ],
)
def test_a_value_fits_its_column_or_is_null(of: types.DataType, value: Any, cell: Any) -> None:
    assert rows(schema(c=of, d=S.LongType()), {"c": value, "d": 1}) == [{"c": cell, "d": 1}]
    # Among others the quick way is tried first, and must come to the same.
    assert [row["c"] for row in rows(schema(c=of), {"c": None}, {"c": value}, {})] == [None, cell, None]


def test_a_map_fills_the_columns_of_its_keys_and_the_topic_is_that_of_the_call() -> None:
    of = schema(topic=S.StringType(), id=S.LongType(), name=S.StringType())
    assert rows(of, {"id": 1, "topic": "mine", "other": 2}, {"name": "n"}) == [
        {"topic": "t", "id": 1, "name": None},
        {"topic": "t", "id": None, "name": "n"},
    ]


def test_a_value_is_bytes_of_messagepack_as_they_came() -> None:
    of = schema(topic=S.StringType(), value=S.BinaryType())
    odd = [b"\xcd\x00\x05", b"\xc0", b"\xd9\x01a", BAD_KEY, b"\xc7\x00\x07"]  # not the shortest, nor all known here
    assert [row["value"] for row in rows(of, *odd, raw=True)] == odd


def test_a_lone_value_is_decoded_as_a_whole() -> None:
    assert rows(schema(value=S.StringType()), "a", b"b", 3) == [{"value": "a"}, {"value": "b"}, {"value": None}]
    assert rows(schema(value=schema(id=S.LongType())), {"id": 3}) == [{"value": {"id": 3}}]


def test_what_does_not_fit_is_in_the_corrupt_record_as_it_came() -> None:
    of = schema(id=S.LongType(), _corrupt_record=S.BinaryType())
    values = [msgpack.packb({"id": 1}), msgpack.packb({"id": "x"}), msgpack.packb([1]), BAD_KEY, msgpack.packb({})]
    found = rows(of, *values, raw=True)
    assert [row["id"] for row in found] == [1, None, None, None, None]
    assert [row["_corrupt_record"] for row in found] == [None, values[1], values[2], BAD_KEY, None]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"id": "x"}, "topic 't': column id is not int64"),
        (7, "topic 't': the value is not a map"),
        ({"all": [1, None]}, "topic 't': column all is not list<element: int64 not null>"),
    ],
)
def test_failfast_says_which_topic_and_column(value: Any, problem: str) -> None:
    with pytest.raises(RemoteProtocolError, match=problem):
        rows(schema(id=S.LongType(), all=S.ArrayType(S.LongType(), False)), {"id": 1}, value, mode="FAILFAST")


def test_a_column_that_is_not_null_is_never_null() -> None:
    of = types.StructType([types.StructField("id", types.LongType(), nullable=False)])
    assert rows(of, {"id": 1}) == [{"id": 1}]
    for missing in ({}, {"id": None}, {"id": "x"}):
        blocks_of = body({"t": [msgpack.packb({"id": 1})] * 2, "u": [msgpack.packb(missing)]})
        with pytest.raises(RemoteProtocolError, match="topic 'u': column id is NOT NULL"):
            list(Decoder(of, "PERMISSIVE").batches([(blocks_of, 0, 3)]))


@pytest.mark.parametrize(
    ("of", "problem"),
    [
        (schema(x=S.DayTimeIntervalType()), "column x"),
        (schema(x=S.ArrayType(S.DayTimeIntervalType())), "column x.element"),
        (
            schema(x=types.StructType([*schema(y=S.LongType()), *schema(y=S.LongType())])),
            "column x has two fields of one",
        ),
        (schema(topic=S.LongType(), value=S.BinaryType()), "column topic is bigint, it must be string"),
        (schema(x=S.LongType(), _corrupt_record=S.StringType()), "column _corrupt_record is string"),
    ],
)
def test_a_schema_that_no_value_can_have_is_refused_by_column(of: types.StructType, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Decoder(of, "PERMISSIVE")


def test_rows_of_many_topics_and_blocks_keep_their_topics_whatever_is_left_out() -> None:
    luck = random.Random(7)
    of = schema(topic=S.StringType(), n=S.LongType())
    expected, bodies = [], []
    for _ in range(50):
        groups = {f"t{topic}": [luck.randrange(1000) for _ in range(luck.randrange(1, 9))] for topic in range(3)}
        all_of_it = [{"topic": topic, "n": n} for topic, found in groups.items() for n in found]
        skip = luck.randrange(len(all_of_it))
        take = luck.randrange(1, len(all_of_it) - skip + 1)
        expected += all_of_it[skip : skip + take]
        packed = {topic: [msgpack.packb({"n": n}) for n in found] for topic, found in groups.items()}
        bodies.append((body(packed), skip, take))
    batches = Decoder(of, "PERMISSIVE").batches(bodies)
    assert [row for batch in batches for row in batch.to_pylist()] == expected
