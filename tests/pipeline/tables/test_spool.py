"""The spool: what was written is read back after any end of its process, and nothing else."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from skywalker.errors import ConfigError
from skywalker.pipeline.tables import spool
from skywalker.pipeline.tables.reader import _bodies
from skywalker.pipeline.tables.spool import Spool, open_spool


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[list[Spool]]:
    """Spools to be closed at the end."""
    made: list[Spool] = []
    yield made
    for each in made:
        each.close()


def put(into: Spool, *numbers: int, seal: bool = True) -> None:
    into.append({"t": [msgpack.packb(number) for number in numbers]})
    if seal:
        into.seal()


def numbers(of: Spool, start: int, end: int, parts: int = 1) -> list[int]:
    found = []
    for extents in of.slices(start, end, parts):
        for body, skip, take in _bodies(extents):
            unpacker = msgpack.Unpacker()
            unpacker.feed(body)
            values: list[int] = []
            for topic in unpacker:
                assert topic == "t"
                values += [unpacker.unpack() for _ in range(unpacker.unpack())]
            found += values[skip : skip + take]
    return found


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.rows"))


def test_any_rows_in_any_number_of_parts_are_just_these(
    tmp_path: Path, opened: list[Spool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "SEGMENT_BYTES", 300)
    luck = random.Random(11)
    into = open_spool(tmp_path)
    opened.append(into)
    while into.end < 500:
        put(into, *range(into.end, into.end + luck.randrange(1, 20)))
    assert len(segments(tmp_path)) > 5
    for _ in range(200):
        start = luck.randrange(into.end)
        end = luck.randrange(start, into.end) + 1
        parts = luck.randrange(1, 6)
        assert numbers(into, start, end, parts) == list(range(start, end))
        assert len(into.slices(start, end, parts)) <= parts


@pytest.mark.parametrize("cut", [1, spool.HEADER_BYTES - 1, spool.HEADER_BYTES, spool.HEADER_BYTES + 1])
def test_a_torn_tail_is_as_if_it_were_never_written(tmp_path: Path, opened: list[Spool], cut: int) -> None:
    before = open_spool(tmp_path)
    put(before, 0, 1)
    whole = segments(tmp_path)[0].stat().st_size
    put(before, 2, 3)
    before.close()
    os.truncate(segments(tmp_path)[0], whole + cut)
    after = open_spool(tmp_path)
    opened.append(after)
    put(after, 20, 30)
    assert numbers(after, 0, after.end) == [0, 1, 20, 30]


def test_what_was_not_acknowledged_when_the_process_ended_is_left_to_its_senders(
    tmp_path: Path, opened: list[Spool]
) -> None:
    before = open_spool(tmp_path)
    put(before, 0, 1)
    put(before, 2, 3, seal=False)
    before.close()
    after = open_spool(tmp_path)
    opened.append(after)
    assert (after.end, numbers(after, 0, 2)) == (2, [0, 1])


def test_what_was_not_acknowledged_when_the_machine_went_down_is_kept(
    tmp_path: Path, opened: list[Spool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_boot", lambda: "before")
    before = open_spool(tmp_path)
    put(before, 0, 1)
    put(before, 2, 3, seal=False)
    before.close()
    monkeypatch.setattr(spool, "_boot", lambda: "after")
    after = open_spool(tmp_path)
    opened.append(after)
    assert numbers(after, 0, after.end) == [0, 1, 2, 3]


def test_what_is_committed_goes_away_and_is_not_read_again_by_a_query_that_begins_anew(
    tmp_path: Path, opened: list[Spool]
) -> None:
    before = open_spool(tmp_path)
    put(before, 0, 1, 2)
    put(before, 3, 4)
    before.commit(2)
    assert numbers(before, 2, 5) == [2, 3, 4]
    before.close()
    between = open_spool(tmp_path)
    assert (between.first, between.end) == (2, 5)
    between.commit(5)
    assert segments(tmp_path) == []
    put(between, 5)
    between.commit(6)
    between.close()
    after = open_spool(tmp_path)
    opened.append(after)
    assert (after.first, after.end, segments(tmp_path)) == (6, 6, [])


def test_rows_that_are_gone_are_not_found(tmp_path: Path, opened: list[Spool]) -> None:
    into = open_spool(tmp_path)
    opened.append(into)
    into.start_at(100)
    put(into, 100, 101)
    assert [extent.rows for part in into.slices(90, 102, 1) for extent in part] == [2]
    assert into.slices(0, 50, 3) == [[], [], []]


def test_a_spool_is_of_one_query_at_a_time(tmp_path: Path, opened: list[Spool]) -> None:
    opened.append(open_spool(tmp_path))
    with pytest.raises(ConfigError, match=r"option 'spool': .* is in use by another query"):
        open_spool(tmp_path, patience_s=0.1)


def test_a_spool_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"option 'spool': .*/file/below cannot be written to: Not a directory"):
        open_spool(tmp_path / "file" / "below")


def test_a_write_that_fails_leaves_no_rows(
    tmp_path: Path, opened: list[Spool], monkeypatch: pytest.MonkeyPatch
) -> None:
    into = open_spool(tmp_path)
    opened.append(into)
    put(into, 0)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(OSError, match="No space left"):
            put(into, 1, 2)
    put(into, 10)
    assert numbers(into, 0, into.end) == [0, 10]


def test_a_temporary_spool_goes_with_its_process_or_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed = open_spool(None)
    put(killed, 1)
    os.close(killed._lock)  # as the kernel does when a process is killed
    living = open_spool(None)
    assert not killed.directory.exists()
    another = open_spool(None)
    assert living.directory.exists()
    another.close()
    living.close()
    assert list(tmp_path.iterdir()) == []
    killed._lock = -1
    killed.close()


@pytest.mark.parametrize("at", [0, 4, 8, 12, 16, spool.HEADER_BYTES + 1])
def test_whole_rows_behind_damaged_ones_are_kept_and_the_file_with_its_damage_too(
    tmp_path: Path, opened: list[Spool], at: int
) -> None:
    before = open_spool(tmp_path)
    put(before, 0, 1)
    bad = segments(tmp_path)[0].stat().st_size + at
    put(before, 2, 3)
    put(before, 4, 5)
    put(before, 6, 7)
    before.close()
    (file,) = segments(tmp_path)
    data = bytearray(file.read_bytes())
    data[bad] ^= 0x40
    file.write_bytes(data)
    for _ in range(2):
        after = open_spool(tmp_path)
        assert (after.damaged, after.end) == ([file], 8)
        assert numbers(after, 0, 8) == [0, 1, 4, 5, 6, 7]
        assert numbers(after, 3, 7, parts=4) == [4, 5, 6]
        after.set_aside()
        after.close()
    last = open_spool(tmp_path)
    opened.append(last)
    last.set_aside()
    last.commit(4)
    assert numbers(last, 4, 8) == [4, 5, 6, 7]
    last.commit(8)
    assert segments(tmp_path) == []
    assert Path(f"{file}.damaged").read_bytes() == data


@pytest.mark.parametrize("damage", [b"\0" * 10_000, b"?" * 40, b"SWb\1" + b"\0" * 40])
def test_a_file_without_anything_whole_is_never_removed_however_often_it_happens(tmp_path: Path, damage: bytes) -> None:
    for number in range(2):
        before = open_spool(tmp_path)
        put(before, *range(100))
        before.close()
        (file,) = segments(tmp_path)
        file.write_bytes(damage + file.read_bytes()[len(damage) :])
        after = open_spool(tmp_path)
        assert (after.damaged, after.end, segments(tmp_path)) == ([file], 0, [file])
        after.set_aside()
        after.close()
        assert len([*tmp_path.glob("*.damaged")]) == number + 1


def test_damage_is_told_until_it_is_accepted_also_where_all_that_is_whole_is_committed(tmp_path: Path) -> None:
    before = open_spool(tmp_path)
    put(before, 0, 1)
    whole = segments(tmp_path)[0].stat().st_size
    put(before, 2, 3)
    before.commit(2)
    before.close()
    (file,) = segments(tmp_path)
    os.truncate(file, whole + spool.HEADER_BYTES + 1)  # of a block that was acknowledged
    for _ in range(2):
        after = open_spool(tmp_path)
        assert (after.damaged, after.first, after.end) == ([file], 2, 2)
        after.close()
    accepting = open_spool(tmp_path)
    accepting.set_aside()
    accepting.close()
    assert segments(tmp_path) == []
    assert Path(f"{file}.damaged").stat().st_size == whole + spool.HEADER_BYTES + 1


def test_a_file_that_was_deleted_takes_no_more_rows(tmp_path: Path, opened: list[Spool]) -> None:
    into = open_spool(tmp_path)
    opened.append(into)
    put(into, 0)
    segments(tmp_path)[0].unlink()
    with pytest.raises(FileNotFoundError):
        put(into, 1)
    assert into.end == 1


def test_a_task_that_misses_a_file_names_the_option(tmp_path: Path, opened: list[Spool]) -> None:
    into = open_spool(tmp_path)
    opened.append(into)
    put(into, 0)
    (extents,) = into.slices(0, 1, 1)
    segments(tmp_path)[0].unlink()
    with pytest.raises(ConfigError, match=rf"option 'spool': {tmp_path}.* is not there"):
        list(_bodies(extents))
