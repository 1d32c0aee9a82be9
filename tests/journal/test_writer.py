"""What is written: byte for byte, in files that end when they should, whatever the disk does."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.page import Page
from skywalker import config
from skywalker.errors import ConfigError, JournalError
from skywalker.journal import writer as writing
from skywalker.journal.header import CALLS, HEADER_BYTES, Header, Origin
from skywalker.journal.record import PAGE_RECORDS
from skywalker.journal.settings import JournalSettings
from skywalker.journal.writer import Writer
from skywalker.ring import version_of
from tests.helpers import eventually
from tests.journal.raw import RECORD, calls_in, header_of, names_in, records_of

MIB = 2**20
DAY_NS = 86_400 * 10**9
SEGMENT = Header("calls", "node", "id", "name", 3, "ring", 7, 8, 2)


class Events:
    """What a writer says."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))

    def names(self) -> list[str]:
        return [name for name, _ in self.said]


@pytest.fixture
def events() -> Events:
    return Events()


def settings(directory: Path, rotate: str = "64MiB/60s", keep: int = 1024 * MIB) -> JournalSettings:
    return JournalSettings.parse(str(directory), "1/1", rotate, keep)


def make(events: Events, directory: Path, worker: int = 0, **options: Any) -> Writer:
    return Writer(settings(directory, **options), Origin("node", "id", "name", worker), events, events)


def page_of(numbers: Iterator[int] | range) -> tuple[bytearray, int]:
    page = Page()
    for number in numbers:
        page.add(float(number), number, 0.5, 1, 2, 0x01000201)
    return page.data, page.count


numbers32 = st.integers(0, 2**32 - 1)
tokens = st.integers(-(2**63), 2**63 - 1)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e9), tokens, st.floats(0, 1e5, width=32), numbers32, numbers32, *[st.integers(0, 255)] * 4
        ),
        max_size=20,
    )
)
def test_a_record_has_the_bytes_that_the_page_on_the_format_says(records: list[tuple[Any, ...]]) -> None:
    page = Page()
    for ended, token, wait, size, connection, *kinds in records:
        page.add(ended, token, wait, size, connection, int.from_bytes(bytes(kinds), "little"))
    assert page.count == len(records)
    assert page.data[: len(records) * 32] == b"".join(RECORD.pack(*record) for record in records)


@given(st.text(), st.text(), st.integers(0, 2**31), st.integers(-(2**62), 2**62))
def test_a_header_says_who_wrote_it_in_its_bytes(node: str, name: str, worker: int, clock: int) -> None:
    packed = Header(CALLS, "bench", node, name, worker, "ring", clock, 1, 5).pack()
    assert len(packed) == HEADER_BYTES
    read = Header.parse(packed)
    assert (read.worker, read.clock_ns, read.sample, read.source) == (worker, clock, 5, "bench")
    assert node.startswith(read.node) or "?" in read.node
    assert len(read.node) >= min(len(node), 60)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut off after 0"),
        (b"skyj", "cut off after 4"),
        (SEGMENT.pack()[:-1], "cut off after 1023"),
        (b"\x7fELF" + bytes(2000), "begins otherwise"),
        (SEGMENT.pack().replace(struct.pack("<HH", 1, 32), struct.pack("<HH", 2, 32)), "version 2.*reads version 1"),
        (SEGMENT.pack().replace(struct.pack("<HH", 1, 32), struct.pack("<HH", 1, 40)), "does not say"),
        (SEGMENT.pack().replace(b"token", b"tokeN"), "does not say"),
        (SEGMENT.pack()[:16] + b"\xc1" * 1008, "damaged"),
    ],
)
def test_what_is_no_header_is_told_apart(data: bytes, reason: str) -> None:
    with pytest.raises(JournalError, match=reason):
        Header.parse(data)


@pytest.mark.parametrize("sample", ["", "0", "1/0", "2/3", "-1", "1/x", "x"])
def test_a_sample_that_is_none_is_named(sample: str) -> None:
    with pytest.raises(ConfigError, match=r"journal_sample.*1/16"):
        config.checked({"journal_sample": sample})


