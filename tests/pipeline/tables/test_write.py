"""Tables and streams that Spark writes to the topics of a real node."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from skywalker.embedding import Node
from skywalker.errors import ConfigError
from skywalker.pipeline.tables.writing import TableStreamWriter, TableWriter, Written
from tests.helpers import eventually, time_factor
from tests.pipeline.tables.receiver import Receiver

WORKER_LOGS = "spark.sql.pyspark.worker.logging.enabled"


@pytest.fixture
def node(skywalker_node: Node) -> Node:
    return skywalker_node


def write(frame: DataFrame, node: Node, mode: str = "append", **options: Any) -> None:
    frame.write.format("skywalker").options(address=node.address, **options).mode(mode).save()


def stream_of(spark: SparkSession, folder: Path, schema: str = "topic STRING, n LONG") -> DataFrame:
    """Return a stream of the rows in JSON files: it can be read again, so what is sent again is the same."""
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema(schema).json(str(folder))


def started(frame: DataFrame, node: Node, checkpoint: Path, **options: Any) -> StreamingQuery:
    writer = frame.writeStream.format("skywalker").options(address=node.address, **options)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def rows(path: Path, topic: str, numbers: range) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f'{{"topic": "{topic}", "n": {n}}}\n' for n in numbers))


def within(query: StreamingQuery) -> bool:
    return bool(query.awaitTermination(round(60 * time_factor())))


# Tables.


def test_a_table_is_sent_row_by_row(spark: SparkSession, node: Node) -> None:
    frame = spark.range(100).selectExpr("concat('table/', id % 2) AS topic", "id", "id / 4 AS quarter")
    with Receiver(node.address, "table/0", "table/1") as receiver:
        write(frame, node)
        assert eventually(lambda: len(receiver.got) == 100)
    received = sorted(receiver.got, key=lambda message: message["id"])
    assert received == [{"id": n, "quarter": n / 4} for n in range(100)]


def test_what_was_read_from_one_topic_and_is_written_to_another_is_the_same(spark: SparkSession, node: Node) -> None:
    messages = [None, -7, 0.5, "text", b"bytes", [1, [2]], {"a": {"b": None}}, {1: True}]
    with node.connect() as junction:
        sent = [junction.begin("send", "relay/from", message, timeout=30.0) for message in messages]
        read = spark.read.format("skywalker").options(
            address=node.address, topic="relay/from", rowsPerBatch=len(messages)
        )
        with Receiver(node.address, "relay/to") as receiver:
            write(read.load(), node, topic="relay/to")
            assert eventually(lambda: len(receiver.got) == len(messages))
        assert all(call.result() for call in sent)
    assert receiver.got == messages


def test_rows_that_nobody_takes_fail_the_write_and_the_driver_hears_which(spark: SparkSession, node: Node) -> None:
    frame = spark.range(3).selectExpr("'nobody' AS topic", "id").coalesce(1)
    with pytest.raises(PythonException, match=r"TimedOut: nobody took 3 rows, of 'nobody' \(3\) within 0.1 s"):
        write(frame, node, timeoutMs=100)


def test_rows_that_nobody_takes_do_not_stop_the_others_if_that_is_wanted(spark: SparkSession, node: Node) -> None:
    frame = spark.range(20).selectExpr("if(id < 5, 'none', 'some') AS topic", "id")
    said = "write to skywalker: nobody came for 5 rows, of 'none' (5); 15 were taken"
    spark.conf.set(WORKER_LOGS, "true")
    try:
        with Receiver(node.address, "some") as receiver:
            write(frame, node, timeoutMs=300, onTimeout="count")
            assert eventually(lambda: len(receiver.got) == 15)
        logs = spark.tvf.python_worker_logs()
        assert logs.where(logs.msg == said).count() == 1
    finally:
        spark.conf.unset(WORKER_LOGS)


def test_to_overwrite_is_refused_in_words_that_say_what_to_do(spark: SparkSession, node: Node) -> None:
    frame = spark.range(1).selectExpr("'t' AS topic", "id")
    with pytest.raises(AnalysisException, match=r'use \.mode\("append"\)'):
        write(frame, node, mode="overwrite")
    with pytest.raises(AnalysisException, match="Append"):
        write(frame, node, mode="errorifexists")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"address": "no port:x"}, "'address'"),
        ({"timeoutMs": "-1"}, "'timeoutMs' is '-1'"),
        ({"timeoutMs": "86400001"}, "'timeoutMs'"),
        ({"timeoutMs": "1s"}, "'timeoutMs' is '1s'"),
        ({"onTimeout": "ignore"}, "'onTimeout' is 'ignore'; it must be one of fail, count, drop"),
        ({"maxInFlight": "0"}, "'maxInFlight'"),
        ({"maxInFlight": "60001"}, "'maxInFlight'"),
        ({"dedup": "yes"}, "'dedup' is 'yes'; it must be true or false"),
        ({"topic": "t", "topicColumn": "c"}, "'topic' and 'topicColumn'"),
        ({"topicColumn": "c"}, "a column 'c'"),
    ],
)
def test_every_wrong_option_is_named(spark: SparkSession, options: dict[str, str], said: str) -> None:
    schema = StructType.fromDDL("topic STRING, n LONG")
    assert isinstance(schema, StructType)
    for writer in (TableWriter, TableStreamWriter):
        with pytest.raises(ConfigError, match=said):
            writer(schema, options)


@pytest.mark.parametrize(("choice", "level"), [("count", logging.WARNING), ("drop", logging.INFO)])
def test_the_driver_reports_rows_that_nobody_took_and_rows_that_went_out_twice(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, choice: str, level: int
) -> None:
    schema = StructType.fromDDL("topic STRING, n LONG")
    assert isinstance(schema, StructType)
    writer = TableStreamWriter(schema, {"onTimeout": choice})
    one, other = Written(10), Written(20, sent_again=3)
    one.missed.update({b"\xa1a": 2, b"\xa1b": 1})
    other.missed.update({b"\xa1b": 4})
    with caplog.at_level(logging.DEBUG, "skywalker.pipeline"):
        writer.commit([one, None, other], 7)
    missed, again = caplog.records
    assert missed.levelno == level
    assert missed.getMessage() == "batch 7 to skywalker: nobody came for 7 rows, of 'b' (5), 'a' (2); 30 were taken"
    assert again.levelno == logging.WARNING
    assert "3 rows were sent again" in again.getMessage()


# Streams.


def test_a_batch_that_failed_is_sent_again_and_its_ids_tell_what_was_taken_before(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    frame = stream_of(spark, tmp_path / "in").coalesce(1)
    rows(tmp_path / "in" / "1.json", "again", range(30))
    options = {"dedup": "true", "timeoutMs": 500}
    with Receiver(node.address, "again", most=12) as vanished:
        query = started(frame, node, tmp_path / "checkpoint", **options)
        with pytest.raises(StreamingQueryException, match="nobody took 18 rows, of 'again'"):
            within(query)
    assert len(vanished.got) == 12
    with Receiver(node.address, "again") as receiver:
        second = started(frame, node, tmp_path / "checkpoint", **options)
        assert within(second)
        assert eventually(lambda: len(receiver.got) == 30)
    assert second.lastProgress is not None
    assert second.lastProgress.sink.numOutputRows == 30
    assert {tuple(message["_id"].split("/")[:2]) for message in receiver.got} == {(str(query.id), "0")}
    # At least once: the first rows came twice. By their ids each row is there once.
    both = [*vanished.got, *receiver.got]
    assert len(both) == 42
    assert sorted(message["n"] for message in {message["_id"]: message for message in both}.values()) == [*range(30)]


def test_a_query_that_is_stopped_takes_back_what_waits(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    rows(tmp_path / "in" / "1.json", "stopped", range(10))
    query = started(stream_of(spark, tmp_path / "in"), node, tmp_path / "checkpoint")
    with node.connect() as junction:
        assert eventually(lambda: junction.topic("stopped")["senders"] == 10, within=30)
        query.stop()
        assert eventually(lambda: junction.topic("stopped")["senders"] == 0)
