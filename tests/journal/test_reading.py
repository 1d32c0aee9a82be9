"""Journals read again: whole, torn, cut, foreign, of another version, and while they change."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from skywalker.errors import ConfigError, JournalError
from skywalker.journal import reading
from skywalker.journal.header import HEADER_BYTES, MAGIC, VERSION
from skywalker.journal.reading import (
    KINDS,
    Segment,
    Selection,
    kinds,
    look,
    merged,
    topics,
    unix_ns,
    waits_us,
)
from skywalker.journal.record import METHODS, RECORD_BYTES
from skywalker.journal.segments import files
from skywalker.ring import token_of
from skywalker.wire import values
from tests.journal.making import NOON, SECOND, add, complete, header, put, put_names, records


def test_what_was_written_is_read_the_oldest_file_first(tmp_path: Path) -> None:
    late, early = records(10, 1), records(7, 2)
    put(tmp_path, header(opened_ns=NOON + SECOND), late, is_open=True)
    put(tmp_path, header(worker=3), early)
    found = look([tmp_path])
    assert [segment.records for segment in found.segments] == [7, 10]
    assert [segment.header.worker for segment in found.segments] == [3, 0]
    np.testing.assert_array_equal(found.segments[0].read(), early)
    np.testing.assert_array_equal(np.concatenate([*found.segments[1].chunks(2, size=3)]), late[2:])
    assert not found.problems


@pytest.mark.parametrize("renamed", ["not told at all", "told by both names"])
def test_a_file_that_is_completed_while_the_directory_is_listed_is_there_once(
    renamed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, header(), records(5), is_open=True)
    real = os.listdir

    def listed(directory: Path) -> list[str]:
        """As the kernel tells a large directory: in pieces, between which a file gets a name further on, or back."""
        names = real(directory)
        if path.name in names:
            complete(path)
            names = [*names, path.with_suffix("").name] if renamed == "told by both names" else []
        return names

    monkeypatch.setattr(os, "listdir", listed)
    assert [segment.records for segment in look([tmp_path]).segments] == [5]


def test_only_files_that_are_wanted_are_looked_at_but_for_those_that_are_named(tmp_path: Path) -> None:
    paths = [put(tmp_path, header(worker=n), records(1)) for n in range(3)]
    assert [each.path for each in look([tmp_path], lambda file: file.key != paths[1].name).segments] == paths[::2]
    assert len(look([paths[1]], lambda _: False).segments) == 1


def test_files_that_are_not_called_as_ours_are_no_concern_of_a_journal(tmp_path: Path) -> None:
    put(tmp_path, header(), records(1))
    (tmp_path / "README").write_text("hello")
    (tmp_path / "red-w0-1.calls.bak").write_bytes(b"")
    (tmp_path / ".red-w0-1.calls.open").write_bytes(b"")  # just begun
    (tmp_path / "sub").mkdir()
    assert len(files(tmp_path)) == 1
    found = look([tmp_path])
    assert len(found.segments) == 1
    assert not found.problems


def test_a_version_from_the_future_is_named_with_ours(tmp_path: Path) -> None:
    path = put(tmp_path, header(), records(1))
    data = bytearray(path.read_bytes())
    data[len(MAGIC) : len(MAGIC) + 2] = struct.pack("<H", VERSION + 1)
    path.write_bytes(data)
    (problem,) = look([tmp_path]).problems
    assert isinstance(problem, JournalError)
    for part in (str(path), f"version {VERSION + 1}", f"version {VERSION}"):
        assert part in str(problem)


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="'/nowhere/at/all'"):
        look([Path("/nowhere/at/all")])


def test_a_file_is_read_on_after_it_was_completed(tmp_path: Path) -> None:
    made = records(10)
    path = put(tmp_path, header(), made[:4], is_open=True)
    (segment,) = look([tmp_path]).segments
    add(path, made[4:])
    complete(path)
    np.testing.assert_array_equal(segment.read(), made[:4])
    np.testing.assert_array_equal(segment.read(4, 100), made[4:])
    assert look([tmp_path]).segments[0].key == segment.key


def test_a_file_that_is_cut_after_it_was_looked_at_ends_where_it_ends(tmp_path: Path) -> None:
    made = records(10)
    path = put(tmp_path, header(), made)
    (segment,) = look([tmp_path]).segments
    with path.open("r+b") as file:
        file.truncate(HEADER_BYTES + 3 * RECORD_BYTES + 5)
    np.testing.assert_array_equal(segment.read(), made[:3])
    assert len(segment.read(5, 2)) == 0


def test_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    path = put(tmp_path, header(), records(1))
    (segment,) = look([tmp_path]).segments
    path.unlink()
    with pytest.raises(FileNotFoundError):
        segment.read()


def test_every_file_tells_time_by_its_own_clock(tmp_path: Path) -> None:
    made = records(4)
    set_back = header(clock_ns=NOON - 3600 * SECOND, opened_ns=NOON + SECOND)
    for each in (header(), set_back):
        put(tmp_path, each, made)
    first, second = look([tmp_path]).segments
    apart = unix_ns(first.read(), first.header) - unix_ns(second.read(), second.header)
    assert set(apart.tolist()) == {3600 * SECOND}
    expected = [NOON + round(ended * SECOND) for ended in made["ended"].tolist()]
    assert abs(unix_ns(first.read(), first.header) - np.array(expected)).max() <= 1


def test_a_microsecond_is_not_lost_after_years_of_uptime() -> None:
    ten_years = 315_360_000.0
    made = records(2, ended=np.array([ten_years, ten_years + 1e-6]))
    first, second = unix_ns(made, header()).tolist()
    assert 900 <= second - first <= 1100


def test_waits_are_whole_microseconds() -> None:
    assert waits_us(records(3, wait=np.array([0, 0.0000014, 86_400.0]))).tolist() == [0, 1, 86_400_000_000]


def test_a_code_of_a_later_version_is_an_unknown_word() -> None:
    made = records(3, method=np.array([1, len(METHODS), 255]), route=9, door=200, outcome=255)
    assert [KINDS["method"][kind] for kind in kinds(made, "method")] == ["send", "unknown", "unknown"]
    for field in ("route", "door", "outcome"):
        assert {KINDS[field][kind] for kind in kinds(made, field)} == {"unknown"}


def test_names_are_read_up_to_one_that_is_torn(tmp_path: Path) -> None:
    packed = {token_of(topic): topic for topic in map(values.pack, ["a", ["b", 1], b"\0", "x" * 3000])}
    path = put_names(tmp_path, header(), packed)
    assert topics(look([tmp_path]).names) == packed
    whole = path.read_bytes()
    *kept, last = packed
    for cut in (1, 2999, 3003, 3004, 3012):
        path.write_bytes(whole[:-cut])
        assert topics(look([tmp_path]).names).keys() == {*kept}, cut
    path.write_bytes(whole[:100])
    assert topics(look([tmp_path]).names) == {}
    path.unlink()
    assert last not in topics(look([tmp_path]).names)


def test_a_selection_is_of_topics_and_times(tmp_path: Path) -> None:
    made = records(4, ended=np.array([0.0, 1.0, 2.0, 3.0]), token=np.array([5, 6, 5, 6]))

    def ended(selection: Selection) -> list[float]:
        return selection.of(made, header())["ended"].tolist()

    assert ended(Selection()) == [0, 1, 2, 3]
    assert ended(Selection(token=5)) == [0, 2]
    assert ended(Selection(since=NOON + SECOND, until=NOON + 3 * SECOND)) == [1, 2]
    assert ended(Selection(since=NOON + SECOND, token=5)) == [2]


def test_what_is_called_like_a_segment_and_is_no_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "red-w0-0000000000000001.calls").mkdir()
    os.mkfifo(tmp_path / "red-w0-0000000000000002.calls")
    put(tmp_path, header(), records(3))
    found = look([tmp_path])
    assert [segment.records for segment in found.segments] == [3]
    assert len(found.problems) == 2


def test_a_file_counts_once_however_often_it_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, header(), records(3))
    (tmp_path / "link").symlink_to(tmp_path)
    assert len(look([tmp_path, path, tmp_path / "link"]).segments) == 1


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
