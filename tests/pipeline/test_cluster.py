"""Executors in processes of their own, which get the package as a zip: formats, streams and commands work there."""

from __future__ import annotations

from pathlib import Path

import pytest

import skywalker
from tests.helpers import time_factor
from tests.pipeline.jobs import segments
from tests.pipeline.submitting import SUBMIT_S, submit
from tests.pipeline.tables.streams import send_all

PROGRAM = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from skywalker import pipeline

address, root = sys.argv[1], Path(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
before = dict(spark.sparkContext.environment)
pipeline.register(spark)
assert spark.sparkContext.environment == before

nodes = spark.readStream.format("skywalker").option("address", address)
jobs = nodes.options(topic="jobs", spool=root / "spool", waitMs=1000).schema("id BIGINT").load()
writer = jobs.writeStream.format("skywalker").options(address=address, topic="done", checkpointLocation=root / "done")
writer.trigger(availableNow=True).start().awaitTermination()

from skywalker.pipeline.__main__ import main

sys.argv[1:] = ["ingest", "--input", str(root / "journal"), "--output", str(root / "out")]
main()
spark.stop()
"""

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that are over before better code would have paid."""


@pytest.mark.alone  # three JVMs that give each other up, and use 40 s of a core: beside others it took minutes
@pytest.mark.timeout(2 * SUBMIT_S * time_factor())
def test_streams_and_commands_run_on_a_cluster_that_gets_the_package_by_py_files(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    segments.write(tmp_path / "journal", 60)
    with skywalker.embedded(workers=1) as node, node.connect() as client:
        sent = send_all(client, "jobs", range(50))
        done = [client.begin("take", "done", timeout=600) for _ in range(50)]
        said = submit(
            tmp_path,
            PROGRAM,
            node.address,
            tmp_path,
            master="local-cluster[1,1,512]",
            spark_sql_codegen_wholeStage="false",
            spark_driver_memory="512m",
            spark_executor_memory="512m",
            spark_driver_extraJavaOptions=QUICK,
            spark_executor_extraJavaOptions=QUICK,
        )
        assert sorted(call.result()["id"] for call in done) == [*range(50)]
        assert all(call.result() for call in sent)
    assert "1 segments, 60 records" in said
