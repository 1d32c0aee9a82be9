"""A soak of seconds, and that one which finds something says so."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from skywalker.limits import MIB
from tests.helpers import eventually, time_factor
from tests.promises.history import Trouble
from tests.soak import page, roster
from tests.soak.flatness import Growth, growths, left_over
from tests.soak.gauge import Sample, Usage
from tests.soak.promises import Promises
from tests.soak.roster import PROGRAMS, Roster, Shift
from tests.soak.run import mistakes, soak
from tests.soak.stage import Stage


@pytest.mark.timeout(240)
def test_a_node_that_is_used_and_hit_in_every_way_is_afterwards_what_it_was(tmp_path: Path) -> None:
    found = soak(6.0 * time_factor(), 2, 7, logs=tmp_path / "logs")
    assert not found.faults
    assert {*found.done} == {"killed", "drained", "reloaded", "lost its agent"}
    assert {program for program, shifts in found.roster.shifts.items() if shifts} == {*PROGRAMS}
    assert found.roster.kills.total() > 0
    assert found.promises.calls > 100
    assert len(found.samples) > 4
    assert {sample.usages[0].node for sample in found.samples} == {"spared"}
    counted = {what for (_, what), count in found.roster.counts.items() if count}
    assert {"send met", "meetings", "status 200", "rendezvous"} <= counted
    text = "\n".join(page.lines(found))
    assert "spared supervisor, pid" in text
    assert "every promise was kept" in text
    assert "event=serving" in (tmp_path / "logs" / "spared.log").read_text()


# Memory.


def samples_of(size: Callable[[float], float], pid: Callable[[float], int] = lambda part: 1) -> list[Sample]:
    """Return those of a node with one process, whose memory in MiB goes by the part of the time that is over."""
    parts = [number / 400 for number in range(401)]
    return [
        Sample(1000 * part, (Usage("a", "worker-0", pid(part), int(size(part) * MIB), 10, 1),), {}) for part in parts
    ]


def judged(samples: Sequence[Sample]) -> dict[str, Growth]:
    return {growth.what: growth for growth in growths(samples)}


@pytest.mark.parametrize(
    ("size", "is_flat"),
    [
        (lambda part: 20.0, True),
        (lambda part: 20.0 + 10 * min(part, 0.2), True),
        (lambda part: 20.0 + (30.0 if int(400 * part) % 10 == 0 else 0.0), True),
        (lambda part: 20.0 + int(4 * part) * 0.5, True),
        (lambda part: 20.0 + 10 * part, False),
        (lambda part: 20.0 if part < 0.7 else 24.0, False),
        (lambda part: 20.0 - 10 * part, True),
    ],
    ids=["even", "grown-at-first", "peaks", "a-plateau-of-arenas", "a-leak", "a-leap", "shrinking"],
)
def test_memory_that_grows_all_the_time_is_seen(size: Callable[[float], float], is_flat: bool) -> None:
    found = judged(samples_of(size))
    assert {growth.is_flat for growth in found.values()} == {is_flat}
    assert {*found} == {"a", "a worker-0", "a worker-0, pid 1"}


def test_what_is_the_next_one_of_a_row_is_judged_with_the_row() -> None:
    found = judged(samples_of(lambda part: 20 + 10 * part, lambda part: int(20 * part)))
    assert {*found} == {"a", "a worker-0"}
    assert not any(growth.is_flat for growth in found.values())


def test_growth_is_told_by_the_hour() -> None:
    growth = judged(samples_of(lambda part: 20 + 10 * part))["a"]
    assert growth.per_hour == pytest.approx(36 * MIB, rel=0.05)
    assert "has grown from 23.7 to 28.8 MiB in 500 s" in str(growth)


# What is left over.


def quiet(files: int = 10, threads: int = 1, role: str = "worker-0", **tables: float) -> Sample:
    return Sample(0.0, (Usage("a", role, 1, 0, files, threads),), {"a": tables})


def test_what_is_left_in_tables_and_files_and_threads_that_are_still_there_are_seen() -> None:
    before = quiet(connections=1)
    assert left_over(before, quiet(connections=1, topics=0)) == []
    assert left_over(before, quiet(files=9)) == []
    assert left_over(before, quiet(topics=2)) == ["a has 2 topics"]
    assert left_over(before, quiet(connections=2)) == ["a has 2 connections"]
    assert left_over(before, quiet(files=11)) == ["a workers: 11 files open, 10 in the first quiet moment"]
    assert left_over(before, quiet(threads=2)) == ["a workers: 2 threads, 1 in the first quiet moment"]
    assert left_over(before, Sample(0.0, before.usages, {})) == ["a does not say"]


def test_a_log_with_a_bug_or_an_end_that_nobody_brought_about_is_seen() -> None:
    log = "level=error event=worker-ended worker=0 pid=7\nlevel=error event=agent-ended pid=8\nlevel=info event=ended"
    assert [*mistakes(log, {7, 8})] == []
    assert [*mistakes(log, {7})] == ["level=error event=agent-ended pid=8"]
    for bad in ("level=error event=bug trace=x", "Traceback (most recent call last):", "event=worker-hung pid=7"):
        assert [*mistakes(bad, {7})] == [bad]


# Promises.


KILLED = [Trouble("kill", "a", 10.0, 11.0)]


def complained(tmp_path: Path, rule: str, at: float) -> Promises:
    promises = Promises(1, lambda: KILLED, list)
    file = tmp_path / "noted"
    file.write_text(json.dumps({"at": at, "rule": rule, "what": "something"}) + "\n")
    promises.judge(Shift("volume", 0.0, 20.0, False, file, {}))
    return promises


@pytest.mark.parametrize(
    ("rule", "at", "excused"),
    [("load", 12.0, True), ("load", 50.0, False), ("wrong", 12.0, False)],
)
def test_a_death_excuses_calls_of_a_load_that_fail_and_none_that_are_wrong(
    tmp_path: Path, rule: str, at: float, excused: bool
) -> None:
    promises = complained(tmp_path, rule, at)
    assert (promises.excused.total(), promises.kinds.total()) == ((1, 0) if excused else (0, 1))
    assert len(promises.broken) == promises.kinds.total()


# Programs.


@pytest.mark.parametrize(("code", "said"), [("raise SystemExit('it broke')", "it broke"), ("print('{}')", "status 0")])
def test_a_program_that_ends_too_soon_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, said: str
) -> None:
    (tmp_path / "broken_program.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(roster, "PROGRAMS", {"broken": lambda stage, seed, file: ["broken_program"]})
    judged: list[Shift] = []
    with Roster(Stage(()), random.Random(1), (60.0, 60.0), 0.0, tmp_path, judged.append) as running:
        eventually(lambda: running.failures, 20.0)
    assert said in running.failures[0]
    assert not judged
