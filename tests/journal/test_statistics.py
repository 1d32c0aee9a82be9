"""The figures of a journal, against the same ones counted one record after the other."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from skywalker.journal.reading import Records
from skywalker.journal.record import DOORS, METHODS, OUTCOMES, ROUTES
from skywalker.journal.statistics import PERCENTS, Statistics
from tests.journal.making import NOON, SECOND, header, records


def test_figures_are_those_that_counting_gives() -> None:
    parts = [
        (records(5000, 1, token=np.random.default_rng(3).zipf(1.5, 5000) % 100), header()),
        (records(300, 2, token=7), header(worker=1, sample=16, clock_ns=NOON + 60 * SECOND)),
        (records(0), header(worker=2)),
        (records(1, 4), header(node="blue", source="bench")),
    ]
    statistics = Statistics()
    for made, head in parts:
        statistics.add(made[: len(made) // 2], head)
        statistics.add(made[len(made) // 2 :], head)
    summary = statistics.summary(top=5)

    routes: Counter[str] = Counter()
    doors: Counter[str] = Counter()
    tokens: Counter[int] = Counter()
    size = 0
    waits: dict[tuple[str, str], list[float]] = {}
    times = []
    for made, head in parts:
        for ended, token, wait, bytes_, _, method, outcome, route, door in made.tolist():
            times.append(ended + head.clock_ns / SECOND)
            routes[ROUTES[route]] += head.sample
            doors[DOORS[door]] += head.sample
            tokens[token] += head.sample
            size += bytes_ * head.sample
            waits.setdefault((METHODS[method], OUTCOMES[outcome]), []).extend([wait] * head.sample)

    assert summary.records == 5301
    assert summary.calls == 5001 + 300 * 16
    assert summary.size == size
    assert summary.routes == routes
    assert summary.doors == doors
    assert summary.topics == len(tokens)
    assert [*summary.top] == sorted(tokens.items(), key=lambda item: (-item[1], item[0]))[:5]
    assert summary.workers == {
        ("bench", "blue", "red", 0): 1,
        ("node", "red", "red", 0): 5000,
        ("node", "red", "red", 1): 4800,
    }
    assert summary.span_s == pytest.approx(max(times) - min(times), abs=1e-6)
    assert summary.rate == pytest.approx(summary.calls / (max(times) - min(times)))
    found = {(method, outcome): of for method, by in summary.waits.items() for outcome, of in by.items()}
    assert found.keys() == waits.keys()
    for end, of in found.items():
        ordered = sorted(waits[end])
        assert of.calls == len(ordered)
        for percent in PERCENTS:
            exact = ordered[math.ceil(len(ordered) * percent / 100) - 1]
            assert of.seconds[percent] == pytest.approx(exact, rel=0.001)


def one_wait(*seconds: float) -> dict[float, float]:
    statistics = Statistics()
    statistics.add(records(len(seconds), wait=np.array(seconds), method=1, outcome=1), header())
    return dict(statistics.summary().waits["send"]["met"].seconds)


def test_a_record_that_is_damaged_does_not_spoil_the_rest() -> None:
    damaged = one_wait(math.nan, -1.0, math.inf, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert damaged[50.0] == pytest.approx(0.5, rel=0.001)


def test_words_of_a_later_version_are_counted_together() -> None:
    statistics = Statistics()
    statistics.add(records(4, method=np.array([0, 99, 100, 1]), outcome=1, route=77), header())
    summary = statistics.summary()
    assert {method: by["met"].calls for method, by in summary.waits.items()} == {"unknown": 3, "send": 1}
    assert summary.routes == {"unknown": 4}


def test_a_single_record_has_no_rate() -> None:
    statistics = Statistics()
    statistics.add(records(1), header())
    assert statistics.summary().rate is None


def test_topics_are_counted_exactly_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skywalker.journal.statistics._MANY_TOPICS", 10)
    statistics = Statistics()
    made: Records = records(2000, token=np.arange(2000) % 700)
    for at in range(0, 2000, 17):
        statistics.add(made[at : at + 17], header())
    summary = statistics.summary(top=2000)
    assert summary.topics == 700
    assert [*summary.top] == sorted(Counter(made["token"].tolist()).items(), key=lambda item: (-item[1], item[0]))
