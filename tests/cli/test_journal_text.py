"""Lines of calls: many are made at once, and each is what it would be by itself."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
import pytest

from skywalker.cli.journal_text import Topics, json_end, json_lines
from skywalker.journal.reading import KINDS, Records, Run, look, merged, waits_us
from skywalker.journal.record import WORDS
from skywalker.wire import values
from tests.journal.making import NOON, header, put, records


def run_of(directory: Path, count: int) -> Run:
    """So many calls of two workers, in one run."""
    for worker in range(2):
        put(directory, header(worker=worker, name=f'"red" \u202e{worker}', clock_ns=NOON - 10**10), fields_of(count))
    (run,) = merged(look([directory]).segments, {}, lambda segment: None)
    return run


def fields_of(count: int) -> Records:
    codes = np.arange(count) * 7 % 256
    return records(count, 3, method=codes, outcome=codes // 3, route=codes // 5, door=codes // 7, token=codes % 11 - 5)


def names() -> dict[int, bytes]:
    return {-1: values.pack('a "b"\u2028é'), 0: values.pack(["a", 1]), 3: values.pack(b"\xff"), 4: b"\xc1"}


def test_each_line_of_json_says_what_its_record_does(tmp_path: Path) -> None:
    run = run_of(tmp_path, 700)
    text = json_lines(run, Topics(names(), json_end))
    assert text.count("\n") == len(run.times) == 1400
    for at, line in enumerate(text.splitlines()):
        said, record, about = json.loads(line), run.records[at], run.segments[run.origins[at]].header
        time_us = round(datetime.datetime.fromisoformat(said.pop("time")).timestamp() * 1e6)
        assert time_us == run.times[at] // 1000
        for field in KINDS:
            code, words = record[field], WORDS[field]
            assert said.pop(field) == (words[code] if code < len(words) else "unknown")
        known = {-1: 'a "b"\u2028é', 0: '["a", 1]', 3: '{"$bin": "/w=="}', 4: "0xc1"}
        assert said == {
            "node": "red",
            "name": f'"red" ?{about.worker}',
            "worker": about.worker,
            "sample": 1,
            "ring": "r1",
            **{field: record[field] for field in ("connection", "token", "size")},
            "source": "node",
            "wait_us": waits_us(run.records)[at],
            "topic": known.get(int(record["token"])),
        }


def test_the_parts_of_a_run_are_all_of_it_in_order(tmp_path: Path) -> None:
    run, topics = run_of(tmp_path, 50), Topics(names(), json_end)
    parts = [*run.parts(30)]
    assert [len(part.times) for part in parts] == [30, 30, 30, 10]
    assert "".join(json_lines(part, topics) for part in parts) == json_lines(run, topics)
    assert [*run.head(0).parts(30)] == []


@pytest.mark.parametrize("most", [9, 9_999_999, 10_000_000, 2**32 - 1])
def test_numbers_of_any_length_are_as_they_are(tmp_path: Path, most: int) -> None:
    numbers = sorted({0, most, *(number for length in range(8) for number in near(10**length) if number < most)})
    waits = np.array(numbers) / 1e6
    made = records(len(numbers), connection=numbers, size=numbers[::-1], wait=waits)
    put(tmp_path, header(), made)
    (run,) = merged(look([tmp_path]).segments, {}, lambda segment: None)
    said = [json.loads(line) for line in json_lines(run, Topics({}, json_end)).splitlines()]
    assert [call["connection"] for call in said] == numbers
    assert [call["size"] for call in said] == numbers[::-1]
    assert [call["wait_us"] for call in said] == waits_us(made).tolist()


@pytest.mark.parametrize("wait", [-0.5, np.nan, np.inf, 3e38])
def test_a_wait_that_is_none_does_not_change_the_others(tmp_path: Path, wait: float) -> None:
    made = records(3, wait=[0.001, wait, 2.5])
    put(tmp_path, header(), made)
    (run,) = merged(look([tmp_path]).segments, {}, lambda segment: None)
    said = [json.loads(line)["wait_us"] for line in json_lines(run, Topics({}, json_end)).splitlines()]
    assert said == waits_us(made).tolist()
    assert said[::2] == [1000, 2_500_000]


def near(number: int) -> range:
    return range(number - 1, number + 2)
