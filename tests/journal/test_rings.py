"""The rings of a journal: each is kept once, as long as calls are on record that were made in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.errors import JournalError
from skywalker.journal import rings
from skywalker.journal.reading import look
from skywalker.members import Member, Snapshot
from skywalker.ring import version_of
from skywalker.wire import values
from tests.journal.raw import header_of
from tests.journal.test_writer import Events, make, page_of

HOUR_US = 3600 * 10**6


@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9), st.text(max_size=9), st.integers(1, 9))
def test_the_version_of_a_ring_is_made_of_what_is_kept_of_it(tokens: set[int], name: str, workers: int) -> None:
    ring = Snapshot([Member("id", name, Address("127.0.0.1", 7), workers, True, tuple(sorted(tokens)))])
    assert version_of(ring.pack()) == ring.version
    assert values.unpack(ring.pack()) == [member.as_map() for member in ring]


def test_each_ring_is_kept_once_whoever_follows_it(tmp_path: Path) -> None:
    events = Events()
    for worker in (0, 1):
        writer = make(events, tmp_path, worker)
        for members in (b"first", b"second", b"first"):
            writer.follow(members)
            writer.write(*page_of(range(3)))
        writer.follow(b"third")  # in which no call is made
        writer.close()
    found = {path.stem: rings.read(path) for path in look([tmp_path]).rings}
    assert found == {version_of(members): members for members in (b"first", b"second")}
    assert {header_of(path)["ring"] for path in tmp_path.glob("*.calls")} == found.keys()
    assert {path.suffix for path in tmp_path.iterdir()} == {".calls", ".ring"}
    assert not events.said


def test_a_ring_that_a_disk_has_torn_is_made_whole(tmp_path: Path) -> None:
    rings.keep(tmp_path, b"members", "red-w0", 1)
    (path,) = rings.files(tmp_path)
    path.write_bytes(b"memb")
    with pytest.raises(JournalError, match="does not hold the ring that its name says"):
        rings.read(path)
    rings.keep(tmp_path, b"members", "red-w0", 2)
    assert rings.read(path) == b"members"


def test_a_ring_of_another_user_is_kept_as_it_is_where_it_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    rings.keep(tmp_path, b"members", "red-w0", 1)
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    rings.keep(tmp_path, b"members", "red-w1", 2**60)
    (path,) = tmp_path.iterdir()
    assert rings.read(path) == b"members"
    with pytest.raises(PermissionError):
        rings.keep(tmp_path, b"others", "red-w1", 1)


def test_a_ring_goes_once_no_calls_are_left_that_may_have_been_made_in_it(tmp_path: Path) -> None:
    writer = "red-w0"
    for members, needed in ((b"old", 10), (b"both", 10), (b"new", 12)):
        rings.keep(tmp_path, members, writer, needed * HOUR_US)
    for path in rings.files(tmp_path):
        if rings.read(path) != b"new":
            os.utime(path, (10 * 3600, 10 * 3600))
    for needed in (12, 11):  # two writers, of which the later one was quicker
        rings.keep(tmp_path, b"both", writer, needed * HOUR_US)

    def left() -> set[bytes]:
        return {rings.read(path) for path in rings.files(tmp_path)}

    rings.prune(tmp_path, 10 * HOUR_US)
    assert left() == {b"old", b"both", b"new"}
    rings.prune(tmp_path, 12 * HOUR_US)
    assert left() == {b"both", b"new"}


def test_names_go_with_the_last_calls_of_their_writer_though_others_are_left(tmp_path: Path) -> None:
    events = Events()
    for worker in (0, 1):
        writer = make(events, tmp_path, worker, keep=8000)
        writer.name(worker, b"\x01")
        writer.write(*page_of(range(200)))
        writer.close()
    make(events, tmp_path, 1, keep=8000).close()
    writer = make(events, tmp_path, 1, keep=8000)
    writer.write(*page_of(range(200)))
    writer.close()
    make(events, tmp_path, 1, keep=8000).close()
    assert {path.name[:5] for path in tmp_path.iterdir()} == {"id-w1"}
