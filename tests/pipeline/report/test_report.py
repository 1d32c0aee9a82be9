"""A report: its tables, its pictures, and a page that needs nothing else."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from matplotlib.image import imread

from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.inputs import Input
from skywalker.pipeline.jobs.owners import Owners
from skywalker.pipeline.report import pictures
from skywalker.pipeline.report.page import make
from tests.pipeline.jobs.records import Record, a_ring, by_chance, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PICTURES = ("rates", "waits", "balance", "heat", "topics", "forwarding", "timeouts")


def calls(records: list[Record]) -> int:
    return sum(record.sample for record in records)


def test_a_report_has_every_call_in_every_table_and_picture(spark: SparkSession, tmp_path: Path) -> None:
    records = by_chance(500, 5)
    names = spark.createDataFrame([("a", records[0].token, "<b>$x_1$ & co")], "node string, token bigint, topic string")
    out, told = tmp_path / "out", list[str]()
    context, others = spark.sparkContext, threading.Barrier(2, timeout=60)

    @contextlib.contextmanager
    def step(words: str) -> Iterator[None]:
        told.append(words)
        if words in ("hot topics", "balance"):
            others.wait()  # some of it is made at a time
        yield

    context.setJobGroup("one report", "all of it")
    try:
        # Cached, as the same few records are read ten times.
        page = make(Input(table(spark, records).cache(), names, Owners({}, a_ring())), out, "Calls of <a> day", step)
        jobs = context.statusTracker().getJobIdsForGroup("one report")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert 10 < len(jobs) < 30
    assert not others.broken
    text = page.read_text(encoding="utf-8")
    assert "<h1>Calls of &lt;a&gt; day</h1>" in text
    assert "&lt;b&gt;$x_1$ &amp; co" in text
    assert not re.findall(r"(?:src|href)=\"(?!data:)|url\(|<script", text), "the page needs something else"
    assert ">called a<" in text
    assert ">a<" not in text, "a node is shown by its id"
    assert told[0] == "calls a second"
    assert told[-1] == "pictures"
    for name in PICTURES:
        image = imread(out / f"{name}.png")
        assert image.shape[1] == pictures.WIDTH * pictures.DPI
        assert image[0, 0, :3].min() == 1, "its background is not white"
        assert len({*map(tuple, image.reshape(-1, image.shape[2])[::97].tolist())}) > 3, f"{name} is empty"
    sums = {
        "capacity": "sum(calls)",
        "rates": "sum(prompt + met + timed_out + other)",
        "heat": "sum(calls)",
        "topics": "sum(calls)",
        "forwarding": "sum(here + to_sibling + to_node)",
        "methods": "sum(calls)",
        "balance": "sum(owned) / 3",
    }
    for name, total in sums.items():
        (row,) = spark.read.parquet(str(out / "tables" / name)).selectExpr(total).collect()
        assert row[0] == calls(records), name
    missed = [record for record in records if record.outcome not in ("met", "prompt")]
    (row,) = spark.read.parquet(str(out / "tables" / "timeouts")).selectExpr("sum(calls)").collect()
    assert row[0] == calls(missed)


def test_no_calls_make_none(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no calls to report on"):
        make(Input(table(spark, []), None), tmp_path, "none")
    assert not (tmp_path / "index.html").exists()


def test_a_part_of_a_report_that_fails_ends_it(spark: SparkSession, tmp_path: Path) -> None:
    @contextlib.contextmanager
    def step(words: str) -> Iterator[None]:
        if words == "balance":
            raise ConfigError("no balance")
        yield

    with pytest.raises(ConfigError, match="no balance"):
        make(Input(table(spark, by_chance(40, 3)).cache()), tmp_path, "one", step)
    assert not (tmp_path / "index.html").exists()
