"""The format "skywalker-journal" in a real Spark: all at once, and as it grows."""

from __future__ import annotations

import datetime
import struct
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.errors import PySparkException

from skywalker.journal.header import HEADER_BYTES, VERSION
from skywalker.journal.reading import Records
from skywalker.journal.record import DOORS, METHODS, OUTCOMES, RECORD_BYTES, ROUTES
from skywalker.pipeline.journals.source import FORMAT, JournalSource
from skywalker.ring import token_of
from skywalker.wire import values
from tests.helpers import eventually, time_factor
from tests.journal.making import NOON, SECOND, add, complete, header, put, put_names, records
from tests.pipeline.journals.streaming import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module", autouse=True)
def known(spark: SparkSession) -> None:
    spark.dataSource.register(JournalSource)


def numbered(*numbers: int) -> Records:
    """Records whose connections have these numbers."""
    return records(len(numbers), connection=np.array(numbers))


def loaded(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format(FORMAT).options(**options).load(str(path))


def numbers_in(frame: DataFrame) -> list[int]:
    return sorted(row.connection for row in frame.select("connection").collect())


# All at once.


def test_every_column_is_what_the_record_and_its_header_say(spark: SparkSession, tmp_path: Path) -> None:
    made = records(50, 3, wait=np.arange(50) * 0.001)
    put(tmp_path, header(worker=2, ring="r9", sample=4, source="bench", clock_ns=NOON + 5 * SECOND), made)
    rows = loaded(spark, tmp_path).orderBy("wait_us").collect()
    noon = datetime.datetime.fromtimestamp(NOON // SECOND + 5, datetime.UTC)
    for row, (ended, token, _, size, connection, method, outcome, route, door) in zip(rows, made.tolist(), strict=True):
        shown = row.time.astimezone(datetime.UTC)
        assert abs(shown - noon - datetime.timedelta(seconds=ended)) <= datetime.timedelta(microseconds=1)
        assert row.wait_us == rows.index(row) * 1000
        assert (row.token, row.size, row.connection) == (token, size, connection)
        assert (row.method, row.outcome) == (METHODS[method], OUTCOMES[outcome])
        assert (row.route, row.door) == (ROUTES[route], DOORS[door])
        assert (row.node, row.worker, row.ring, row.sample, row.source) == ("red", 2, "r9", 4, "bench")


def test_the_schema_is_the_one_that_jobs_rely_on(spark: SparkSession, tmp_path: Path) -> None:
    types = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in loaded(spark, tmp_path).schema)
    assert types == (
        "time timestamp, node string, worker int, connection bigint, door string, method string, outcome string, "
        "route string, token bigint, wait_us bigint, size int, sample int, ring string, source string"
    )
    names = loaded(spark, tmp_path, kind="names").schema.simpleString()
    assert names == "struct<node:string,token:bigint,topic:string>"


def test_every_record_of_every_file_comes_once_however_it_is_divided(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, header(), numbered(*range(100)))
    put(tmp_path, header(worker=1), numbered(*range(100, 103)), is_open=True, torn=b"\x01" * 31)
    put(tmp_path, header(worker=2), numbered())
    for size in (7, 100, 500_000):
        frame = loaded(spark, tmp_path, recordsPerPartition=size)
        assert numbers_in(frame) == [*range(103)]
        assert frame.rdd.getNumPartitions() == -(-103 // size)


def test_a_file_can_be_read_alone(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, header(), numbered(1))
    path = put(tmp_path, header(worker=1), numbered(2, 3), is_open=True)
    assert numbers_in(loaded(spark, path)) == [2, 3]


def test_some_columns_can_be_asked_for_alone_and_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, header(), records(3, method=1, token=np.array([5, 6, 7])))
    few = spark.read.format(FORMAT).schema("method STRING, token BIGINT").load(str(tmp_path))
    assert sorted(map(tuple, few.collect())) == [("send", 5), ("send", 6), ("send", 7)]


def test_a_journal_in_which_nothing_stands_yet_is_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    assert loaded(spark, tmp_path).collect() == []
    assert loaded(spark, tmp_path, kind="names").collect() == []


def test_names_come_once_for_each_node(spark: SparkSession, tmp_path: Path) -> None:
    topics = {topic: token_of(values.pack(topic)) for topic in ("jobs", "größe", 7)}
    listed = ["a", {"b": b"\0"}]
    packed = {token: values.pack(topic) for topic, token in topics.items()} | {-1: values.pack(listed), -2: b"\xc1"}
    put_names(tmp_path, header(), packed)
    put_names(tmp_path, header(worker=1), packed, torn=b"\x01\x02")
    put_names(tmp_path, header(node="blue"), {topics["jobs"]: values.pack("jobs")})
    rows = {(row.node, row.topic): row.token for row in loaded(spark, tmp_path, kind="names").collect()}
    assert rows == {
        ("red", "jobs"): topics["jobs"],
        ("red", "größe"): topics["größe"],
        ("red", "7"): topics[7],
        ("red", '["a", {"b": {"$bin": "AA=="}}]'): -1,
        ("red", "0xc1"): -2,
        ("blue", "jobs"): topics["jobs"],
    }


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"colour": "red"}, ["'colour'"]),
        ({"kind": "cals"}, ["'kind'", "'cals'", "calls, names"]),
        ({"recordsPerPartition": "0"}, ["'recordsPerPartition'", "'0'"]),
        ({"failOnDataLoss": "perhaps"}, ["'failOnDataLoss'", "'perhaps'"]),
        ({"maxRecordsPerTrigger": "5"}, ["'maxRecordsPerTrigger'"]),
    ],
)
def test_a_bad_option_is_named(spark: SparkSession, tmp_path: Path, options: dict[str, str], parts: list[str]) -> None:
    with pytest.raises(PySparkException) as caught:
        loaded(spark, tmp_path, **options).collect()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("path", "part"), [("", "'path'"), ("/nowhere/at/all", "/nowhere/at/all"), ("s3://bucket/journal", "s3://")]
)
def test_a_path_that_is_none_is_named(spark: SparkSession, path: str, part: str) -> None:
    with pytest.raises(PySparkException, match=part):
        spark.read.format(FORMAT).option("path", path).load().collect()


