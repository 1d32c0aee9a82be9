"""One Spark for all tests of the pipeline: a JVM takes seconds to start, and holds half a gigabyte while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from skywalker import pipeline
from skywalker.pipeline import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Tests have small data and many plans: to compile one takes ten times as long as to follow it for some records.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session that knows both formats; a test must leave its settings and its streams as it found them."""
    from pyspark import SparkContext

    made = session.local(app="tests", cores=2, **SMALL)
    try:
        pipeline.register(made)
        yield made
    finally:
        # Spark leaves its JVM to the end of this process; a test run that is over shall have no process left.
        gateway = SparkContext._gateway
        made.stop()
        if gateway is not None:
            gateway.shutdown()
            SparkContext._gateway = SparkContext._jvm = None
            with gateway.proc:
                gateway.proc.stdin.close()
                gateway.proc.wait(timeout=30)
