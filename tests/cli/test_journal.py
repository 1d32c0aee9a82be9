"""`skywalker journal`: what a journal says, to people and to scripts, and what cannot be read."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skywalker.journal.header import VERSION
from skywalker.ring import token_of
from skywalker.wire import values
from tests.cli.running import end, run, started
from tests.helpers import eventually
from tests.journal.making import NOON, SECOND, add, complete, header, put, put_names, records

JOBS = token_of(values.pack("jobs"))
PAIR = token_of(values.pack(["a", 1]))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Of two workers, 20 calls of which take turns, on three topics of which two have names."""
    for worker in (0, 1):
        ended = np.arange(10) * 0.01 + worker * 0.005
        tokens = np.array([JOBS, PAIR, 7, JOBS, JOBS] * 2)
        made = records(10, ended=ended, token=tokens, method=1, outcome=2, route=0, door=1, wait=0.002, size=100)
        put(tmp_path, header(worker=worker), made)
    put_names(tmp_path, header(), {JOBS: values.pack("jobs"), PAIR: values.pack(["a", 1])})
    return tmp_path


def cat(*arguments: object) -> list[dict[str, Any]]:
    ran = run("journal", "cat", "--json", *map(str, arguments))
    assert (ran.returncode, ran.stderr) == (0, b"")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_calls_come_in_order_whoever_answered_them(journal: Path) -> None:
    found = cat(journal)
    assert [call["worker"] for call in found] == [0, 1] * 10
    assert found[1] == {
        "time": "2025-06-15T15:06:40.005000Z",
        "node": "red",
        "name": "red",
        "worker": 1,
        "sample": 1,
        "ring": "r1",
        "source": "node",
        "connection": found[1]["connection"],
        "token": JOBS,
        "size": 100,
        "method": "send",
        "outcome": "prompt",
        "route": "here",
        "door": "junction",
        "wait_us": 2000,
        "topic": "jobs",
    }
    assert {call["topic"] for call in found} == {"jobs", '["a", 1]', None}


def test_people_get_a_line_for_each_call(journal: Path) -> None:
    ran = run("journal", "cat", str(journal), "--limit", "3")
    heading, first, *_, third = ran.stdout.decode().splitlines()
    assert heading.split() == ["time", "(UTC)", "worker", "method", "outcome", "route", "wait", "topic"]
    assert first.split() == ["2025-06-15", "15:06:40.000000", "red/0", "send", "prompt", "here", "2.00", "ms", "jobs"]
    assert third.endswith('["a", 1]')


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        (["--topic", "jobs"], 12),
        (["--topic", '["a",1]'], 4),
        (["--topic", "nobody"], 0),
        (["--limit", "7"], 7),
        (["--since", "2025-06-15T15:06:40.050"], 10),
        (["--until", "2025-06-15 15:06:40.05Z"], 10),
        (["--since", "2025-06-15T17:06:40.05+02:00", "--until", "2025-06-15T15:06:40.06"], 2),
        (["--since", "5m"], 0),
    ],
)
def test_a_part_can_be_asked_for(journal: Path, asked: list[str], count: int) -> None:
    assert len(cat(journal, *asked)) == count


def test_figures_are_told_to_scripts(journal: Path) -> None:
    ran = run("journal", "stat", "--json", "--top", "2", str(journal))
    assert ran.returncode == 0
    told = json.loads(ran.stdout)["value"]
    assert told["calls"] == told["records"] == 20
    assert told["rate"] == pytest.approx(20 / 0.095)
    assert told["methods"]["send"]["prompt"]["calls"] == 20
    assert told["methods"]["send"]["prompt"]["wait_s"]["p99"] == pytest.approx(0.002, rel=0.001)
    assert told["topics"] == 3
    assert told["top_topics"] == [
        {"token": JOBS, "topic": "jobs", "calls": 12},
        {"token": min(PAIR, 7), "topic": told["top_topics"][1]["topic"], "calls": 4},
    ]
    assert told["workers"][1] == {"source": "node", "node": "red", "name": "red", "worker": 1, "calls": 10}


def test_figures_are_told_to_people(journal: Path) -> None:
    text = run("journal", "stat", "--top", "1", str(journal)).stdout.decode()
    for line in ("20 calls", "211 a second; values of 2 kB", "and 2 more topics"):
        assert f"  {line}\n" in text
    assert [line.split() for line in text.splitlines() if line.startswith(("  send", "  jobs", "  red/1"))] == [
        ["send", "prompt", "20", "100.0%", *["2.00", "ms"] * 5],
        ["red/1", "10", "50.0%"],
        ["jobs", "12", "60.0%"],
    ]


