"""What is kept of the last seconds: little, whatever happens, and close to the truth."""

from __future__ import annotations

import pytest

from workers import lately
from workers.closes import Close
from workers.lately import KEPT_CLOSES, SAMPLES, WINDOW_BYTES, WINDOW_S, Lately

WINDOW = int(WINDOW_S)


class Clock:
    """Stands still unless it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1.7e9 + self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(lately, "time", clock)
    return clock


class Calls:
    """Tells of calls as a tally does."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.kept = Lately()
        self.told = 0
        self._gap = 0

    def answer(self, topic: bytes) -> None:
        if self._gap:
            self._gap -= 1
        else:
            self.told += 1
            self._gap = self.kept.call(topic)

    def second(self, topics: list[bytes]) -> None:
        """Answer calls on these topics in a second, and look at its end."""
        for topic in topics:
            self.clock.now += 1 / len(topics)
            self.answer(topic)
        if self.kept.look():
            self._gap = self.kept.gap()


@pytest.fixture
def calls(clock: Clock) -> Calls:
    return Calls(clock)


def test_while_calls_are_few_each_of_them_counts(calls: Calls) -> None:
    for _ in range(WINDOW):
        calls.second([b"often"] * 3 + [b"seldom"])
    assert calls.told == 4 * WINDOW
    assert calls.kept.rates() == {b"often": pytest.approx(3.0), b"seldom": pytest.approx(1.0)}
    assert [*calls.kept.rates()] == [b"often", b"seldom"]


def test_of_many_calls_few_are_kept_and_rates_are_about_right(calls: Calls) -> None:
    topics = [b"half", b"fifth", b"half", b"other", b"half", b"fifth", b"half", b"other", b"half", b"last"]
    for seconds in range(1, 2 * WINDOW + 1):
        told = calls.told
        calls.second(topics * 2000)
        assert calls.told - told < (3 if seconds == 1 else 2) * SAMPLES
    assert calls.told > WINDOW * SAMPLES
    rates = calls.kept.rates()
    assert next(iter(rates)) == b"half"
    assert rates[b"half"] == pytest.approx(10_000, rel=0.15)
    assert rates[b"fifth"] == pytest.approx(4_000, rel=0.25)
    assert sum(rates.values()) == pytest.approx(20_000, rel=0.1)


def test_a_burst_in_no_time_costs_little(calls: Calls) -> None:
    for _ in range(200_000):
        calls.answer(b"burst")
    assert calls.told < 3 * SAMPLES


def test_once_calls_are_few_again_each_of_them_counts(calls: Calls) -> None:
    for _ in range(3):
        calls.second([b"much"] * 20_000)
    for _ in range(2):
        calls.second([b"little"] * 10)
    told = calls.told
    calls.second([b"little"] * 10)
    assert calls.told - told == 10


def test_what_is_long_past_is_forgotten(calls: Calls) -> None:
    calls.second([b"past"] * 10)
    for _ in range(2 * WINDOW + 1):
        calls.second([b"now"])
    assert calls.kept.rates().keys() == {b"now"}


def test_topics_of_any_length_take_no_more_than_a_window_may(calls: Calls) -> None:
    for number in range(3 * WINDOW):
        calls.second([bytes([number]) * 4096] * 1000)
        kept = len(calls.kept._calls) + len(calls.kept._calls_before)
        assert kept <= 2 * (WINDOW_BYTES + 4096 + 6)
    assert calls.kept.rates()


def test_nothing_has_no_rates(calls: Calls) -> None:
    assert calls.kept.rates() == {}


def test_the_empty_topic_is_one_too(calls: Calls) -> None:
    calls.second([b""])
    assert calls.kept.rates() == {b"": pytest.approx(1.0)}


def test_of_closes_the_last_hundred_are_kept(clock: Clock) -> None:
    kept = Lately()
    for number in range(KEPT_CLOSES + 5):
        clock.now += 1
        kept.close(f"peer {number}", Close.SILENT, "it does not answer a ping")
    assert [peer for _, peer, _, _ in kept.closed] == [f"peer {number}" for number in range(5, KEPT_CLOSES + 5)]
    assert kept.closed[-1] == (clock.time(), f"peer {KEPT_CLOSES + 4}", "silent", "it does not answer a ping")
