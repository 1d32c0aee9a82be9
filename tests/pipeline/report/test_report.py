"""A report: its tables, its pictures, and a page that needs nothing else."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from matplotlib.image import imread

from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.inputs import Input
from skywalker.pipeline.jobs.owners import Owners
from skywalker.pipeline.jobs.progress import Progress
from skywalker.pipeline.report import style
from skywalker.pipeline.report.making import make
from skywalker.pipeline.report.tables import PASSES
from tests.helpers import eventually
from tests.pipeline.jobs.records import Record, a_ring, by_chance, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PICTURES = ("rates", "waits", "balance", "heat", "topics", "forwarding", "timeouts")


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def calls(records: list[Record]) -> int:
    return sum(record.sample for record in records)


def test_a_report_has_every_call_in_every_table_and_picture(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = by_chance(1500, 5)
    names = spark.createDataFrame([("a", records[0].token, "<b>$x_1$ & co")], "node string, token bigint, topic string")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    out = tmp_path / "out"
    # Cached, as the same few records are read ten times.
    page = make(
        Input(table(spark, records).cache(), names), out, "Calls of <a> day", Progress(spark, PASSES), Owners(a_ring())
    )
    text = page.read_text(encoding="utf-8")
    assert "<h1>Calls of &lt;a&gt; day</h1>" in text
    assert "&lt;b&gt;$x_1$ &amp; co" in text
    assert not re.findall(r"(?:src|href)=\"(?!data:)|url\(|<script", text), "the page needs something else"
    assert f"{PASSES} of {PASSES}: pictures" in terminal.getvalue()
    assert f"{PASSES + 1} of" not in terminal.getvalue()
    for name in PICTURES:
        image = imread(out / f"{name}.png")
        assert image.shape[1] == style.WIDTH * style.DPI
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


def test_one_record_makes_a_report(spark: SparkSession, tmp_path: Path) -> None:
    page = make(Input(table(spark, by_chance(1, 3)), None), tmp_path, "one", Progress(spark, PASSES))
    assert "<h1>one</h1>" in page.read_text(encoding="utf-8")


def test_no_calls_make_none(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no calls to report on"):
        make(Input(table(spark, []), None), tmp_path, "none", Progress(spark, PASSES))
    assert not (tmp_path / "index.html").exists()


def test_progress_is_for_terminals(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with Progress(spark).step("nobody watches"):
        pass
    assert capfd.readouterr().err == ""


def test_progress_counts_the_tasks_of_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress(spark, 3).step("some work"):
        spark.range(0, 4, 1, 4).selectExpr("reflect('java.lang.Thread', 'sleep', 400L)").collect()
        eventually(lambda: "1 of 3: some work" in terminal.getvalue())
    assert re.search(r"some work, \d of 4 tasks", terminal.getvalue())
    assert terminal.getvalue().endswith("\r\x1b[K"), "the line is left behind"
