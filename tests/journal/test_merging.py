"""The records of several files come in the order of their time, each once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skywalker.journal import reading
from skywalker.journal.reading import Segment, Selection, look, merged
from tests.journal.making import NOON, SECOND, header, put, records


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "RUN_RECORDS", 16)


def fail(segment: Segment) -> None:
    raise AssertionError(f"{segment.path} is there")


def test_files_that_overlap_are_merged(tmp_path: Path) -> None:
    sizes = (100, 1, 0, 333, 16, 32)
    for worker, size in enumerate(sizes):
        clock = NOON + worker * SECOND // 3
        put(tmp_path, header(worker=worker, clock_ns=clock), records(size, worker, connection=np.arange(size)))
    found = [
        (time, run.segments[origin].header.worker, int(record["connection"]))
        for run in merged(look([tmp_path]).segments, {}, fail)
        for record, time, origin in zip(run.records, run.times.tolist(), run.origins.tolist(), strict=True)
    ]
    assert found == sorted(found, key=lambda each: each[0])
    assert sorted(each[1:] for each in found) == sorted(
        (worker, number) for worker, size in enumerate(sizes) for number in range(size)
    )


def test_a_file_that_is_out_of_order_loses_nothing(tmp_path: Path) -> None:
    made = records(200)
    np.random.default_rng(1).shuffle(made)
    put(tmp_path, header(), made)
    put(tmp_path, header(worker=1), records(50))
    assert sum(len(run.records) for run in merged(look([tmp_path]).segments, {}, fail)) == 250


def test_a_merge_begins_where_it_is_told_and_takes_what_is_selected(tmp_path: Path) -> None:
    path = put(tmp_path, header(), records(100, token=np.arange(100) % 4, connection=np.arange(100)))
    runs = merged(look([tmp_path]).segments, {path.name: 90}, fail, Selection(token=3))
    assert [number for run in runs for number in run.records["connection"].tolist()] == [91, 95, 99]


def test_a_file_that_goes_meanwhile_is_told_of_and_the_others_are_read(tmp_path: Path) -> None:
    put(tmp_path, header(), records(100))
    path = put(tmp_path, header(worker=1), records(100))
    gone: list[Segment] = []
    runs = merged(look([tmp_path]).segments, {}, gone.append)
    first = next(runs)
    path.unlink()
    rest = [run.records for run in runs]
    assert [segment.path for segment in gone] == [path]
    assert 100 <= len(first.records) + sum(map(len, rest)) < 200
