"""A journal made into Parquet: nothing twice, nothing forgotten, whatever was interrupted."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from skywalker.address import Address
from skywalker.errors import ConfigError, JournalError
from skywalker.journal import rings
from skywalker.journal.header import CALLS
from skywalker.members import Member, Snapshot
from skywalker.pipeline.jobs import ingest as module
from skywalker.pipeline.jobs.ingest import MOST_DAYS, ingest, take_in, write_calls
from skywalker.pipeline.jobs.inputs import read
from skywalker.pipeline.jobs.topics import topics
from tests.journal import making
from tests.pipeline.jobs import segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def records(directory: Path) -> int:
    """How many records there are, counted as any reader of Parquet would: files with a dot in front are none."""
    files = (directory / "calls").glob("date=*/[!.]*.parquet")
    return sum(pq.ParquetFile(file).metadata.num_rows for file in files)


def test_what_is_taken_once_is_not_taken_again(spark: SparkSession, tmp_path: Path) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    segments.write(journal, 500, worker=0)
    segments.write(journal, 300, worker=1)
    first = ingest(spark, [journal], out)
    assert (first.segments, first.records, first.known) == (2, 800, 0)
    segments.write(journal, 50, worker=2)
    second = ingest(spark, [journal], out)
    assert (second.segments, second.records, second.known) == (1, 50, 2)
    assert records(out) == 850
    row = read(spark, out).calls.selectExpr("count(*)", "sum(sample)", "count(distinct worker)").first()
    assert row is not None
    assert tuple(row) == (850, 1700, 3)


def test_parquet_says_what_the_journal_says(spark: SparkSession, tmp_path: Path) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    segments.write(journal, 40)
    segments.write_names(journal, {-3: b"\xa4jobs", 0: b"\x05"})
    ingest(spark, [journal], out)
    (calls, names, _), (its_calls, its_names, _) = read(spark, out), read(spark, journal)
    assert names is not None
    assert its_names is not None
    assert sorted(calls.drop("date").collect()) == sorted(its_calls.collect())
    assert sorted(names.collect()) == sorted(its_names.collect())
    named = {row.token: row.topic for row in topics(calls, names).collect()}
    assert named == {token: {-3: "jobs", 0: "5"}.get(token) for token in range(-3, 4)}


def test_the_rings_of_a_journal_go_along_and_say_how_nodes_are_called(spark: SparkSession, tmp_path: Path) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    segments.write(journal, 7)
    tokens = {"a": ("red", (1,)), "b": ("red", (2,)), "c" * 32: ("blue", (3,))}
    ring = Snapshot(
        Member(id, name, Address("127.0.0.1", 1), 1, False, tokens) for id, (name, tokens) in tokens.items()
    )
    rings.keep(journal, ring.pack(), "a-w0", 1)
    torn = journal / f"{0:016x}.ring"
    torn.write_bytes(b"")
    (problem,) = ingest(spark, [journal], out).problems
    assert str(torn) in str(problem)
    for directory in (journal, out):
        owners = read(spark, directory).owners
        (told,) = owners.told(spark.sql(f"select '{ring.version}' ring, 3L token")).collect()
        assert told.owner_node == "b"
        assert [*map(owners.called, ("a", "b", "c" * 32, "d" * 32))] == ["red a", "red b", "blue", "d" * 8]


def test_a_segment_that_is_written_is_replaced_by_more_of_itself(spark: SparkSession, tmp_path: Path) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    path = segments.write(journal, 10, suffix=".calls.open")
    with path.open("ab") as file:
        file.write(b"\1" * 7)  # its writer is in the middle of a record
    assert ingest(spark, [journal], out).records == 10
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 7)
    segments.grow(path, 5)
    path.rename(path.with_suffix(""))
    assert ingest(spark, [journal], out).records == 15
    assert records(out) == 15
    assert ingest(spark, [journal], out).known == 1


def test_a_segment_that_has_been_deleted_or_cut_stays(spark: SparkSession, tmp_path: Path) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    gone, cut = segments.write(journal, 20, worker=0), segments.write(journal, 30, worker=1)
    ingest(spark, [journal], out)
    gone.unlink()
    with cut.open("rb+") as file:
        file.truncate(2000)
    assert ingest(spark, [journal], out).segments == 0
    assert records(out) == 50


def test_midnight_goes_through_a_segment(tmp_path: Path) -> None:
    path = segments.write(tmp_path / "journal", 100, begin=segments.MIDNIGHT_S - 5, span=10)
    out = tmp_path / "out"
    (out / "done").mkdir(parents=True)
    assert write_calls(path, out) == 100
    assert sorted(each.name for each in (out / "calls").iterdir()) == ["date=2026-01-01", "date=2026-01-02"]
    assert records(out) == 100


def test_who_is_interrupted_before_the_end_leaves_nothing_that_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segments.write(tmp_path / "journal", 100, begin=segments.MIDNIGHT_S - 5, span=10)
    out = tmp_path / "out"
    (out / "done").mkdir(parents=True)

    def stop(file: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_put", stop)
        with pytest.raises(KeyboardInterrupt):
            write_calls(path, out)
    assert not [*(out / "done").iterdir()]
    segments.grow(path, 1)
    assert write_calls(path, out) == 101
    assert records(out) == 101
    assert not [*out.rglob(".*.parquet.*")]


def test_a_file_that_is_no_journal_is_named_and_left_out(spark: SparkSession, tmp_path: Path) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    segments.write(journal, 20)
    (journal / "a-w9-0000000000000001.calls").write_bytes(b"something else" * 100)
    done = ingest(spark, [journal], out)
    assert (done.segments, done.records) == (1, 20)
    (problem,) = done.problems
    assert "a-w9-0000000000000001.calls" in str(problem)


@pytest.mark.parametrize("suffix", [".calls", ".calls.open"])
def test_a_segment_that_is_deleted_before_its_turn_is_passed_over_and_no_other_trouble_is(
    tmp_path: Path, suffix: str
) -> None:
    path = segments.write(tmp_path / "journal", 20, suffix=suffix)
    with pytest.raises(FileNotFoundError, match="done"):
        take_in(CALLS, path, tmp_path / "out")
    (tmp_path / "out" / "done").mkdir()
    assert take_in(CALLS, path, tmp_path / "out") == (1, 20, "")
    path.unlink()
    assert take_in(CALLS, path, tmp_path / "out") == (0, 0, "")


def test_two_at_a_time_do_not_get_into_each_others_way(spark: SparkSession, tmp_path: Path) -> None:
    segments.write(tmp_path / "journal", 1)
    (tmp_path / "out" / "done").mkdir(parents=True)
    with (tmp_path / "out" / "done" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another ingest is just bringing"):
            ingest(spark, [tmp_path / "journal"], tmp_path / "out")


def test_a_journal_without_records_makes_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    assert ingest(spark, [tmp_path / "journal"], tmp_path / "out").segments == 0
    assert read(spark, tmp_path / "out").calls.count() == 0


def test_what_holds_no_calls_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds neither a journal"):
        read(spark, tmp_path)
    with pytest.raises(ConfigError, match="there is no directory"):
        read(spark, tmp_path / "nowhere")


def test_a_segment_of_any_number_of_days_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    path = making.put(tmp_path / "journal", making.header(), making.records(1000, ended=np.arange(1000) * 86_400.0))
    problem = f"{path}: it is damaged: its calls are of more than {MOST_DAYS} days"
    with pytest.raises(JournalError, match=problem):
        write_calls(path, tmp_path / "parquet")
    assert take_in(CALLS, path, tmp_path / "parquet") == (0, 0, problem)
    assert not [*(tmp_path / "parquet").rglob("*.parquet")]