def test_connections_that_moved_are_counted(tmp_path: Path) -> None:
    for worker, moved in enumerate((3, 0, 1)):
        put(tmp_path, header(worker=worker, moved=moved), records(2))
    assert b"  4 connections moved from one worker to another" in run("journal", "stat", str(tmp_path)).stdout
    assert json.loads(run("journal", "stat", "--json", str(tmp_path)).stdout)["value"]["moved"] == 4


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_nothing_in_a_journal_steers_the_terminal(tmp_path: Path, form: list[str]) -> None:
    steering = "\x1b[2J\x9b2J\u202e\u2028\x7f"
    topic = values.pack(steering)
    named = header(source=steering, node=steering, name=steering, ring=steering)
    put(tmp_path, named, records(1, token=token_of(topic)))
    put_names(tmp_path, named, {token_of(topic): topic})
    for command in ("cat", "stat"):
        out = run("journal", command, *form, str(tmp_path)).stdout.decode()
        assert all(char.isprintable() for line in out.split("\n") for char in line)
    said = json.loads(run("journal", "cat", "--json", str(tmp_path)).stdout)
    assert said["topic"] == said["ring"] == steering


def test_records_that_are_made_up_are_told(tmp_path: Path) -> None:
    numbers = {"ended": np.inf, "wait": np.nan, "size": 2**32 - 1}
    put(tmp_path, header(sample=2**31 - 1), records(10, **numbers))
    for command in ("cat", "stat"):
        for form in ([], ["--json"]):
            ran = run("journal", command, *form, str(tmp_path))
            assert (ran.returncode, ran.stderr) == (0, b"")


def test_what_cannot_be_read_is_named_and_the_rest_is_read(journal: Path) -> None:
    foreign = journal / "red-w9-0000000000000001.calls"
    foreign.write_bytes(b"#!/bin/sh\n" * 200)
    future = put(journal, header(worker=8), records(1))
    data = bytearray(future.read_bytes())
    data[8:10] = struct.pack("<H", VERSION + 1)
    future.write_bytes(data)
    for command in ("cat", "stat"):
        ran = run("journal", command, "--json", str(journal))
        assert ran.returncode == 1
        said = ran.stderr.decode()
        assert len(said.splitlines()) == 2
        assert f"{foreign}: no journal" in said
        assert f"{future}: it is of version {VERSION + 1}, and this skywalker reads version {VERSION}" in said
    assert len(run("journal", "cat", "--json", str(journal)).stdout.splitlines()) == 20


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["cat"], "DIR|FILE"),
        (["cat", "/nowhere/at/all"], "'/nowhere/at/all'"),
        (["stat", "/nowhere/at/all"], "'/nowhere/at/all'"),
        (["cat", "--since", "yesterday", "/"], "--since"),
        (["cat", "--topic", "{", "/"], "--topic"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], part: str) -> None:
    ran = run("journal", *arguments)
    assert ran.returncode == 2
    assert part in ran.stderr.decode()


def test_a_journal_in_which_nothing_stands_is_told_apart_from_one_without_what_was_asked_for(journal: Path) -> None:
    ran = run("journal", "stat", "--topic", "nobody", str(journal))
    assert b"no call is on record there that was asked for\n" in ran.stderr
    for file in journal.iterdir():
        file.unlink()
    assert run("journal", "stat", str(journal)).stderr.endswith(b"no call is on record there\n")


def test_a_journal_is_followed_through_rotation(tmp_path: Path) -> None:
    def numbered(*numbers: int) -> Any:
        return records(len(numbers), connection=np.array(numbers))

    path = put(tmp_path, header(), numbered(0, 1), is_open=True)
    with started("journal", "cat", "--follow", "--json", "--limit", "7", str(tmp_path)) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        heard = bytearray()

        def numbers() -> list[int]:
            heard.extend(process.stdout.read() or b"")
            return sorted(json.loads(line)["connection"] for line in heard.splitlines())

        eventually(lambda: numbers() == [0, 1], within=20.0)
        add(path, numbered(2))
        complete(path)
        path = put(tmp_path, header(opened_ns=NOON + SECOND), numbered(3, 4), is_open=True, torn=b"\x01" * 7)
        eventually(lambda: numbers() == [0, 1, 2, 3, 4], within=20.0)
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 7)
        add(path, numbered(5, 6, 7))
        eventually(lambda: numbers() == [0, 1, 2, 3, 4, 5, 6], within=20.0)
        assert end(process) == 0
