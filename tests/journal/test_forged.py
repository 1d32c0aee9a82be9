"""Files of a journal that somebody has made up: each is read, or named and left out, and costs little."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import msgpack
import pytest

from skywalker.errors import JournalError
from skywalker.journal.header import HEADER_BYTES, MAGIC, VERSION, Header
from skywalker.journal.names import MAX_NAMES
from skywalker.journal.reading import look, names_in, open_file, topics
from skywalker.journal.record import FIELDS, RECORD_BYTES
from skywalker.journal.statistics import Statistics
from skywalker.wire import values
from tests.journal.making import header, put, put_names, records


def forged(**said: Any) -> bytes:
    """A header that says what none of ours does."""
    usual = {"kind": "calls", "source": "node", "node": "red", "name": "red", "worker": 0, "ring": "r1"}
    numbers = {"clock_ns": 0, "opened_ns": 0, "sample": 1, "dropped": 0, "fields": [list(field) for field in FIELDS]}
    body: bytes = msgpack.packb(usual | numbers | said)
    return (struct.pack("<8sHHI", MAGIC, VERSION, RECORD_BYTES, len(body)) + body).ljust(HEADER_BYTES, b"\0")


def test_a_header_that_is_made_up_and_says_nothing_wrong_is_read() -> None:
    assert Header.parse(forged()).worker == 0


@pytest.mark.parametrize(
    "said",
    [
        {"sample": 2**31},
        {"sample": 2**63 - 1},
        {"sample": 0},
        {"worker": -1},
        {"worker": 2**63},
        {"dropped": -1},
        {"dropped": 2**64 - 1},
        {"moved": -1},
        {"moved": 2**63},
        {"moved": True},
        {"clock_ns": 2**63},
        {"opened_ns": -(2**63)},
    ],
)
def test_numbers_that_nothing_can_be_added_up_with_are_refused(said: dict[str, int]) -> None:
    with pytest.raises(JournalError, match="does not say"):
        Header.parse(forged(**said))


def test_a_file_that_says_it_is_endless_ends_where_nothing_is_written(tmp_path: Path) -> None:
    os.truncate(put(tmp_path, header(), records(3)), 2**42)
    (segment,) = look([tmp_path]).segments
    # A disk writes in blocks, the rest of which is nothing too.
    assert 3 <= segment.records <= 3 + 2**16 // RECORD_BYTES


def test_a_file_of_names_that_is_mostly_a_hole_ends_where_that_begins(tmp_path: Path) -> None:
    path = put_names(tmp_path, header(), {7: values.pack("a")})
    os.truncate(path, 2**42)
    assert topics(look([tmp_path]).names) == {7: values.pack("a")}


def test_a_topic_is_never_longer_than_one_may_be(tmp_path: Path) -> None:
    path = put_names(tmp_path, header(), {7: values.pack("a"), 8: b"x" * 65_535, 9: values.pack("b")})
    assert names_in(path)[1] == [(7, values.pack("a"))]


def test_no_more_names_are_read_than_one_worker_writes(tmp_path: Path) -> None:
    path = put_names(tmp_path, header(), {}, torn=b"\0" * 8 + b"\1\0\1")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[HEADER_BYTES:] * (MAX_NAMES + 10))
    assert len(names_in(path)[1]) == MAX_NAMES


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    path = put(tmp_path, header(), records(3))
    (segment,) = look([tmp_path]).segments
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(JournalError, match="it is not a regular file"):
        segment.read()
    with pytest.raises(JournalError, match="it is not a regular file"):
        open_file(path)


@pytest.mark.parametrize("wait", [float("nan"), float("inf"), -float("inf"), 3e38, -1.0])
def test_a_wait_that_is_none_has_figures_all_the_same(wait: float) -> None:
    statistics = Statistics()
    statistics.add(records(3, wait=wait, method=1, outcome=1), header())
    assert 0 <= statistics.summary().waits["send"]["met"].seconds[100.0] < 1.1e9
