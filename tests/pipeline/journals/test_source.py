"""The format "skywalker-journal": all at once, and as it grows; in a real Spark where that is the point."""

from __future__ import annotations

import datetime
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StringType, StructField, StructType

from skywalker.errors import ConfigError
from skywalker.journal.header import CALLS, HEADER_BYTES, VERSION
from skywalker.journal.reading import Records, open_file
from skywalker.journal.record import DOORS, METHODS, OUTCOMES, RECORD_BYTES, ROUTES
from skywalker.pipeline.journals import source
from skywalker.pipeline.journals.columns import schema_of
from skywalker.pipeline.journals.source import FORMAT, CallsStream, JournalSource
from skywalker.pipeline.mistakes import DataLossError
from skywalker.ring import token_of
from skywalker.wire import values
from tests.helpers import time_factor
from tests.journal.making import NOON, SECOND, add, complete, header, put, put_names, records
from tests.pipeline.journals.streaming import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = StructType([StructField("method", StringType()), StructField("token", LongType())])


def numbered(*numbers: int) -> Records:
    """Records whose connections have these numbers."""
    return records(len(numbers), connection=np.array(numbers))


def parts(path: Path | str, schema: StructType | None = None, **options: Any) -> list[list[dict[str, Any]]]:
    """Return the rows of each task, as Spark would ask for them."""
    source = JournalSource({"path": str(path), **{name: str(value) for name, value in options.items()}})
    reader = source.reader(schema or source.schema())
    return [[row for batch in reader.read(each) for row in batch.to_pylist()] for each in reader.partitions()]


def numbers_in(path: Path | str, **options: Any) -> list[int]:
    return sorted(row["connection"] for rows in parts(path, **options) for row in rows)


# All at once.


def test_every_column_is_what_the_record_and_its_header_say(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(JournalSource)
    made = records(50, 3, wait=np.arange(50) * 0.001)
    put(tmp_path, header(worker=2, ring="r9", sample=4, source="bench", clock_ns=NOON + 5 * SECOND), made)
    rows = spark.read.format(FORMAT).load(str(tmp_path)).orderBy("wait_us").collect()
    noon = datetime.datetime.fromtimestamp(NOON // SECOND + 5, datetime.UTC)
    for row, (ended, token, _, size, connection, method, outcome, route, door) in zip(rows, made.tolist(), strict=True):
        shown = row.time.astimezone(datetime.UTC)
        assert abs(shown - noon - datetime.timedelta(seconds=ended)) <= datetime.timedelta(microseconds=1)
        assert row.wait_us == rows.index(row) * 1000
        assert (row.token, row.size, row.connection) == (token, size, connection)
        assert (row.method, row.outcome) == (METHODS[method], OUTCOMES[outcome])
        assert (row.route, row.door) == (ROUTES[route], DOORS[door])
        assert (row.node, row.worker, row.ring, row.sample, row.source) == ("red", 2, "r9", 4, "bench")


def test_the_schema_is_the_one_that_jobs_rely_on(tmp_path: Path) -> None:
    source = JournalSource({"path": str(tmp_path)})
    assert ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in source.schema()) == (
        "time timestamp, node string, worker int, connection bigint, door string, method string, outcome string, "
        "route string, token bigint, wait_us bigint, size int, sample int, ring string, source string"
    )
    names = JournalSource({"path": str(tmp_path), "kind": "names"}).schema()
    assert names.simpleString() == "struct<node:string,token:bigint,topic:string>"


def test_every_record_of_every_file_comes_once_however_it_is_divided(tmp_path: Path) -> None:
    put(tmp_path, header(), numbered(*range(100)))
    alone = put(tmp_path, header(worker=1), numbered(*range(100, 103)), is_open=True, torn=b"\x01" * 31)
    put(tmp_path, header(worker=2), numbered())
    for size in (7, 100, 500_000):
        assert numbers_in(tmp_path, recordsPerPartition=size) == [*range(103)]
        assert len(parts(tmp_path, recordsPerPartition=size)) == -(-103 // size)
    assert numbers_in(alone) == [*range(100, 103)]


def test_some_columns_can_be_asked_for_alone_and_in_any_order(tmp_path: Path) -> None:
    put(tmp_path, header(), records(3, method=1, token=np.array([5, 6, 7])))
    assert parts(tmp_path, SMALL) == [[{"method": "send", "token": token} for token in (5, 6, 7)]]


def test_a_journal_in_which_nothing_stands_yet_is_an_empty_table(tmp_path: Path) -> None:
    assert parts(tmp_path) == [[]]
    assert parts(tmp_path, kind="names") == [[]]


def test_names_come_once_for_each_node(tmp_path: Path) -> None:
    topics = {topic: token_of(values.pack(topic)) for topic in ("jobs", "größe", 7)}
    listed = ["a", {"b": b"\0"}]
    packed = {token: values.pack(topic) for topic, token in topics.items()} | {-1: values.pack(listed), -2: b"\xc1"}
    put_names(tmp_path, header(), packed)
    put_names(tmp_path, header(worker=1), packed, torn=b"\x01\x02")
    put_names(tmp_path, header(node="blue"), {topics["jobs"]: values.pack("jobs")})
    (found,) = parts(tmp_path, kind="names")
    rows = {(row["node"], row["topic"]): row["token"] for row in found}
    assert rows == {
        ("red", "jobs"): topics["jobs"],
        ("red", "größe"): topics["größe"],
        ("red", "7"): topics[7],
        ("red", '["a", {"b": {"$bin": "AA=="}}]'): -1,
        ("red", "0xc1"): -2,
        ("blue", "jobs"): topics["jobs"],
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"colour": "red"}, ["'colour'"]),
        ({"kind": "cals"}, ["'kind'", "'cals'", "calls, names"]),
        ({"recordsPerPartition": "0"}, ["'recordsPerPartition'", "'0'"]),
        ({"failOnDataLoss": "perhaps"}, ["'failOnDataLoss'", "'perhaps'"]),
        ({"maxRecordsPerTrigger": "5"}, ["'maxRecordsPerTrigger'"]),
        ({"path": ""}, ["'path'"]),
        ({"path": "/nowhere/at/all"}, ["/nowhere/at/all"]),
        ({"path": "s3://bucket/journal"}, ["s3://"]),
    ],
)
def test_a_bad_option_is_named(tmp_path: Path, options: dict[str, str], said: list[str]) -> None:
    with pytest.raises((ConfigError, DataLossError)) as caught:
        parts(**{"path": tmp_path, **options})
    assert all(part in str(caught.value) for part in said)


