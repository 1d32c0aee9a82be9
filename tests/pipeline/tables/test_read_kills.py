"""kill -9 of the driver inside a batch, and of what receives at any moment: only what the documents say is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import psutil
import pytest

import skywalker
from skywalker import embedding
from skywalker.clients.blocking.client import Client
from skywalker.pipeline.tables.spool import open_spool
from skywalker.pipeline.tables.stream import _bodies
from tests.helpers import eventually, time_factor
from tests.pipeline.tables.streams import SPARK_S, Batches, running, send_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_S = 90.0
"""Seconds for a Spark to start in a process of its own."""

RUNNER = "python_streaming_source_runner"
"""What Spark starts on the driver for each stream."""

DRIVER = """
import pathlib, sys, time
from skywalker.pipeline import session
from skywalker.pipeline.tables.source import TableSource

address, root = sys.argv[1], pathlib.Path(sys.argv[2])
spark = session.local(app="killed", cores=1)
spark.dataSource.register(TableSource)

def sink(name):
    def write(frame, number):
        ids = [row.id for row in frame.collect()]
        if number == 1:
            (root / f"{name}.stuck").touch()
            time.sleep(600)
        part = root / f"{name}.{number}.part"
        part.write_text(" ".join(map(str, ids)))
        part.rename(root / f"{name}.{number}.ids")
    return write

for name in ("spooled", "plain"):
    read = {"address": address, "topic": name, "rowsPerBatch": 40, "waitMs": 300}
    if name == "spooled":
        read["spool"] = root / "spool"
    frame = spark.readStream.format("skywalker").options(**read).schema("id BIGINT").load()
    frame.writeStream.foreachBatch(sink(name)).option("checkpointLocation", str(root / name)).start()
spark.streams.awaitAnyTermination()
"""

FEED = """
import sys, threading
from skywalker.pipeline.tables.feeding import Feed
from skywalker.pipeline.tables.reading import Reading

given = {"address": sys.argv[1], "topic": "t", "spool": sys.argv[2], "rowsPerBatch": "1000000"}
Feed(Reading.parse(given, streams=True))
threading.Event().wait()
"""


@contextlib.contextmanager
def killed_at_the_end(program: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, and at the end of the `with` block kill it and all that it started."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
        assert process.poll() is None, "it ended by itself"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def written(root: Path, name: str) -> Batches:
    """What a sink that is idempotent has of the batches before the kill."""
    sink = Batches()
    for path in root.glob(f"{name}.*.ids"):
        sink.ids[int(path.name.split(".")[1])] = [int(word) for word in path.read_text().split()]
    return sink


@pytest.mark.timeout(300)  # a second Spark has to start, beside whatever else the machine does
def test_a_driver_killed_inside_a_batch_loses_and_doubles_nothing_with_a_spool_and_says_what_it_lost_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    with skywalker.embedded(workers=1) as node, node.connect() as client:
        sent = {name: send_all(client, name, range(100)) for name in ("spooled", "plain")}
        with killed_at_the_end(DRIVER, node.address, tmp_path):
            for name in sent:
                eventually((tmp_path / f"{name}.stuck").exists, within=START_S)
            # Ahead of the batch, what is on disk is acknowledged; what is not has stayed with its senders.
            eventually(lambda: all(call.done() for call in sent["spooled"]))
            assert sum(call.done() for call in sent["plain"]) == 80

        with_spool, without = written(tmp_path, "spooled"), written(tmp_path, "plain")
        assert {**with_spool.ids} == {**without.ids} == {0: [*range(40)]}
        read = {"address": node.address, "rowsPerBatch": 40, "waitMs": 300}

        spooled = {**read, "topic": "spooled", "spool": tmp_path / "spool"}
        with running(spark, spooled, with_spool, tmp_path / "spooled", availableNow=True) as query:
            assert query.awaitTermination(SPARK_S * time_factor())
        assert with_spool.all == [*range(100)]
        assert with_spool.ids[1] == [*range(40, 80)]

        plain = {**read, "topic": "plain"}
        with (
            running(spark, plain, without, tmp_path / "plain", availableNow=True) as query,
            pytest.raises(Exception) as caught,  # noqa: PT011
        ):
            query.awaitTermination(SPARK_S * time_factor())
        assert "40 of the rows 40 to 80 are lost: they were with a driver that has ended" in str(caught.value)
        anyway = {**plain, "failOnDataLoss": "false"}
        with running(spark, anyway, without, tmp_path / "plain", availableNow=True) as query:
            assert query.awaitTermination(SPARK_S * time_factor())
        assert without.all == [*range(40), *range(80, 100)]
        assert all(call.result() for calls in sent.values() for call in calls)


def receivers() -> list[psutil.Process]:
    """Those of the streams of this process's Spark: each is a child of the one that Spark started."""
    runners = [each for each in psutil.Process().children(recursive=True) if is_runner(each)]
    return [each for each in runners if each.parent() in runners]


