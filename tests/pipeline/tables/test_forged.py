"""Files of a spool, and offsets of a checkpoint, that somebody has made up: they are told of, and cost little."""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from skywalker.errors import ConfigError
from skywalker.pipeline.mistakes import DataLossError
from skywalker.pipeline.tables.decoding import Decoder
from skywalker.pipeline.tables.reader import _bodies, _row
from skywalker.pipeline.tables.spool import SEALED, Extent, Spool, open_spool
from tests.helpers import time_factor
from tests.pipeline.tables.test_spool import numbers, put, segments

NAME = "00000000000000000000-boot.rows"


def block(rows: int, first: int, body: bytes, state: int = SEALED) -> bytes:
    """A block that says so, with the checksum that goes with it."""
    checksum = zlib.crc32(body, zlib.crc32(struct.pack("<IQ", rows, first)))
    return struct.pack("<3sBIIIQ", b"SWb", state, len(body), checksum, rows, first) + body


def body(*numbers: int) -> bytes:
    return b"".join(map(msgpack.packb, ("t", len(numbers), *numbers)))


@pytest.fixture
def recovered(tmp_path: Path) -> Iterator[Any]:
    """A spool that finds a file with this in it."""
    made: list[Spool] = []

    def make(data: bytes) -> Spool:
        (tmp_path / NAME).write_bytes(data)
        made.append(open_spool(tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_what_is_made_up_like_ours_is_read_like_ours(recovered: Any) -> None:
    spool = recovered(block(2, 5, body(1, 2)) + block(1, 7, body(3)))
    assert (spool.first, spool.end, spool.damaged) == (5, 8, [])
    assert numbers(spool, 5, 8) == [1, 2, 3]


@pytest.mark.parametrize(
    "lie",
    [
        block(0, 1, body(1)),
        block(2**32 - 1, 1, body(1)),
        block(1, 2**64 - 1, body(1)),
        block(1, 2**62, body(1)),
        block(1, 0, body(1)),  # a number that was given to another row
        block(1, 1, b""),
    ],
)
def test_a_block_with_numbers_that_cannot_be_is_damage_and_no_row(recovered: Any, tmp_path: Path, lie: bytes) -> None:
    spool = recovered(block(1, 0, body(7)) + lie)
    assert (spool.first, spool.end, spool.damaged) == (0, 1, [tmp_path / NAME])
    put(spool, 8)
    assert numbers(spool, 0, 2) == [7, 8]


def test_a_file_whose_numbers_are_those_of_another_is_damage(tmp_path: Path, recovered: Any) -> None:
    again = tmp_path / NAME.replace("0-", "1-")
    again.write_bytes(block(2, 0, body(8, 9)))
    spool = recovered(block(2, 0, body(1, 2)))
    assert (spool.damaged, numbers(spool, 0, 2)) == ([again], [1, 2])


def test_blocks_within_blocks_do_not_have_a_start_take_for_ever(recovered: Any, tmp_path: Path) -> None:
    header = struct.Struct("<3sBIIIQ")
    size = 2**18 * header.size
    places = range(0, size, header.size)
    lies = b"".join(header.pack(b"SWb", SEALED, size - at - header.size, 0, 1, at) for at in places)
    began = time.monotonic()
    spool = recovered(lies)
    assert time.monotonic() - began < 3 * time_factor()
    assert (spool.end, spool.damaged) == (0, [tmp_path / NAME])


def test_a_file_that_is_mostly_a_hole_is_not_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(block(1, 0, body(7)))
    os.truncate(tmp_path / NAME, 2**42)
    spool = open_spool(tmp_path)
    assert (numbers(spool, 0, 1), spool.damaged) == ([7], [tmp_path / NAME])
    spool.close()


def test_what_is_no_file_is_neither_waited_for_nor_followed(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "spool", tmp_path / NAME
    directory.mkdir(0o700)
    elsewhere.write_bytes(block(1, 0, body(7)))
    (directory / NAME).symlink_to(elsewhere)
    os.mkfifo(directory / NAME.replace("0-", "1-"))
    (directory / NAME.replace("0-", "2-")).mkdir()
    os.mkfifo(directory / "committed")
    spool = open_spool(directory)
    assert (spool.end, spool.damaged) == (0, segments(directory))
    assert len(spool.damaged) == 3
    spool.set_aside()
    spool.close()
    assert elsewhere.exists()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    directory = tmp_path / "spool"
    directory.mkdir(0o700)
    (directory / "lock").symlink_to(tmp_path / "made")
    with pytest.raises(ConfigError, match="option 'spool'"):
        open_spool(directory)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("text", ["-5", "9" * 19, "9" * 5000, "1e9", ""])
def test_a_number_of_what_is_committed_that_cannot_be_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_bytes(block(2, 5, body(1, 2)))
    (tmp_path / "committed").write_text(text)
    spool = open_spool(tmp_path)
    assert (spool.first, spool.end) == (5, 7)
    put(spool, 3)
    spool.close()


LIES = (body(1), body(1, 2)[:-1], b"\xa1t\xfd\1", b"\xa1t\xce\xff\xff\xff\xff\1", b"\xa1t", b"\1\1\1")


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("columns", [("topic", "value"), ("topic", "number")])
def test_fewer_values_than_a_block_says_are_an_error_and_no_silence(lie: bytes, columns: tuple[str, str]) -> None:
    second = BinaryType() if columns[1] == "value" else StringType()
    schema = StructType([StructField(columns[0], StringType()), StructField(columns[1], second)])
    with pytest.raises(DataLossError, match="holds fewer values than it says"):
        list(Decoder(schema, "PERMISSIVE").batches([(lie, 0, 3)]))


def test_a_task_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(OSError, match="it is not a regular file"):
        list(_bodies([Extent(str(tmp_path / NAME), 0, 100, 0, 1)]))


@pytest.mark.parametrize("offset", [{}, {"row": -1}, {"row": "5"}, {"row": 1.5}, {"row": True}, {"row": 2**63}])
def test_a_checkpoint_without_the_number_of_a_row_is_named(offset: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="the checkpoint holds no offset of a topic"):
        _row(offset)
