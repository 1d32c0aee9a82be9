"""The group `skywalker pipeline`; each of its commands is loaded when it is called, or when help lists it."""

from __future__ import annotations

from typing import Final

import click

from skywalker.cli.lazy import Lazy

_JOBS: Final = "skywalker.cli.pipeline.jobs"
_HOMES: Final = {
    "ingest": "skywalker.cli.pipeline.jobs",
    "report": "skywalker.cli.pipeline.jobs",
    "latency": _JOBS,
    "topics": _JOBS,
    "balance": _JOBS,
    "forwarding": _JOBS,
    "timeouts": _JOBS,
    "unmatched": _JOBS,
    "capacity": _JOBS,
    "plan": "skywalker.cli.pipeline.plan",
}


@click.group(
    cls=Lazy,
    homes=_HOMES,
    short_help="Analyse recorded traffic, on Spark",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def pipeline() -> None:
    """What a journal recorded, studied on Spark; and rings planned.

    \b
      skywalker serve --journal calls                           records every call
      skywalker pipeline report --input calls --output report   all figures, on one page with plots
      skywalker pipeline ingest --input calls --output tables   makes Parquet of it, each segment once
      skywalker pipeline latency --input tables --by topic      one job of many

    All but `plan` need pyspark, which skywalker's extra `spark` brings, and Java 17 or newer. Spark runs in this
    process on all cores; under spark-submit, or with SPARK_REMOTE, it is the one that is there.
    """
