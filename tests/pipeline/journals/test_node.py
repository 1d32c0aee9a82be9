"""A stream from the journal of a real node, one of whose workers is killed."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skywalker.embedding import Node, embedded
from skywalker.journal.reading import look, waits_us
from skywalker.pipeline.journals.source import JournalSource
from tests.helpers import eventually
from tests.pipeline.journals.streaming import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", autouse=True)
def known(spark: SparkSession) -> None:
    spark.dataSource.register(JournalSource)


def meet(node: Node, times: int) -> None:
    """Have so many values meet on topics of both workers."""

    def receive() -> None:
        with node.connect() as receiver:
            for number in range(times):
                receiver.recv(f"topic {number % 8}", timeout=20.0)

    receiving = threading.Thread(target=receive)
    receiving.start()
    with node.connect() as sender:
        for number in range(times):
            sender.send(f"topic {number % 8}", number, timeout=20.0)
    receiving.join()


def on_record(journal: Path) -> Counter[tuple[int, int, int]]:
    return Counter(
        row
        for segment in look([journal]).segments
        for made in [segment.read()]
        for row in zip(made["token"].tolist(), made["connection"].tolist(), waits_us(made).tolist(), strict=True)
    )


def test_a_stream_has_what_is_on_record_once_though_a_worker_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    stream = Stream(spark, journal, tmp_path / "checkpoint")

    def streamed() -> Counter[tuple[int, int, int]]:
        return Counter((row.token, row.connection, row.wait_us) for rows in stream.rows.values() for row in rows)

    with embedded(workers=2, journal=str(journal), journal_rotate="1MiB/60s") as node:
        meet(node, 100)
        eventually(lambda: on_record(journal).total() == 200, within=10.0)
        with stream.running():
            eventually(lambda: streamed().total() == 200, within=30.0)
            before = node.worker_pids()
            os.kill(before[0], signal.SIGKILL)
            eventually(lambda: len(node.worker_pids()) == 2 and node.worker_pids() != before)
            # Its successor ends what it left.
            meet(node, 100)
            eventually(lambda: streamed().total() == 400, within=30.0)
            assert streamed() == on_record(journal)
    assert not [*journal.glob("*.open")]
