"""Topics read through a real Spark: tables and streams, and what their users see of mistakes, idleness and outages."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import msgpack
import pytest

import skywalker
from skywalker import embedding
from skywalker.clients.blocking.client import Client
from tests.helpers import eventually
from tests.pipeline.tables.streams import SPARK_S, Batches, running, send_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOBS = "topic STRING, id BIGINT, tags ARRAY<STRING>, at TIMESTAMP, price DECIMAL(6,2), who STRUCT<name: STRING>"


def test_a_table_has_as_many_rows_as_were_asked_for_and_leaves_the_rest(
    spark: SparkSession, node: embedding.Node, client: Client
) -> None:
    job = {"id": 1, "tags": ["a", "b"], "at": "2024-02-29T12:00:00Z", "price": "9.5", "who": {"name": "n"}}
    sent = [client.begin("send", "jobs", {**job, "id": number}) for number in range(30)]
    read = spark.read.format("skywalker").option("ADDRESS", node.address).option("topic", "jobs")
    rows = read.options(rowsPerBatch=20, partitions=2).schema(JOBS).load().collect()
    assert len(rows) == 20
    (row,) = (row for row in rows if row.id == 3)
    assert (row.topic, row.tags, str(row.price), row.who.name, row["at"].year) == (
        "jobs",
        ["a", "b"],
        "9.50",
        "n",
        2024,
    )
    rest = spark.read.format("skywalker").options(address=node.address, topic="jobs", waitMs=200).load().collect()
    assert rest[0].topic == "jobs"
    ids = [row.id for row in rows] + [msgpack.unpackb(row.value)["id"] for row in rest]
    assert sorted(ids) == list(range(30))
    assert all(call.result() for call in sent)


def assert_is_plain(error: object, problem: str) -> None:
    assert problem in str(error)
    assert "Traceback" not in str(error)


@pytest.mark.parametrize("way", ["read", "readStream"])
def test_a_mistake_is_named_when_a_topic_is_loaded(spark: SparkSession, way: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        getattr(spark, way).format("skywalker").options(topic="t", rowsPerBach=5).load()
    assert_is_plain(caught.value, "unknown option 'rowsperbach'; did you mean 'rowsPerBatch'?")


def test_with_a_schema_a_mistake_is_what_a_table_or_a_stream_ends_with(spark: SparkSession, tmp_path: Path) -> None:
    options, problem = {"topic": "t", "waitMs": "soon"}, "option 'waitMs' is 'soon'; it must be a whole number"
    with pytest.raises(Exception) as caught:  # noqa: PT011
        spark.read.format("skywalker").options(**options).schema("id BIGINT").load().collect()
    assert_is_plain(caught.value, problem)
    with running(spark, options, Batches(), tmp_path, availableNow=True) as query:
        assert_is_plain(eventually(query.exception, within=SPARK_S), problem)


def test_a_stream_goes_on_over_idle_times_and_a_node_that_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    sink = Batches()
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(skywalker.embedded(workers=1))
        client = stack.enter_context(node.connect())
        read = {"address": node.address, "topic": "live", "spool": tmp_path / "spool", "waitMs": 100}
        query = stack.enter_context(running(spark, read, sink, tmp_path / "checkpoint"))
        sent = send_all(client, "live", range(100))
        eventually(lambda: sink.all == [*range(100)], within=SPARK_S)
        # A client that has not yet read that its value was taken would send it again, to the next node.
        assert all(call.result() for call in sent)
        os.killpg(node.pid, signal.SIGKILL)
        stack.enter_context(skywalker.embedded(workers=1, port=node.port))
        assert all(call.result() for call in send_all(client, "live", range(100, 200)))
        eventually(lambda: sink.all == [*range(200)], within=SPARK_S)
        # Spark has asked in vain all the while that the node was not there.
        assert all(sink.ids.values()), "an idle topic makes no batches"

        eventually(lambda: sum(each.numInputRows for each in query.recentProgress) == 200, within=SPARK_S)
        told = json.loads(query.recentProgress[-1].sources[0].latestOffset)
        assert (told["row"], told["connections"], told["connected"]) == (200, 2, True)


def test_available_now_takes_all_that_waits_in_batches_of_the_size_asked_for(
    spark: SparkSession, node: embedding.Node, client: Client, tmp_path: Path
) -> None:
    sink = Batches()
    read = {"address": node.address, "topics": "now,then", "rowsPerBatch": 40, "waitMs": 200}
    sent = send_all(client, "now", range(70)) + send_all(client, "then", range(70, 100))
    with running(spark, read, sink, tmp_path, availableNow=True) as query:
        assert query.awaitTermination(SPARK_S)
    assert sorted(map(len, sink.ids.values())) == [20, 40, 40]
    assert sink.all == [*range(100)]
    assert all(call.result() for call in sent)
    # The same checkpoint goes on where it was, though the spool was a temporary one.
    sent = send_all(client, "now", range(100, 110))
    with running(spark, read, sink, tmp_path, availableNow=True) as query:
        assert query.awaitTermination(SPARK_S)
    assert sink.all == [*range(110)]
    assert all(call.result() for call in sent)