@pytest.mark.parametrize("rotate", ["", "64MiB", "60s", "64MiB/", "1KiB/60s", "64MiB/1ms", "a/b", "64MiB/60s/1"])
def test_a_rotation_that_is_none_is_named(rotate: str) -> None:
    with pytest.raises(ConfigError, match=r"journal_rotate.*64MiB/60s"):
        config.checked({"journal_rotate": rotate})


def test_what_was_handed_over_is_in_files_that_are_complete_at_the_end(tmp_path: Path, events: Events) -> None:
    directory = tmp_path / "made" / "for it"
    writer = make(events, directory)
    writer.follow(b"first")
    writer.name(5, b"\xa4five")
    writer.name(-6, b"\x06")
    for start in range(0, 100, 10):
        writer.write(*page_of(range(start, start + 10)))
    writer.follow(b"second")
    writer.write(*page_of(range(100, 103)))
    writer.close()
    assert [record.token for record in calls_in(directory)] == [*range(103)]
    assert [header_of(path)["ring"] for path in sorted(directory.glob("*.calls"))] == [
        version_of(b"first"),
        version_of(b"second"),
    ]
    assert names_in(directory) == {5: "five", -6: 6}
    assert not [*directory.glob("*.open")]
    assert not events.said


def test_who_wrote_nothing_leaves_nothing(tmp_path: Path, events: Events) -> None:
    make(events, tmp_path).close()
    assert not [*tmp_path.iterdir()]
    assert not events.said


def test_a_segment_ends_by_its_size(tmp_path: Path, events: Events) -> None:
    writer = make(events, tmp_path, rotate="4MiB/60s")
    for _ in range(9):
        page, count = page_of(range(PAGE_RECORDS))
        eventually(lambda: writer._waiting.qsize() < writing.MAX_PAGES)
        writer.write(page, count)
    writer.close()
    sizes = [len(records_of(path)) for path in sorted(tmp_path.glob("*.calls"))]
    assert sizes == [4 * PAGE_RECORDS, 4 * PAGE_RECORDS, PAGE_RECORDS]


def test_a_segment_ends_by_its_age_though_nothing_more_comes(tmp_path: Path, events: Events) -> None:
    writer = make(events, tmp_path, rotate="64MiB/100ms")
    writer.write(*page_of(range(3)))
    eventually(lambda: [*tmp_path.glob("*.calls")])
    assert not [*tmp_path.glob("*.open")]
    writer.write(*page_of(range(3)))
    writer.close()
    assert len([*tmp_path.glob("*.calls")]) == 2


def test_the_header_of_what_ends_says_how_many_connections_came(tmp_path: Path, events: Events) -> None:
    writer = make(events, tmp_path)
    for ring, moves in ((b"first", 2), (b"second", 0), (b"third", 1)):
        writer.follow(ring)
        writer.write(*page_of(range(3)))
        for _ in range(moves):
            writer.moved()
    writer.close()
    assert [header_of(path)["moved"] for path in sorted(tmp_path.glob("*.calls"))] == [2, 0, 1]


@pytest.mark.parametrize("moves", [0, 1])
def test_a_segment_that_no_record_came_into_stays_if_connections_came(
    tmp_path: Path, events: Events, moves: int
) -> None:
    writer = make(events, tmp_path)
    writer.write(*page_of(range(0)))
    for _ in range(moves):
        writer.moved()
    writer.close()
    assert [header_of(path)["moved"] for path in tmp_path.iterdir()] == [1] * moves


def test_a_segment_may_be_given_more_time_than_anybody_can_wait(tmp_path: Path, events: Events) -> None:
    writer = make(events, tmp_path, rotate="64MiB/9999999h")
    for start in (0, 10, 20):
        writer.write(*page_of(range(start, start + 10)))
        eventually(lambda: writer._handed_over == writer._taken)
    writer.close()
    assert [record.token for record in calls_in(tmp_path)] == [*range(30)]