def is_runner(process: psutil.Process) -> bool:
    try:
        return RUNNER in " ".join(process.cmdline())
    except psutil.Error:  # it has ended
        return False


def the_receiver() -> psutil.Process:
    """The only one, once those of earlier streams have ended."""
    (receiver,) = receivers()
    return receiver


def test_a_query_whose_receiver_is_killed_says_so_and_goes_on_when_it_is_started_again(
    spark: SparkSession, node: embedding.Node, client: Client, tmp_path: Path
) -> None:
    sink = Batches()
    read = {"address": node.address, "topic": "killed", "spool": tmp_path / "spool", "waitMs": 100}
    with running(spark, read, sink, tmp_path / "checkpoint") as query:
        assert all(call.result() for call in send_all(client, "killed", range(50)))
        eventually(lambda: sink.all == [*range(50)], within=SPARK_S)
        receiver = eventually(the_receiver, within=SPARK_S)
        receiver.kill()
        problem = str(eventually(query.exception, within=SPARK_S))
        told = f"process {receiver.pid}, which received for this stream, was killed by SIGKILL: start the query again"
        assert told in problem
        assert "Traceback" not in problem
    sent = send_all(client, "killed", range(50, 100))
    with running(spark, read, sink, tmp_path / "checkpoint"):
        eventually(lambda: sink.all == [*range(100)], within=SPARK_S)
    assert all(call.result() for call in sent)
    eventually(lambda: not receivers(), within=SPARK_S)


def test_no_receiver_outlives_the_process_of_spark_that_asks_it(
    spark: SparkSession, node: embedding.Node, tmp_path: Path
) -> None:
    read = {"address": node.address, "topic": "orphan", "spool": tmp_path / "spool", "waitMs": 86_000_000}
    with running(spark, read, Batches(), tmp_path / "checkpoint") as query:
        receiver = eventually(the_receiver, within=SPARK_S)
        runner = receiver.parent()
        assert runner is not None
        runner.kill()
        assert eventually(query.exception, within=SPARK_S)
        eventually(lambda: not receiver.is_running() or receiver.status() == psutil.STATUS_ZOMBIE, within=SPARK_S)
    open_spool(tmp_path / "spool").close()


def test_what_a_sender_was_told_true_of_is_in_the_spool_whenever_the_receiver_is_killed(tmp_path: Path) -> None:
    told: list[int] = []
    ended = threading.Event()
    with skywalker.embedded(workers=1) as node, node.connect() as client:
        thread = threading.Thread(target=_keep_sending, args=(node, told, ended))
        thread.start()
        try:
            for _ in range(4):
                before = len(told)
                with killed_at_the_end(FEED, node.address, tmp_path):
                    eventually(lambda before=before: len(told) > before + 500, within=30)
            ended.set()
            while thread.is_alive():
                client.take("t", timeout=0.1, default=None)  # what is still sent is not part of this
        finally:
            ended.set()
            thread.join()
    found = spooled(tmp_path)
    assert {*told} <= {*found}


def _keep_sending(node: embedding.Node, told: list[int], ended: threading.Event) -> None:
    number = 0
    with node.connect() as client:
        while not ended.is_set():
            calls = [client.begin("send", "t", number + more, timeout=60) for more in range(64)]
            for more, call in enumerate(calls):
                call.result()
                if not ended.is_set():
                    told.append(number + more)
            number += len(calls)


def spooled(directory: Path) -> list[int]:
    spool = open_spool(directory)
    try:
        found: list[int] = []
        for extents in spool.slices(spool.first, spool.end, 1):
            for body, _, _ in _bodies(extents):
                unpacker: Any = msgpack.Unpacker()
                unpacker.feed(body)
                for _topic in unpacker:
                    found += [unpacker.unpack() for _ in range(unpacker.unpack())]
        return found
    finally:
        spool.close()
