"""Files that somebody has put into a journal: a stream tells of them, and does nothing that they ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skywalker.journal.header import CALLS
from skywalker.pipeline.journals.columns import schema_of
from skywalker.pipeline.journals.position import Position
from skywalker.pipeline.journals.source import CallsStream, Reading
from skywalker.pipeline.mistakes import DataLossError
from tests.journal.making import header, put, records


def stream(directory: Path, fail: bool) -> CallsStream:
    options = {"path": str(directory), "failOnDataLoss": str(fail).lower(), "recordsPerPartition": "1000"}
    return CallsStream(Reading.parse(options), schema_of(CALLS))


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_a_stream_plans_nothing_for_what_is_no_file_of_a_journal(tmp_path: Path, kind: str) -> None:
    put(tmp_path, header(), records(3))
    path = tmp_path / "red-w1-0000000000000001.calls"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(DataLossError, match=f"{path}: it is not a regular file"):
        stream(tmp_path, fail=True).prepareForTriggerAvailableNow()
    going_on = stream(tmp_path, fail=False)
    end = going_on.latestOffset(Position().to_offset(), going_on.getDefaultReadLimit())
    assert end["writers"].keys() == {"red-w0"}
    assert len(going_on.partitions(Position().to_offset(), end)) == 1


def test_a_stream_plans_no_tasks_for_a_hole(tmp_path: Path) -> None:
    os.truncate(put(tmp_path, header(), records(3)), 2**42)
    reading = stream(tmp_path, fail=True)
    end = reading.latestOffset(Position().to_offset(), reading.getDefaultReadLimit())
    assert len(reading.partitions(Position().to_offset(), end)) <= 3
