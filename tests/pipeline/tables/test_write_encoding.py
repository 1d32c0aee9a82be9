"""Rows to messages: what a column becomes, which column says where a row goes, and what an id is made of."""

from __future__ import annotations

import datetime
import decimal
import itertools
from typing import Any

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType, TimeType

from skywalker.errors import ConfigError, LocalProtocolError
from skywalker.pipeline.tables.decoding import Decoder
from skywalker.pipeline.tables.encoding import Encoder, Ids
from skywalker.wire import values

pytestmark = pytest.mark.usefixtures("spark")  # which reads the text of schemas

NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=datetime.UTC)


def parsed(schema: str) -> StructType:
    fields = StructType.fromDDL(schema)
    assert isinstance(fields, StructType)
    return fields


def batch_of(schema: str, *rows: tuple[Any, ...]) -> tuple[StructType, pa.RecordBatch]:
    fields = parsed(schema)
    arrow = to_arrow_schema(fields, timezone="UTC")
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), arrow, strict=True)]
    return fields, pa.RecordBatch.from_arrays(columns, schema=arrow)


def encoded(schema: str, *rows: tuple[Any, ...], topic: str | None = None, ids: Ids | None = None) -> list[Any]:
    fields, batch = batch_of(schema, *rows)
    return list(Encoder(fields, topic=topic, topic_column="topic").messages(batch, ids))


def decoded(schema: str, *rows: tuple[Any, ...], topic: str | None = None, ids: Ids | None = None) -> list[Any]:
    return [
        (values.unpack(where), values.unpack(value)) for where, value in encoded(schema, *rows, topic=topic, ids=ids)
    ]


def test_columns_are_a_map_without_the_topic() -> None:
    schema = "id LONG, topic STRING, word STRING, x DOUBLE, yes BOOLEAN, raw BINARY"
    assert decoded(schema, (1, "a", "one", 0.5, True, b"\xff"), (2, "b", None, None, None, None)) == [
        ("a", {"id": 1, "word": "one", "x": 0.5, "yes": True, "raw": b"\xff"}),
        ("b", {"id": 2, "word": None, "x": None, "yes": None, "raw": None}),
    ]


def test_a_topic_for_all_rows_goes_before_the_column() -> None:
    assert decoded("topic STRING, id LONG", ("a", 1), (None, 2), topic="b") == [("b", {"id": 1}), ("b", {"id": 2})]


def test_topics_are_integers_and_binaries_too() -> None:
    assert decoded("topic INT, id LONG", (7, 1)) == [(7, {"id": 1})]
    assert decoded("topic BINARY, id LONG", (b"t", 1)) == [(b"t", {"id": 1})]


def test_a_lone_value_is_the_message_and_a_binary_one_is_its_encoded_form() -> None:
    packed = b"\xcd\x00\x05"  # 5, in a form that no packer of ours would choose
    assert encoded("topic STRING, value BINARY", ("t", packed), ("t", None)) == [
        (b"\xa1t", packed),
        (b"\xa1t", b"\xc0"),
    ]
    assert decoded("topic STRING, value STRING", ("t", "words")) == [("t", "words")]
    assert decoded("value ARRAY<INT>", ([1, None],), topic="t") == [("t", [1, None])]


def test_a_decimal_is_its_digits_however_small_it_is() -> None:
    for number in ("0.000000000000000000", "0.000000120000000000", "-12345678901234567890.000000000000000000"):
        message = decoded("value DECIMAL(38,18)", (decimal.Decimal(number),), topic="t")
        assert message == [("t", number)]


def test_what_messagepack_has_no_type_for_is_text_and_a_time_is_its_timestamp() -> None:
    ((_, message),) = decoded(
        "topic STRING, at TIMESTAMP, there TIMESTAMP_NTZ, day DATE, price DECIMAL(9,2), deep STRUCT<m: MAP<INT, DATE>>",
        ("t", NOON, NOON.replace(tzinfo=None), NOON.date(), decimal.Decimal("1.50"), {"m": [(1, NOON.date())]}),
    )
    assert message["at"] == msgpack.Timestamp.from_datetime(NOON)
    del message["at"]
    assert message == {
        "there": "2024-02-29T12:00:00.123456",
        "day": "2024-02-29",
        "price": "1.50",
        "deep": {"m": {1: "2024-02-29"}},
    }


cells = st.tuples(
    st.sampled_from(["a", "b", ""]),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(),
    st.none() | st.binary(),
    st.none() | st.floats(allow_nan=False),
    st.none()
    | st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1), timezones=st.just(datetime.UTC)),
    st.none() | st.dates(),
    st.none() | st.decimals(-999, 999, places=2),
    st.none() | st.lists(st.none() | st.booleans()),
)


