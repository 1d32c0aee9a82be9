"""The journal of a load: every call that its generators saw answered, as they saw it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench.command import bench
from bench.load.plan import Load
from bench.load.run import run
from skywalker.embedding import Node, embedded
from skywalker.errors import Busy
from skywalker.journal.reading import KINDS, kinds, look, topics, unix_ns
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.bench.broker import serving
from tests.helpers import time_factor


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with embedded(workers=2) as node:
        yield node


def load_on(port: int, journal: Path, **changes: object) -> Load:
    fields = {"pairs": 4, "in_flight": 8, "patience_s": 5 * time_factor(), **changes}
    return Load(port=port, prefix="load", journal=str(journal), **fields)


def ends(journal: Path) -> Counter[tuple[str, str]]:
    """How many records there are by method and outcome."""
    return Counter(
        (KINDS["method"][method], KINDS["outcome"][outcome])
        for segment in look([journal]).segments
        for records in [segment.read()]
        for method, outcome in zip(kinds(records, "method"), kinds(records, "outcome"), strict=True)
    )


@pytest.mark.parametrize("changes", [{}, {"rate": 500.0}, {"direct": True}], ids=["closed loop", "open loop", "direct"])
def test_every_call_is_on_record(node: Node, tmp_path: Path, changes: dict[str, object]) -> None:
    outcome = run(load_on(node.port, tmp_path, **changes), 0.3, generators=2, warm_up_s=0.0)
    assert outcome.errors == {}
    found = look([tmp_path])
    assert not found.problems
    assert all(segment.path.suffix == ".calls" and not segment.torn for segment in found.segments)
    assert {(each.header.source, each.header.node, each.header.worker) for each in found.segments} == {
        ("bench", "load", 0),
        ("bench", "load", 1),
    }
    counts = ends(tmp_path)
    # What came in before the window is counted in neither total.
    assert counts.keys() == {("send", "met"), ("recv", "met")}
    assert counts["send", "met"] == counts["recv", "met"] >= outcome.total.sent > 0
    records = np.concatenate([segment.read() for segment in found.segments])
    times = np.concatenate([unix_ns(segment.read(), segment.header) for segment in found.segments])
    assert times.max() - times.min() < 5e9 * time_factor()
    assert set(records["size"].tolist()) == {len(values.pack(b"." * 16))}
    assert set(records["connection"].tolist()) == {1, 2, 3, 4}
    routes = {KINDS["route"][route] for route in kinds(records, "route")}
    assert routes == ({"here"} if changes.get("direct") else {"here", "sibling"})
    if not changes.get("rate"):
        waits = np.sort(records["wait"][kinds(records, "method") == KINDS["method"].index("send")])
        median = outcome.percentile_us(50)
        assert median is not None
        assert waits[len(waits) // 2] * 1e6 == pytest.approx(median, rel=0.5)
    assert {*records["token"].tolist()} == topics(found.names).keys()


def test_a_call_that_was_refused_is_on_record_as_such(tmp_path: Path) -> None:
    def refuse_one(reply: bytes, number: int) -> bytes:
        if number != 20:
            return reply
        ((method, id, _),), _ = split(reply)
        return wire.error_frame(method, id, Busy("too much waits"))

    with serving(refuse_one) as (_, port):
        outcome = run(load_on(port, tmp_path, pairs=2, patience_s=0.3), 0.15, warm_up_s=0.02)
    assert outcome.errors == {"busy": 1}
    assert ends(tmp_path)["recv", "busy"] == 1


def test_the_command_writes_one_only_where_it_is_asked_for(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    arguments = ["--start", "1", "--seconds", "0.2", "--warm-up", "0", "--pairs", "1", "--in-flight", "2"]
    assert CliRunner().invoke(bench, arguments).exit_code == 0
    assert not journal.exists()
    assert CliRunner().invoke(bench, [*arguments, "--journal", str(journal)]).exit_code == 0
    assert ends(journal)["send", "met"] > 0
