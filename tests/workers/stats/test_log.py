"""A log line is one write that never blocks, holds one event, and comes from a peer only so often."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skywalker.access import token
from workers.stats.log import BURST, KEPT, Log


class Pipe:
    """A pipe to log into."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)

    def lines(self) -> list[str]:
        """Return the lines that were written since the last call."""
        try:
            return os.read(self.reader, 1 << 20).decode().splitlines()
        except BlockingIOError:
            return []

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_a_line_has_the_time_the_level_the_event_and_all_fields_in_their_order(pipe: Pipe) -> None:
    log = Log(time.monotonic, pipe.writer, process="worker").bind(worker=3)
    log.info("serving", port=3443)
    log.warning("slow", reason="none")
    log.error("broken")
    first, second, third = pipe.lines()
    assert re.fullmatch(
        r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=info event=serving process=worker worker=3 port=3443", first
    )
    assert " level=warning event=slow process=worker worker=3 reason=none" in second
    assert third.endswith(" level=error event=broken process=worker worker=3")


@pytest.mark.parametrize(
    "value", ["two words", "", 'a"quote', "a=b", "a\nline=2 level=error", "tab\there", "bell\x07", "\x1b[31m", "\u2028"]
)
def test_a_value_that_could_be_mistaken_for_something_else_is_quoted(pipe: Pipe, value: str) -> None:
    Log(time.monotonic, pipe.writer).info("event", peer=value)
    (line,) = pipe.lines()
    quoted = line.partition(" peer=")[2]
    assert json.loads(quoted) == value
    assert line.isprintable()


def test_a_value_that_is_no_text_at_all_is_written_somehow(pipe: Pipe) -> None:
    Log(time.monotonic, pipe.writer).info("event", name="half \ud800 a character", number=None)
    (line,) = pipe.lines()
    assert line.endswith("number=None")


FIELDS = st.dictionaries(
    st.from_regex(r"[a-z_]{1,9}", fullmatch=True).filter(
        lambda key: key not in ("time", "level", "event", "self", "fd")
    ),
    st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none(),
    max_size=5,
)


@settings(max_examples=30)
@given(FIELDS)
def test_in_json_a_line_is_an_object_with_all_fields_as_they_are(fields: dict[str, object]) -> None:
    pipe = Pipe()
    log = Log(time.monotonic, pipe.writer, process="worker")
    bound = log.bind(worker=3)
    log.use("info", "json")
    bound.warning("slow", **{"trace": Path("/x"), **fields})
    (line,) = os.read(pipe.reader, 1 << 20).decode().split("\n")[:-1]
    pipe.close()
    found = json.loads(line)
    assert [*found][:5] == ["time", "level", "event", "process", "worker"]
    expected = {"level": "warning", "event": "slow", "process": "worker", "worker": 3, "trace": "/x", **fields}
    assert {key: value for key, value in found.items() if key != "time"} == expected
    assert line.isascii()


def test_in_json_a_token_is_masked_and_what_is_no_text_is_escaped(pipe: Pipe) -> None:
    log = Log(time.monotonic, pipe.writer)
    log.use("info", "json")
    secret = token.new()
    log.info("said", text=f"it is {secret}", half="\ud800", none=float("nan"))
    (line,) = pipe.lines()
    assert secret not in line
    assert json.loads(line)["half"] == "\\ud800"
    assert json.loads(line)["none"] == "nan"


@pytest.mark.parametrize(("level", "written"), [("info", 3), ("warning", 2), ("error", 1)])
def test_what_is_below_the_level_is_not_written_and_counts_as_nothing(pipe: Pipe, level: str, written: int) -> None:
    log = Log(time.monotonic, pipe.writer)
    log.use(level, "logfmt")
    for say in (log.info, log.warning, log.error):
        say("event")
    lines = pipe.lines()
    assert len(lines) == written
    assert "lines_dropped" not in lines[-1]


def test_a_flood_of_events_is_cut_and_the_next_line_says_how_many_were_lost(pipe: Pipe) -> None:
    now = 1000.0
    log = Log(lambda: now, pipe.writer)
    for number in range(1000):
        log.info("refused", number=number)
    assert len(pipe.lines()) == BURST - KEPT["info"]
    now += 1.0
    log.info("later")
    (line,) = pipe.lines()
    assert line.endswith(f"event=later lines_dropped={1000 - BURST + KEPT['info']}")
    log.info("again")
    assert "lines_dropped" not in pipe.lines()[0]


def test_a_flood_hides_nothing_that_matters_more(pipe: Pipe) -> None:
    now = 1000.0
    log = Log(lambda: now, pipe.writer)
    for _ in range(1000):
        now += 0.001
        log.info("refused")
    log.warning("peer-lost")
    for _ in range(1000):
        log.warning("choked")
    log.error("bug")
    levels = [line.split()[1] for line in pipe.lines()]
    assert levels[-1] == "level=error"
    assert levels.count("level=warning") == KEPT["info"] - KEPT["warning"]


def test_a_reader_that_does_not_keep_up_loses_lines_and_blocks_nobody(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.stats.log.BURST", 10_000)
    capacity = fcntl.fcntl(pipe.writer, fcntl.F_SETPIPE_SZ, 4096)
    log = Log(time.monotonic, pipe.writer)
    for number in range(2 * capacity // 100):
        log.info("event", number=number, filler="x" * 100)
    written = pipe.lines()
    assert 0 < len(written) < 2 * capacity // 100
    assert all(line.endswith("x") for line in written)
    log.info("readable again")
    (line,) = pipe.lines()
    assert "lines_dropped=" in line


def test_nobody_reading_any_more_harms_nobody() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    Log(time.monotonic, writer).error("nobody hears this")
    os.close(writer)
    Log(time.monotonic, writer).error("nor this")