@pytest.mark.parametrize(
    ("schema", "said"), [("tokens BIGINT", ["'tokens'", "wait_us"]), ("token STRING", ["'token'", "bigint", "string"])]
)
def test_a_column_that_is_none_is_named(spark: SparkSession, tmp_path: Path, schema: str, said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parts(tmp_path, StructType.fromDDL(schema))
    assert all(part in str(caught.value) for part in said)


def test_a_path_may_be_the_url_of_a_directory(tmp_path: Path) -> None:
    put(tmp_path, header(), numbered(1))
    for path in (f"file://{tmp_path}", f"file:{tmp_path}"):
        assert numbers_in(path) == [1]


def future(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8:10] = struct.pack("<H", VERSION + 1)
    path.write_bytes(data)


def foreign(path: Path) -> None:
    path.write_bytes(b"#!/bin/sh\n" * 200)


def beheaded(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: HEADER_BYTES // 2])


@pytest.mark.parametrize("harm", [future, foreign, beheaded])
def test_a_file_that_cannot_be_read_is_an_error_or_left_out(tmp_path: Path, harm: Any) -> None:
    put(tmp_path, header(), numbered(1, 2))
    path = put(tmp_path, header(worker=1), numbered(3))
    harm(path)
    with pytest.raises(DataLossError, match=f"{path.name}.*failOnDataLoss"):
        parts(tmp_path)
    assert numbers_in(tmp_path, failOnDataLoss="false") == [1, 2]


# As it grows.


class Steps:
    """A stream whose batches are asked for one by one, as Spark does."""

    def __init__(self, journal: Path, **options: Any) -> None:
        given = {"path": str(journal), **{name: str(value) for name, value in options.items()}}
        reader = JournalSource(given).streamReader(schema_of(CALLS))
        assert isinstance(reader, CallsStream)
        self.reader = reader
        self.at = reader.initialOffset()

    def next(self) -> list[int]:
        """Return the numbers of the next batch."""
        begin, self.at = self.at, self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())
        found = [batch for part in self.reader.partitions(begin, self.at) for batch in self.reader.read(part)]
        return sorted(number for batch in found for number in batch["connection"].to_pylist())


def test_a_stream_follows_a_journal_through_rotation_and_torn_records(tmp_path: Path) -> None:
    whole = numbered(1, 2).tobytes()
    path = put(tmp_path, header(), numbered(), is_open=True, torn=whole[: RECORD_BYTES + 9])
    stream = Steps(tmp_path)
    assert stream.next() == [1]
    with path.open("ab") as file:
        file.write(whole[RECORD_BYTES + 9 :])
    complete(path)
    put(tmp_path, header(opened_ns=NOON + SECOND), numbered(3), is_open=True)
    assert stream.next() == [2, 3]
    assert stream.next() == []


def test_what_is_deleted_before_it_was_read_stops_a_stream_unless_it_shall_go_on(tmp_path: Path) -> None:
    path = put(tmp_path, header(), numbered(1, 2), is_open=True)
    put(tmp_path, header(worker=1), numbered(3), is_open=True)
    streams = Steps(tmp_path), Steps(tmp_path, failOnDataLoss="false")
    assert [stream.next() for stream in streams] == [[1, 2, 3]] * 2
    path.unlink()
    put(tmp_path, header(opened_ns=NOON + SECOND), numbered(4))
    with pytest.raises(DataLossError, match=f"{path.stem}.*failOnDataLoss"):
        streams[0].next()
    assert streams[1].next() == [4]


def test_a_stream_opens_no_file_again_that_it_has_read_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def counting(path: Path) -> Any:
        opened.append(path.name)
        return open_file(path)

    monkeypatch.setattr(source, "open_file", counting)
    for number in range(5):
        put(tmp_path, header(opened_ns=NOON + number * SECOND), numbered(number))
    last = put(tmp_path, header(opened_ns=NOON + 5 * SECOND), numbered(5), is_open=True)
    stream = Steps(tmp_path)
    assert stream.next() == [0, 1, 2, 3, 4, 5]
    opened.clear()
    add(last, numbered(6))
    assert stream.next() == [6]
    assert {*opened} == {last.name}
    stream.reader.prepareForTriggerAvailableNow()
    assert stream.next() == []


def test_only_calls_come_as_a_stream(tmp_path: Path) -> None:
    refused = JournalSource({"path": str(tmp_path), "kind": "names"}).streamReader(schema_of(CALLS))
    with pytest.raises(ConfigError, match="'kind'"):
        refused.initialOffset()


def test_a_stream_goes_on_where_it_was_and_makes_a_broken_batch_anew(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(JournalSource)
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
