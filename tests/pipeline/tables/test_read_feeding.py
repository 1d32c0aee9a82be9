"""What feeds a stream: it acknowledges just what is safe, goes ahead just so far, and its troubles reach Spark."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

import skywalker
from skywalker import embedding
from skywalker.clients.blocking.client import Client
from skywalker.errors import ConfigError, Unreachable
from skywalker.pipeline.mistakes import DataLossError
from skywalker.pipeline.tables import receiving
from skywalker.pipeline.tables.feeding import AHEAD, Feed, Feeder, ReceiverLostError
from skywalker.pipeline.tables.reader import TableStreamReader
from skywalker.pipeline.tables.reading import Reading
from skywalker.pipeline.tables.spool import open_spool
from tests.helpers import eventually, time_factor


@pytest.fixture
def feed(node: embedding.Node) -> Iterator[Callable[..., Feed]]:
    """Makes feeds, which are stopped at the end."""
    with contextlib.ExitStack() as stack:

        def make(topic: str, **options: Any) -> Feed:
            given = {"address": node.address, "topic": topic, **{name: str(value) for name, value in options.items()}}
            made = Feed(Reading.parse(given, streams=True))
            stack.callback(made.stop)
            return made

        yield make


def send_all(client: Client, topic: str, count: int) -> list[Any]:
    return [client.begin("send", topic, number, timeout=30) for number in range(count)]


def taken(client: Client, calls: list[Any]) -> int:
    client.ping()
    return sum(call.done() for call in calls)


def test_without_a_spool_no_value_is_acknowledged_that_is_in_no_batch(
    feed: Callable[..., Feed], client: Client
) -> None:
    calls = send_all(client, "temporary", 50)
    by = feed("temporary")
    assert by.await_rows(0, 20, 10 * time_factor()) == 20
    eventually(lambda: taken(client, calls) >= 20)
    assert taken(client, calls) == 20
    assert by.await_rows(20, 100, 0.3 * time_factor()) == 50
    # Spark does not wait now: what is sent, is received and stays its sender's.
    more = send_all(client, "temporary", 30)
    eventually(lambda: client.topic("temporary")["senders"] == 0)
    assert taken(client, more) == 0
    by.stop()
    eventually(lambda: client.topic("temporary")["senders"] == 30)
    assert sorted(client.recv("temporary") for _ in range(30)) == list(range(30))


def test_with_a_spool_it_goes_ahead_by_some_batches_and_then_its_senders_wait(
    feed: Callable[..., Feed], client: Client, tmp_path: Path
) -> None:
    calls = send_all(client, "ahead", 100)
    by = feed("ahead", spool=tmp_path, rowsPerBatch=10)
    eventually(lambda: taken(client, calls) == 10 * AHEAD)
    assert by.await_rows(0, 10, 5) == 10
    by.commit(10)
    eventually(lambda: taken(client, calls) == 10 * AHEAD + 10)
    assert by.report()["spooled"] == 10 * AHEAD


def test_a_batch_is_closed_so_long_after_its_first_row(feed: Callable[..., Feed], client: Client) -> None:
    by = feed("slow")
    assert by.await_rows(0, 10, 0.05) == 0
    calls = send_all(client, "slow", 3)
    assert eventually(lambda: by.await_rows(0, 10, 0.2)) == 3
    assert all(call.result() for call in calls)
    assert by.await_rows(3, 10, 0.05) == 3


def test_a_subscription_is_read_whether_spark_asks_or_not(feed: Callable[..., Feed], client: Client) -> None:
    by = feed("pushed", method="subscribe")
    eventually(lambda: client.topic("pushed")["subscribers"] == 1)
    calls = send_all(client, "pushed", 500)
    eventually(lambda: by.spool.end == 500)
    assert all(call.result() for call in calls)
    assert by.await_rows(0, 200, 1) == 200


@pytest.mark.parametrize("fails", [True, False])
def test_an_interrupted_subscription_is_an_error_unless_loss_is_allowed_and_then_is_told_once(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(skywalker.embedded(workers=1))
        given = {"address": node.address, "topic": "t", "method": "subscribe", "failOnDataLoss": str(fails)}
        by = Feed(Reading.parse(given, streams=True))
        stack.callback(by.stop)
        with node.connect() as client:
            eventually(lambda: client.topic("t")["subscribers"] == 1)
        node.stop()
        again = stack.enter_context(skywalker.embedded(workers=1, port=node.port))
        if fails:
            with pytest.raises(DataLossError, match="the subscription to t was interrupted"):
                by.await_rows(0, 10, 10 * time_factor())
        else:
            with again.connect() as client:
                eventually(lambda: client.topic("t")["subscribers"] == 1, within=10)
                client.send("t", 1)
                assert by.await_rows(0, 1, 5) == 1
            (warning,) = eventually(lambda: caplog.records)
            assert "the subscription to t was interrupted" in warning.message


def test_a_stream_to_nowhere_does_not_begin_and_leaves_its_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "CONNECT_TIMEOUT_S", 0.1)
    for _ in range(2):
        with pytest.raises(Unreachable):
            Feed(Reading.parse({"address": "127.0.0.1:1", "topic": "t", "spool": str(tmp_path)}, streams=True))


def damaged_spool(directory: Path) -> Path:
    """Leave a spool whose only file has nothing whole, and return that."""
    left = open_spool(directory)
    left.append({"t": [b"\x01", b"\x02"]})
    left.seal()
    left.close()
    (file,) = directory.glob("*.rows")
    file.write_bytes(b"?" * file.stat().st_size)
    return file


def test_a_damaged_spool_ends_the_stream_with_the_name_of_the_file_which_stays(
    feed: Callable[..., Feed], tmp_path: Path
) -> None:
    file = damaged_spool(tmp_path)
    for _ in range(2):
        with pytest.raises(DataLossError, match=rf"option 'spool': damaged.* {file} .*failOnDataLoss=false"):
            feed("damaged", spool=tmp_path)
    assert set(file.read_bytes()) == {ord("?")}


def test_where_loss_is_allowed_a_damaged_file_has_another_name_and_the_stream_goes_on(
    feed: Callable[..., Feed], client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = damaged_spool(tmp_path)
    by = feed("damaged on", spool=tmp_path, failOnDataLoss=False)
    assert str(file) in caplog.text
    assert set(Path(f"{file}.damaged").read_bytes()) == {ord("?")}
    client.send("damaged on", 1)
    assert by.await_rows(0, 1, 5) == 1


def test_a_spool_that_is_deleted_meanwhile_is_named_and_takes_no_more_values(
    feed: Callable[..., Feed], client: Client, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    by = feed("deleted", spool=spool)
    client.send("deleted", 0)
    assert by.await_rows(0, 1, 5) == 1
    shutil.rmtree(spool)
    (call,) = send_all(client, "deleted", 1)
    with pytest.raises(ConfigError, match=rf"option 'spool': {spool} cannot be written to"):
        by.await_rows(1, 1, 5 * time_factor())
    assert taken(client, [call]) == 0
    with pytest.raises(ConfigError, match=rf"option 'spool': {spool} cannot be written to"):
        by.commit(1)


def test_a_receiver_that_is_killed_by_a_signal_without_a_name_is_told_by_its_number(node: embedding.Node) -> None:
    feeder = Feeder(Reading.parse({"address": node.address, "topic": "killed"}, streams=True))
    os.kill(feeder._pid, signal.SIGRTMIN + 1)
    with pytest.raises(ReceiverLostError, match=f"was killed by signal {signal.SIGRTMIN + 1}: start the query again"):
        feeder.ask(Feed.first)
    feeder.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_rows_that_were_with_a_driver_that_has_ended_are_said_to_be_lost(
    node: embedding.Node, client: Client, fails: bool
) -> None:
    given = {"address": node.address, "topic": "lost", "waitMs": "5000", "failOnDataLoss": str(fails).lower()}
    schema = StructType([StructField("id", LongType())])
    reader = TableStreamReader(Reading.parse(given, streams=True), schema)
    try:
        if fails:
            with pytest.raises(DataLossError, match="40 of the rows 40 to 80 are lost: they were with a driver that"):
                reader.partitions({"row": 40}, {"row": 80})
            return
        assert reader.partitions({"row": 40}, {"row": 80}) == []
        calls = send_all(client, "lost", 5)
        assert reader.latestOffset({"row": 80}, ReadMaxRows(5)) == {"row": 85}
        eventually(lambda: taken(client, calls) == 5)
    finally:
        reader.stop()
