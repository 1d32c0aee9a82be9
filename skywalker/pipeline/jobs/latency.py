"""How long calls take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import MET, keys, named, stepped
from skywalker.pipeline.jobs.defaults import MINUTE_S
from skywalker.pipeline.jobs.waits import histogram, percentiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def latency(
    calls: DataFrame,
    names: DataFrame | None = None,
    by: Sequence[str] = ("minute",),
    exact: bool = False,
    seconds: int = MINUTE_S,
) -> DataFrame:
    """Return percentiles of the waits in µs, for each of the groups `by`; a "minute" has so many seconds.

    There are two rows for each. "wait" is of all calls that met their partner: from the call's arrival to its answer.
    "hand-off" is of those among them whose partner was there already. Percentiles are within 1 % of the truth unless
    `exact`, which takes memory for every different wait. Raises ConfigError for groups that there are not.
    """
    columns = keys(by)
    met = stepped(calls.where(F.col("outcome").isin(*MET)), seconds)
    # What counts for both measures is doubled as rows of the histogram, which are few.
    both = F.array(F.lit("wait"), F.lit("hand-off"))
    measures = F.when(F.col("outcome") == "prompt", both).otherwise(F.array(F.lit("wait")))
    bins = histogram(met, [*columns, "outcome"], exact).withColumn("measure", F.explode(measures))
    found = percentiles(bins, [*columns, "measure"])
    return named(found, names) if "token" in columns else found
