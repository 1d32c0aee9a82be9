"""Counting calls, of which each row stands for `sample`, and what rows are counted by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.defaults import GROUPS, MINUTE_S

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MET: Final = ("met", "prompt")
"""The outcomes of a call that met its partner."""

GIVES: Final = ("send", "publish")
TAKES: Final = ("recv", "take")


def keys(by: Sequence[str]) -> list[str]:
    """Return the columns of the groups `by`, each once. Raises ConfigError for a group that there is not."""
    found: dict[str, None] = {}
    for group in by:
        if group not in GROUPS:
            raise ConfigError(f"calls cannot be told apart by {group!r}; choose from {', '.join(GROUPS)}")
        found |= dict.fromkeys(GROUPS[group])
    return [*found]


def count(where: Column | None = None) -> Column:
    """Return the number of calls in a group, or of those for which `where` is true."""
    return F.sum("sample") if where is None else F.sum(F.when(where, F.col("sample")).otherwise(F.lit(0)))


def stepped(calls: DataFrame, seconds: int = MINUTE_S) -> DataFrame:
    """Return `calls` with each time set back to the start of its step of so many seconds, counted in Unix time."""
    return calls.withColumn("time", step_of("time", seconds))


def step_of(time: str, seconds: int) -> Column:
    """Return the start of the step of so many seconds in which a time is. No time zone changes it."""
    length = seconds * 1_000_000
    since = F.unix_micros(time)
    return F.timestamp_micros(since - F.pmod(since, F.lit(length)))


def forwarded() -> Column:
    """Return whether a call came in at another worker than the one that owns its topic."""
    return F.col("route") != "here"


def condense(calls: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return one row for all calls that are the same in `columns`; `sample` is how many. All other columns are gone."""
    return calls.groupBy(*columns).agg(count().alias("sample"))


def named(frame: DataFrame, names: DataFrame | None) -> DataFrame:
    """Return `frame` with a column `topic` behind `token`: the name that `names` has for it, null where it has none."""
    if names is None:
        topics = frame.withColumn("topic", F.lit(None).cast("string"))
    else:
        # Each worker names what it has met, so a token may have come in many times.
        topics = frame.join(names.groupBy("token").agg(F.min("topic").alias("topic")), "token", "left")
    at = frame.columns.index("token") + 1
    return topics.select(*frame.columns[:at], "topic", *frame.columns[at:])