@given(st.lists(cells, min_size=1, max_size=20))
def test_what_is_read_again_is_what_was_written(rows: list[tuple[Any, ...]]) -> None:
    schema = (
        "topic STRING, i LONG, s STRING, b BINARY, x DOUBLE, at TIMESTAMP, day DATE, d DECIMAL(9,2), l ARRAY<BOOLEAN>"
    )
    fields, batch = batch_of(schema, *rows)
    messages = Encoder(fields, topic=None, topic_column="topic").messages(batch)
    body = b"".join(topic + b"\x01" + value for topic, value in messages)
    (read,) = Decoder(fields, "FAILFAST").batches([(body, 0, len(rows))])
    assert read.equals(batch)


def test_ids_tell_where_a_row_was_and_the_same_rows_have_the_same_again() -> None:
    rows = (("t", 1), ("t", 1), ("t", 2))
    first = decoded("topic STRING, n LONG", *rows, ids=Ids("query/3/0"))
    assert [set(message) for _, message in first] == [{"_id", "n"}] * 3
    ids = [message["_id"] for _, message in first]
    assert [id.rpartition("/")[0] for id in ids] == ["query/3/0/0", "query/3/0/1", "query/3/0/2"]
    assert decoded("topic STRING, n LONG", *rows, ids=Ids("query/3/0")) == first
    elsewhere = decoded("topic STRING, n LONG", *rows, ids=Ids("query/3/1"))
    assert not {message["_id"] for _, message in elsewhere} & {*ids}


def test_another_row_at_the_same_place_has_another_id() -> None:
    (one,) = decoded("topic STRING, n LONG", ("t", 1), ids=Ids("query/3/0"))
    (other,) = decoded("topic STRING, n LONG", ("t", 2), ids=Ids("query/3/0"))
    assert one[1]["_id"] != other[1]["_id"]


def test_rows_are_numbered_through_all_batches_of_a_partition() -> None:
    fields, batch = batch_of("n LONG", (1,), (2,))
    encoder, ids = Encoder(fields, topic="t", topic_column="topic"), Ids("w/0")
    all_ids = [values.unpack(value)["_id"] for _ in range(3) for _, value in encoder.messages(batch, ids)]
    assert [id.split("/")[2] for id in all_ids] == ["0", "1", "2", "3", "4", "5"]


def test_a_lone_value_with_an_id_is_in_an_envelope() -> None:
    ((_, message),) = decoded("topic STRING, value BINARY", ("t", b"\x93\x01\x02\x03"), ids=Ids("w/0"))
    assert message.pop("_id").startswith("w/0/0/")
    assert message == {"value": [1, 2, 3]}


def test_maps_of_any_size_have_ids() -> None:
    for size in (1, 14, 15, 16, 40):
        schema = ", ".join(f"c{n} INT" for n in range(size))
        ((_, message),) = decoded(schema, tuple(range(size)), topic="t", ids=Ids("w/0"))
        assert len(message) == size + 1
        assert [*itertools.islice(message, 2)] == ["_id", "c0"]


def test_rows_without_a_topic_are_an_error_that_counts_them() -> None:
    with pytest.raises(LocalProtocolError, match="2 rows have no topic: column 'topic' is null"):
        encoded("topic STRING, n LONG", ("t", 1), (None, 2), (None, 3))


@pytest.mark.parametrize(
    ("schema", "topic", "said"),
    [
        ("id LONG", None, "no topic: give the option 'topic', or a column 'topic'"),
        ("topic DOUBLE, id LONG", None, "the topic column 'topic' is double"),
        ("topic STRING", None, "no column besides 'topic'"),
        ("topic STRING", "t", "no column besides 'topic'"),
        ("id LONG, id INT", "t", "two columns have one name"),
        ("a INTERVAL DAY TO SECOND", "t", "column 'a' is interval day to second"),
        ("a STRUCT<b: ARRAY<MAP<STRING, INTERVAL YEAR>>>", "t", "column 'a.b' is interval year"),
        ("a VARIANT", "t", "column 'a' is variant"),
        ("a MAP<STRUCT<b: INT>, INT>", "t", "column 'a' is a map with keys of type struct<b:int>"),
        ("a ARRAY<MAP<ARRAY<INT>, INT>>", "t", "column 'a' is a map with keys of type array<int>"),
        ("a STRUCT<b: STRUCT<c: INT, c: INT>>", "t", "column 'a.b' has two fields of one name"),
    ],
)
def test_columns_that_cannot_be_sent_are_named(schema: str, topic: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Encoder(parsed(schema), topic=topic, topic_column="topic")


def test_a_time_of_day_is_refused_by_column() -> None:
    with pytest.raises(ConfigError, match=r"column 'a' is time\(6\)"):
        Encoder(StructType([StructField("a", TimeType())]), topic="t", topic_column="topic")


def test_a_column_that_is_where_ids_go_does_not_go_with_ids() -> None:
    encoder = Encoder(parsed("_id STRING, n LONG"), topic="t", topic_column="topic")
    with pytest.raises(ConfigError, match="'_id'"):
        encoder.check_ids()
