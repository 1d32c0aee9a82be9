"""The token column of a Spark table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skywalker.pipeline.tokens import token_of as token_column
from skywalker.ring import token_of
from skywalker.wire import values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: dict[str, list[Any]] = {
    "string": ["", None, "jobs", "é" * 200, "x" * 4093],
    "bigint": [0, None, -(2**63), 2**63 - 1, -33],
    "int": [0, None, 128, -129, 2**31 - 1],
    "smallint": [0, None, 255, -(2**15), 32],
    "tinyint": [0, None, 127, -128, -32],
    "binary": [b"", None, b"\xff\0", b"z" * 300, b"jobs"],
}


def test_columns_have_the_tokens_that_a_node_gives_and_null_for_null(spark: SparkSession) -> None:
    rows = [*zip(*COLUMNS.values(), strict=True)]
    table = spark.createDataFrame(rows, ", ".join(f"t_{kind} {kind}" for kind in COLUMNS)).coalesce(1)
    columns = [token_column(f"t_{kind}").alias(kind) for kind in COLUMNS]
    # Also given as a column, within an expression.
    (*got, last) = zip(*table.select(*columns, token_column(table["t_bigint"]).bitwiseXOR(7)).collect(), strict=True)
    for kind, tokens in zip(COLUMNS, got, strict=True):
        assert list(tokens) == [None if topic is None else one(topic) for topic in COLUMNS[kind]], kind
    assert list(last) == [None if topic is None else one(topic) ^ 7 for topic in COLUMNS["bigint"]]


def one(topic: Any) -> int:
    return token_of(values.canonical(values.pack(topic)))


def test_a_column_of_another_type_fails_and_says_what_it_takes(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="topics of type double have no token here: they must be integers, text or"):
        spark.createDataFrame([(1.5,)], "topic double").select(token_column("topic")).collect()
