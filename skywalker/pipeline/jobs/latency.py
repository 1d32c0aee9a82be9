"""How long calls take: percentiles of waits, exact or from a histogram.

The histogram is that of DDSketch (Masson, Rim, Lee, 2019): bins grow by a constant factor, so that any percentile is
wrong by at most 1 % of itself, and adding histograms up loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import MET, keys, named, stepped
from skywalker.pipeline.jobs.defaults import MINUTE_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


ERROR: Final = 0.01
"""How much of itself a wait from the histogram may be off."""

_GROWTH: Final = (1 + ERROR) / (1 - ERROR)

_NOTHING: Final = -1
"""The number of the bin of no wait at all."""

PERCENTILES: Final = {"p50_us": 500, "p90_us": 900, "p99_us": 990, "p999_us": 999}
"""The columns, and how many in a thousand wait no longer."""


def histogram(calls: DataFrame, by: Sequence[str], exact: bool = False) -> DataFrame:
    """Return how many calls waited how long, for each group of the columns `by`: a row for each bin that is not empty.

    `calls` needs `wait_us` and `sample` besides. The columns are `value` (µs, for all of the bin), `calls`, `sum_us`
    and `max_us`. If `exact`, each wait has a bin of its own.
    """
    wait = F.col("wait_us").cast("bigint")
    # A wait of a record that is damaged may be anything.
    number = wait if exact else F.when(wait > 0, F.ceil(F.log("wait_us") / math.log(_GROWTH))).otherwise(_NOTHING)
    # Its middle, to a µs, which is exact up to some 50 µs.
    middle = F.round(F.pow(F.lit(_GROWTH), "value") * (2 / (_GROWTH + 1))).cast("bigint")
    bins = calls.groupBy(*by, number.alias("value")).agg(
        F.sum("sample").alias("calls"),
        F.sum(F.col("wait_us") * F.col("sample")).alias("sum_us"),
        F.max("wait_us").alias("max_us"),
    )
    return bins if exact else bins.withColumn("value", F.when(F.col("value") == _NOTHING, 0).otherwise(middle))


def percentiles(bins: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return a row for each group of the columns `by`: calls, mean_us, a column for each of PERCENTILES, and max_us.

    `bins` is a histogram, or several one after the other. A percentile is the smallest wait that at least so many calls
    do not exceed. Mean and maximum are as exact as the waits that were counted, and no percentile exceeds the maximum.
    """
    group = Window.partitionBy(*by)
    so_far = group.orderBy("value").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = bins.withColumns({"_so_far": F.sum("calls").over(so_far), "_all": F.sum("calls").over(group)})
    longest = F.max("max_us").cast("bigint")
    so_many, all_of_it = F.col("_so_far") * 1000, F.col("_all")
    return ranked.groupBy(*by).agg(
        F.sum("calls").alias("calls"),
        (F.sum("sum_us") / F.sum("calls")).alias("mean_us"),
        # The middle of the last bin may be above all that is in it.
        *(
            F.least(F.min(F.when(so_many >= all_of_it * mille, F.col("value"))), longest).alias(name)
            for name, mille in PERCENTILES.items()
        ),
        longest.alias("max_us"),
    )


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
