"""A soak of seconds, and that one which finds something says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from skywalker.limits import MIB
from tests.helpers import time_factor
from tests.soak import page
from tests.soak.flatness import growths, left_over
from tests.soak.gauge import Sample, Usage
from tests.soak.roster import PROGRAMS
from tests.soak.run import mistakes, soak


@pytest.mark.timeout(240)
def test_a_node_that_is_used_and_hit_in_every_way_is_afterwards_what_it_was(tmp_path: Path) -> None:
    found = soak(6.0 * time_factor(), 2, 7, logs=tmp_path / "logs")
    assert not found.faults
    assert {*found.done} == {"killed", "drained", "reloaded", "lost its agent"}
    assert {program for program, shifts in found.roster.shifts.items() if shifts} == {*PROGRAMS}
    assert found.roster.kills.total() > 0
    assert len(found.samples) > 4
    counted = {what for (_, what), count in found.roster.counts.items() if count}
    assert {"meetings", "status 200", "rendezvous"} <= counted
    text = "\n".join(page.lines(found))
    assert "spared supervisor, pid" in text
    assert "no answer was wrong" in text
    assert "event=serving" in (tmp_path / "logs" / "spared.log").read_text()


def sample_of(part: float, size: float) -> Sample:
    """Return that of a node with one process, once a part of the time is over; `size` in MiB."""
    return Sample(1000 * part, (Usage("a", "worker-0", 1, int(size * MIB), 10, 1),), {})


@pytest.mark.parametrize(
    ("size", "is_flat"),
    [
        (lambda part: 20.0 + 10 * min(part, 0.2), True),
        (lambda part: 20.0 + (30.0 if int(400 * part) % 10 == 0 else 0.0), True),
        (lambda part: 20.0 + 10 * part, False),
    ],
    ids=["grown-at-first", "peaks", "a-leak"],
)
def test_memory_that_grows_all_the_time_is_seen(size: Callable[[float], float], is_flat: bool) -> None:
    found = [*growths([sample_of(number / 400, size(number / 400)) for number in range(401)])]
    assert {growth.is_flat for growth in found} == {is_flat}
    assert [growth.what for growth in found] == ["a", "a worker-0", "a worker-0, pid 1"]


def quiet(files: int = 10, **tables: float) -> Sample:
    return Sample(0.0, (Usage("a", "worker-0", 1, 0, files, 1),), {"a": tables})


def test_what_is_left_in_tables_and_files_that_are_still_open_are_seen() -> None:
    before = quiet(connections=1)
    assert left_over(before, quiet(9, connections=1, topics=0)) == []
    assert left_over(before, quiet(topics=2)) == ["a has 2 topics"]
    assert left_over(before, quiet(11)) == ["a workers: 11 files open, 10 in the first quiet moment"]
    assert left_over(before, Sample(0.0, before.usages, {})) == ["a does not say"]


def test_a_log_with_a_bug_or_an_end_that_nobody_brought_about_is_seen() -> None:
    log = "level=error event=worker-ended worker=0 pid=7\nlevel=error event=agent-ended pid=8\nlevel=info event=ended"
    assert [*mistakes(log, {7, 8})] == []
    assert [*mistakes(log, {7})] == ["level=error event=agent-ended pid=8"]
    assert [*mistakes("level=error event=bug trace=x", {7})]
