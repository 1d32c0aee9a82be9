"""The jobs' tests have small data and many plans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.jobs.records import interpreted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package", autouse=True)
def plans_are_not_compiled(spark: SparkSession) -> Iterator[None]:
    """To compile a plan takes ten times as long as to follow it for some records."""
    with interpreted(spark):
        yield
