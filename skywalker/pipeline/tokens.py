"""The token of each topic of a Spark column: by it a topic has its place on the ring."""

from __future__ import annotations

from typing import TYPE_CHECKING

# Here and not below, because Spark takes from the hints of a function what to call it with.
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column


def token_of(topics: Column | str) -> Column:
    """Return a BIGINT column of the tokens of a column of topics, given by itself or by its name; null for null.

    Topics are strings, integers of any width, or binary, and have the tokens that a node gives them. Works with
    classic sessions and with Spark Connect. The job fails with a TypeError if the column is of another type.
    """
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import LongType

    # Made at each call, since what it is depends on the kind of session.
    column: Column = arrow_udf(_tokens, LongType())(topics)  # type: ignore[call-overload]  # they lack a default
    return column


def _tokens(topics: pa.Array) -> pa.Array:
    from skywalker.pipeline.planner.murmur import tokens_of

    return tokens_of(topics)
