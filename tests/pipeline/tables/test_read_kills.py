"""kill -9 of the driver inside a batch, and of what receives at any moment: only what the documents say is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

import skywalker
from skywalker import embedding
from skywalker.clients.blocking.client import Client
from skywalker.pipeline.tables.spool import open_spool
from tests.helpers import eventually, time_factor, written_to
from tests.pipeline.tables.streams import SPARK_S, Batches, running, send_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.alone  # Spark gives a receiver 10 s to start, not to be changed: too few beside others

START_S = 180.0
"""Seconds for a Spark to start in a process of its own, and come to its second batch, beside others that start."""

PATIENT_MS = 60_000
"""For a batch to be full, or the first row to come: no test shall depend on how long a node and a disk take."""

RUNNER = "python_streaming_source_runner"
"""What Spark starts on the driver for each stream."""

DRIVER = """
import pathlib, sys, time
from skywalker.pipeline import session
from skywalker.pipeline.tables.source import TableSource

address, root = sys.argv[1], pathlib.Path(sys.argv[2])
spark = session.local(app="killed", cores=1, **{"spark.sql.codegen.wholeStage": "false"})
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

read = {
    "address": address, "topic": "spooled", "rowsPerBatch": 40, "waitMs": int(sys.argv[3]), "spool": root / "spool"
}
frame = spark.readStream.format("skywalker").options(**read).schema("id BIGINT").load()
writer = frame.writeStream.foreachBatch(sink("spooled")).option("checkpointLocation", str(root / "spooled"))
query = writer.start()
while not (root / "spooled.stuck").exists():
    if not query.isActive:
        # Spark gives a source some seconds to start, too few on a busy machine. Nothing is read by then.
        if "failed to connect back" not in str(query.exception()):
            sys.exit(str(query.exception()))
        query = writer.start()
    time.sleep(0.1)
spark.streams.resetTerminated()
spark.streams.awaitAnyTermination()
"""


class Program:
    """A process of its own; what it says on standard error is told if it ends by itself."""

    def __init__(self, program: str, *arguments: object) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, "-c", program, *map(str, arguments)]
        self._process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=self._said)

    def check(self) -> None:
        """Fail if it has ended."""
        assert self._process.poll() is None, f"it ended by itself, with status {self._process.returncode}"

    def await_files(self, paths: Iterable[Path]) -> None:
        """Wait until all these are there. Fails as soon as it has ended."""
        left = [*paths]
        eventually(lambda: self._process.poll() is not None or all(path.exists() for path in left), within=START_S)
        self.check()

    @property
    def said(self) -> str:
        """What it said until now."""
        return written_to(self._said)

    def kill(self) -> None:
        """Kill it and all that it started."""
        with self._said, contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def killed_at_the_end(program: str, *arguments: object) -> Iterator[Program]:
    """Run a program, and kill it at the end of the `with` block, which fails with what it said."""
    process = Program(program, *arguments)
    try:
        yield process
        process.check()
    except BaseException as error:
        error.add_note(f"the program said: {process.said}")
        raise
    finally:
        process.kill()


def written(root: Path, name: str) -> Batches:
    """What a sink that is idempotent has of the batches before the kill."""
    sink = Batches()
    for path in root.glob(f"{name}.*.ids"):
        sink.ids[int(path.name.split(".")[1])] = [int(word) for word in path.read_text().split()]
    return sink


# Not of how long the Spark of all tests takes to start: where many start at once, that takes minutes, too.
@pytest.mark.timeout((START_S + 4 * SPARK_S) * time_factor(), func_only=True)
def test_a_driver_killed_inside_a_batch_loses_and_doubles_nothing_with_a_spool(
    spark: SparkSession, tmp_path: Path
) -> None:
    with skywalker.embedded(workers=1) as node, node.connect() as client:
        sent = send_all(client, "spooled", range(120))
        with killed_at_the_end(DRIVER, node.address, tmp_path, PATIENT_MS) as driver:
            driver.await_files([tmp_path / "spooled.stuck"])
            # Ahead of the batch, what is on disk is acknowledged.
            eventually(lambda: all(call.done() for call in sent), within=SPARK_S)

        sink = written(tmp_path, "spooled")
        assert {**sink.ids} == {0: [*range(40)]}
        # What is in the spool is there at once; then nothing comes.
        read = {"address": node.address, "rowsPerBatch": 40, "topic": "spooled", "waitMs": 100}
        read["spool"] = str(tmp_path / "spool")
        with running(spark, read, sink, tmp_path / "spooled", availableNow=True) as query:
            assert query.awaitTermination(SPARK_S * time_factor())
        assert sink.all == [*range(120)]
        assert sink.ids[1] == [*range(40, 80)]
        assert all(call.result() for call in sent)


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