def test_the_oldest_go_and_names_with_the_last_of_their_records(tmp_path: Path, events: Events) -> None:
    keep = 16_000
    for worker in (0, 0, 0, 1):
        writer = make(events, tmp_path, worker, keep=keep)
        writer.name(worker, b"\x01")
        writer.write(*page_of(range(200)))
        writer.close()
    make(events, tmp_path, keep=keep).close()
    assert len([*tmp_path.glob("*.calls")]) == 2
    assert len([*tmp_path.glob("*.names")]) == 4
    newest = max(tmp_path.glob("id-w0-*.calls"), key=lambda path: path.name)
    make(events, tmp_path, 2, keep=HEADER_BYTES).close()
    assert not newest.exists()
    assert not [*tmp_path.glob("*.calls")]
    assert not [*tmp_path.glob("*.names")]
    assert not events.said


def test_names_go_though_their_worker_has_long_had_a_successor_that_goes_on(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    for life in range(1, 5):
        now = life * 10 * DAY_NS
        monkeypatch.setattr(writing, "now", lambda: (now, 1))  # noqa: B023
        writer = make(events, tmp_path, keep=16_000)
        writer.name(life, b"\x01")
        writer.write(*page_of(range(200)))
        writer.close()
    make(events, tmp_path, keep=16_000).close()
    assert len([*tmp_path.glob("*.calls")]) == 2
    assert names_in(tmp_path).keys() == {2, 3, 4}  # what began as soon as 3 may still be of 2
    assert not events.said


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows with each listing of a directory."""
    made: list[object] = []

    def counted(real: Any) -> Any:
        def count(*args: Any) -> Any:
            made.append(args)
            return real(*args)

        return count

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return made


def rotate(writer: Writer, times: int = 1, records: int = 3) -> None:
    """Have a writer begin and end so many files."""
    for number in range(times):
        writer.write(*page_of(range(records)))
        writer.follow(b"%d" % number)
        done = threading.Event()
        writer._waiting.put(done.set)
        assert done.wait(30)


def test_a_rotation_lists_nothing(tmp_path: Path, events: Events, listings: list[object]) -> None:
    writer = make(events, tmp_path)
    rotate(writer)
    before = len(listings)
    rotate(writer, 40)
    writer.close()
    assert len(listings) == before > 0
    assert len([*tmp_path.glob("*.calls")]) == 41


@pytest.mark.parametrize("why", ["enough was written", "an hour has passed"])
def test_the_files_of_all_are_seen_to_while_a_writer_goes_on(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "an hour has passed":
        monkeypatch.setattr(writing, "TIDY_S", 0.0)
    writer = make(events, tmp_path, rotate="1MiB/60s", keep=MIB)
    rotate(writer)
    old, left = (tmp_path / f"id-w9-000000000000000{n}.calls{end}" for n, end in ((1, ""), (2, ".open")))
    for path in (old, left):
        path.write_bytes(SEGMENT.pack() + bytes(MIB))
    rotate(writer, 1, PAGE_RECORDS // 8)
    assert old.exists() == left.exists() == (why == "enough was written")
    rotate(writer, 8, PAGE_RECORDS // 8)
    writer.close()
    assert not old.exists()
    assert not left.exists()
    assert sum(path.stat().st_size for path in tmp_path.glob("id-w*")) <= MIB + 2 * MIB
    assert not events.said


def test_who_drains_goes_on_behind_its_successor_though_the_clock_was_set_back(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead, back = 10**18, -20 * 10**9

    def at(seconds: int, set_by: int = 0) -> None:
        monkeypatch.setattr(writing, "now", lambda: (ahead + seconds * 10**9 + set_by, ahead + set_by))

    drains, successor = make(events, tmp_path), make(events, tmp_path)
    begun = []
    for writer, seconds, set_by in ((drains, 0, 0), (successor, 50, 0), (drains, 60, back), (successor, 61, back)):
        at(seconds, set_by)
        rotate(writer)
        begun += sorted({*tmp_path.glob("*.calls")} - {*begun})
    drains.close()
    successor.close()
    assert len(begun) == 4
    assert begun == sorted(begun)


def test_what_a_killed_writer_left_is_completed_by_whoever_comes_by(tmp_path: Path, events: Events) -> None:
    for worker in (0, 1):
        left = tmp_path / f"id-w{worker}-0000000000000007.calls.open"
        left.write_bytes(SEGMENT.pack() + page_of(range(5))[0][: 5 * 32 + 7])
    alive = tmp_path / "id-w0-0000000000000008.calls.open"
    alive.write_bytes(SEGMENT.pack())
    with alive.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        make(events, tmp_path).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "id-w0-0000000000000007.calls",
        "id-w0-0000000000000008.calls.open",
        "id-w1-0000000000000007.calls",
    ]
    assert len(records_of(tmp_path / "id-w0-0000000000000007.calls")) == 5


def test_a_segment_that_the_disk_had_nothing_of_is_no_part_of_the_journal(tmp_path: Path, events: Events) -> None:
    for number, data in enumerate((b"", SEGMENT.pack()[:500])):  # as a loss of power leaves them
        (tmp_path / f"id-w0-000000000000000{number}.calls.open").write_bytes(data)
    make(events, tmp_path).close()
    assert not [*tmp_path.iterdir()]


def test_files_of_another_user_keep_no_journal_from_being_kept_short(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("id-w9-0000000000000001.calls", "id-w9-0000000000000002.calls.open"):
        (tmp_path / name).write_bytes(SEGMENT.pack())

    def refused(real: Any) -> Any:
        def refuse(path: Path, *rest: Any, **options: Any) -> Any:
            if path.name.startswith("id-w9"):
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
            return real(path, *rest, **options)

        return refuse

    for name in ("unlink", "rename"):
        monkeypatch.setattr(Path, name, refused(getattr(Path, name)))
    for start in (0, 10):
        writer = make(events, tmp_path, keep=4 * HEADER_BYTES)
        writer.write(*page_of(range(start, start + 10)))
        writer.close()
    make(events, tmp_path, keep=4 * HEADER_BYTES).close()
    assert [record.token for record in calls_in(tmp_path)] == [*range(10, 20)]
    assert not events.said


def test_names_that_the_disk_did_not_take_are_written_once_it_does(tmp_path: Path, events: Events) -> None:
    directory = tmp_path / "journal"
    directory.write_text("in its way")
    writer = make(events, directory)
    writer.name(5, b"\xa4five")
    writer.name(6, b"\xa3six")
    eventually(lambda: events.names() == ["journal-stopped"])
    directory.unlink()
    directory.mkdir()
    writer.write(*page_of(range(3)))
    eventually(lambda: names_in(directory) == {5: "five", 6: "six"})
    writer.close()


def test_names_that_the_disk_takes_only_at_the_end_are_written_then(tmp_path: Path, events: Events) -> None:
    directory = tmp_path / "journal"
    directory.write_text("in its way")
    writer = make(events, directory)
    eventually(lambda: events.names() == ["journal-stopped"])
    directory.unlink()
    directory.mkdir()
    writer.name(5, b"\xa4five")
    writer.close()
    assert names_in(directory) == {5: "five"}


def test_two_segments_of_one_moment_do_not_overwrite_each_other(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([9_000, 5_000, 5_000])  # it is set back, and comes by a time again
    monkeypatch.setattr(writing, "now", lambda: (next(clock), 1))
    for start in (0, 10, 20):
        writer = make(events, tmp_path)
        writer.write(*page_of(range(start, start + 10)))
        writer.close()
    assert [record.token for record in calls_in(tmp_path)] == [*range(30)]


def test_a_disk_that_hangs_costs_records_and_nobody_waits(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, goes_on = os.pipe()
    real = os.write

    def slow(fd: int, data: Any) -> int:
        os.read(hangs, 1)
        real(goes_on, b"x")
        return real(fd, data)

    monkeypatch.setattr(os, "write", slow)
    monkeypatch.setattr(writing, "END_S", 0.05)
    writer = make(events, tmp_path)
    page, count = page_of(range(PAGE_RECORDS))
    for _ in range(writing.MAX_PAGES + 4):
        page = writer.write(page, count)
    writer.close()  # does not wait for it
    assert events.names()[-1] == "journal-cut-short"
    assert writer.dropped >= 3 * PAGE_RECORDS
    real(goes_on, b"x")
    writer._thread.join()
    os.close(hangs)
    os.close(goes_on)
    written = len(calls_in(tmp_path))
    assert written + writer.dropped == (writing.MAX_PAGES + 4) * PAGE_RECORDS
    assert "journal-ended" in events.names() or "journal-goes-on" in events.names()


ON_A_FULL_DISK = """
import sys
from pathlib import Path
from tests.helpers import eventually
from tests.journal.raw import calls_in, header_of
from tests.journal.test_writer import Events, make, page_of

directory, events = Path(sys.argv[1]), Events()
ballast = directory / "ballast"
ballast.write_bytes(bytes(150_000))
writer = make(events, directory)
for start in range(0, 40_000, 1000):
    writer.write(*page_of(range(start, start + 1000)))
eventually(lambda: writer.dropped)
eventually(lambda: writer._waiting.empty())
lost = writer.dropped
assert events.names() == ["journal-stopped"], events.said
assert "No space left" in events.said[0][1]["reason"] and "make room" in events.said[0][1]["hint"]
whole = len(calls_in(directory))
assert whole >= 2000, whole
ballast.unlink()
writer.follow(b"another")
writer.write(*page_of(range(1000)))
eventually(lambda: len(events.said) == 2)
assert events.said[1][0] == "journal-goes-on" and events.said[1][1]["dropped"] == lost, events.said
writer.close()
written = calls_in(directory)
assert len(written) + writer.dropped == 41_000, (len(written), writer.dropped)
assert all(record.wait == 0.5 for record in written), "each of them is whole"
assert not [*directory.glob("*.open")]
assert [header_of(path)["dropped"] for path in sorted(directory.glob("*.calls"))] == [lost, 0]
"""


def test_a_full_disk_drops_and_counts_records_and_says_so_once(tmp_path: Path) -> None:
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("a disk of 256 KiB is mounted for it: root may, with unshare of util-linux")
    script = f'mount -t tmpfs -o size=256k none "{tmp_path}" && exec "{sys.executable}" -c "$0" "{tmp_path}"'
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, ON_A_FULL_DISK],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr


def test_what_others_put_among_the_files_holds_up_nobody_and_is_not_written_through(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "now", lambda: (5_000, 1))
    directory, victim = tmp_path / "journal", tmp_path / "victim"
    directory.mkdir()
    victim.write_bytes(b"x" * 4 * MIB)
    (directory / ".id-w0-0000000000000005.calls.open").symlink_to(victim)
    (directory / "id-w9-0000000000000001.calls.open").symlink_to("id-w9-0000000000000001.calls.open")
    (directory / "id-w9-0000000000000002.calls").symlink_to(victim)
    os.mkfifo(directory / "id-w9-0000000000000003.calls.open")
    os.mkfifo(directory / "id-w9-0000000000000003.names")
    writer = make(events, directory, keep=MIB)
    for start in (0, 10):
        writer.write(*page_of(range(start, start + 10)))
        writer.follow(b"another")  # ends a segment
    eventually(lambda: writer._taken == 2)
    writer.close()
    assert not writer.dropped
    assert victim.read_bytes() == b"x" * 4 * MIB
    assert [record.token for record in records_of(*sorted(directory.glob("id-w0-*.calls")))] == [*range(20)]


def test_a_link_in_a_circle_keeps_no_journal_from_being_kept_short(tmp_path: Path, events: Events) -> None:
    (tmp_path / "id-w9-0000000000000001.calls").symlink_to("id-w9-0000000000000001.calls")
    writer = make(events, tmp_path)
    writer.write(*page_of(range(10)))
    writer.close()
    assert events.names() == []