def test_a_path_may_be_the_url_of_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, header(), numbered(1))
    for path in (f"file://{tmp_path}", f"file:{tmp_path}"):
        assert numbers_in(spark.read.format(FORMAT).load(path)) == [1]


@pytest.mark.parametrize(
    ("schema", "parts"), [("tokens BIGINT", ["'tokens'", "wait_us"]), ("token STRING", ["'token'", "bigint", "string"])]
)
def test_a_column_that_is_none_is_named(spark: SparkSession, tmp_path: Path, schema: str, parts: list[str]) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format(FORMAT).schema(schema).load(str(tmp_path)).collect()
    for part in parts:
        assert part in str(caught.value)


def future(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8:10] = struct.pack("<H", VERSION + 1)
    path.write_bytes(data)


def foreign(path: Path) -> None:
    path.write_bytes(b"#!/bin/sh\n" * 200)


def beheaded(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: HEADER_BYTES // 2])


@pytest.mark.parametrize("harm", [future, foreign, beheaded])
def test_a_file_that_cannot_be_read_is_an_error_or_left_out(spark: SparkSession, tmp_path: Path, harm: Any) -> None:
    put(tmp_path, header(), numbered(1, 2))
    path = put(tmp_path, header(worker=1), numbered(3))
    harm(path)
    with pytest.raises(PySparkException) as caught:
        loaded(spark, tmp_path).collect()
    assert path.name in str(caught.value)
    assert "failOnDataLoss" in str(caught.value)
    assert numbers_in(loaded(spark, tmp_path, failOnDataLoss="false")) == [1, 2]


# As it grows.


def test_a_stream_follows_a_journal_through_rotation(spark: SparkSession, tmp_path: Path) -> None:
    journal, sent = tmp_path / "journal", 100
    path = put(journal, header(), numbered(0), is_open=True)
    stream = Stream(spark, journal, tmp_path / "checkpoint")
    with stream.running() as query:
        for number in range(1, sent):
            if number % 10 == 0:
                add(path, numbered(number))
                complete(path)
                path = put(journal, header(opened_ns=NOON + number * SECOND), numbered(), is_open=True)
            else:
                add(path, numbered(number))
            if number % 20 == 5:
                eventually(lambda number=number: number in stream.numbers, within=20.0)
        eventually(lambda: len(stream.numbers) >= sent, within=20.0)
        assert sorted(stream.numbers) == [*range(sent)]
        # Nothing is made of nothing.
        before = len(stream.batches)
        eventually(lambda: query.status["message"] == "Waiting for data to arrive", within=10.0)
        complete(path)
        trigger = query.lastProgress
        eventually(lambda: query.lastProgress != trigger or not query.isActive, within=30.0)
        assert len(stream.batches) == before
    assert all(stream.batches.values())


def test_a_stream_that_drains_keeps_its_limit_and_ends(spark: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    put(journal, header(), numbered(*range(10)))
    put(journal, header(worker=1), numbered(*range(10, 16)), is_open=True)
    stream = Stream(spark, journal, tmp_path / "checkpoint", maxRecordsPerTrigger=7)
    stream.drain()
    assert [len(batch) for batch in stream.batches.values()] == [7, 7, 2]
    assert sorted(stream.numbers) == [*range(16)]


def test_a_stream_goes_on_where_it_was_and_makes_a_broken_batch_anew(spark: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    path = put(journal, header(), numbered(*range(10)), is_open=True)
    stream = Stream(spark, journal, tmp_path / "checkpoint")
    stream.drain()
    add(path, numbered(*range(10, 15)))
    stream.break_down.set()
    with stream.running() as query, pytest.raises(PySparkException, match="broke down"):
        query.awaitTermination(30 * time_factor())
    assert [*stream.batches] == [0, 1]
    first = stream.batches.pop(1)
    # What has come since belongs to the batch after it.
    add(path, numbered(*range(15, 20)))
    complete(path)
    stream.break_down.clear()
    stream.drain()
    assert sorted(stream.batches.pop(1)) == sorted(first) == [*range(10, 15)]
    assert sorted(stream.numbers) == [*range(10), *range(15, 20)]


def test_what_is_deleted_before_it_was_read_stops_a_stream_unless_it_shall_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    path = put(journal, header(), numbered(1, 2), is_open=True)
    put(journal, header(worker=1), numbered(3), is_open=True)
    stream = Stream(spark, journal, tmp_path / "checkpoint")
    stream.drain()
    path.unlink()
    put(journal, header(opened_ns=NOON + SECOND), numbered(4))
    with stream.running() as query, pytest.raises(PySparkException) as caught:
        query.awaitTermination(30 * time_factor())
    assert path.stem in str(caught.value)
    assert "failOnDataLoss" in str(caught.value)
    tolerant = Stream(spark, journal, tmp_path / "checkpoint", failOnDataLoss="false")
    tolerant.drain()
    assert sorted(tolerant.numbers) == [4]


def test_a_torn_record_comes_once_it_is_whole(spark: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    whole = numbered(1, 2).tobytes()
    path = put(journal, header(), numbered(), is_open=True, torn=whole[: RECORD_BYTES + 9])
    stream = Stream(spark, journal, tmp_path / "checkpoint")
    stream.drain()
    assert stream.numbers == [1]
    with path.open("ab") as file:
        file.write(whole[RECORD_BYTES + 9 :])
    stream.drain()
    assert stream.numbers == [1, 2]


def test_only_calls_come_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format(FORMAT).option("kind", "names").load(str(tmp_path))
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(PySparkException, match="'kind'") as caught:
        query.awaitTermination(30 * time_factor())
    assert "Traceback" not in str(caught.value)


def test_a_stream_into_files_holds_every_record_once(spark: SparkSession, tmp_path: Path) -> None:
    journal, table = tmp_path / "journal", str(tmp_path / "table")
    path = put(journal, header(), numbered(*range(50)), is_open=True)
    for start in (50, 100):
        frame = spark.readStream.format(FORMAT).option("maxRecordsPerTrigger", "40").load(str(journal))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(table)
        assert query.awaitTermination(60 * time_factor())
        add(path, numbered(*range(start, start + 50)))
    assert Counter(numbers_in(spark.read.parquet(table))) == Counter(range(100))
