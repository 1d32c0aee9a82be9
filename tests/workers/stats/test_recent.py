"""What a worker remembers of its last seconds: as much as is shown, however much there was."""

from __future__ import annotations

import random

import pytest

from workers.stats.close_reasons import Close
from workers.stats.recent import KEPT_CLOSES, SAMPLES, WINDOW_BYTES, WINDOW_S, Recent

HEAD_BYTES = 6


class Calls:
    """Calls at even intervals, of which `recent` is told as a counters would tell it."""

    def __init__(self) -> None:
        random.seed(4)
        self.now = 1000.0
        self.recent = Recent(self.now, random.random)
        self.told = 0
        self._gap = 0
        self._next_look = self.now + 1.0

    def come(self, seconds: float, *topics: bytes, rate: float) -> None:
        """Have so many calls a second come on these topics in turn."""
        until = self.now + seconds
        for number in range(round(seconds * rate)):
            self.now += 1 / rate
            self._look()
            if self._gap:
                self._gap -= 1
            else:
                self.told += 1
                self._gap = self.recent.call(topics[number % len(topics)], self.now)
        self.now = until

    def pass_by(self, seconds: float) -> None:
        """Have nobody call for so long."""
        until = self.now + seconds
        while self._next_look <= until:
            self.now = self._next_look
            self._look()
        self.now = until

    def rates(self) -> dict[bytes, float]:
        return self.recent.rates(self.now)

    def _look(self) -> None:
        if self.now >= self._next_look:
            self._next_look = self.now + 1.0
            if self.recent.look(self.now):
                self._gap = self.recent.gap()


@pytest.fixture
def calls() -> Calls:
    return Calls()


def test_of_few_calls_every_one_is_counted(calls: Calls) -> None:
    calls.come(4.0, b"a", b"b", b"a", b"c", rate=40)
    assert calls.told == 160
    assert calls.rates() == {b"a": pytest.approx(20), b"b": pytest.approx(10), b"c": pytest.approx(10)}
    assert next(iter(calls.rates())) == b"a"


def test_of_many_calls_few_are_told_and_rates_are_about_right(calls: Calls) -> None:
    calls.come(8.0, *[b"busy"] * 16, *[b"less"] * 3, b"rare", rate=40_000)
    assert calls.told < 2 * SAMPLES * 8
    assert [*calls.rates()] == [b"busy", b"less", b"rare"]
    for topic, part in ((b"busy", 0.8), (b"less", 0.15), (b"rare", 0.05)):
        assert calls.rates()[topic] == pytest.approx(40_000 * part, rel=0.25)


def test_what_is_long_ago_is_forgotten_and_what_is_of_the_window_before_is_not(calls: Calls) -> None:
    calls.come(WINDOW_S - 1, b"first", rate=100)
    calls.pass_by(2.0)
    calls.come(2.0, b"second", rate=100)
    assert calls.rates() == {
        b"first": pytest.approx(400 / (WINDOW_S + 3), rel=0.01),
        b"second": pytest.approx(200 / (WINDOW_S + 3), rel=0.01),
    }
    calls.pass_by(WINDOW_S)
    assert [*calls.rates()] == [b"second"]
    calls.pass_by(WINDOW_S + 1)
    assert calls.rates() == {}


def test_long_topics_take_no_more_memory_than_is_theirs(calls: Calls) -> None:
    topic = 65_000 * b"x"
    kept = -(-WINDOW_BYTES // (len(topic) + HEAD_BYTES))
    calls.come(2.0, topic, rate=100)
    assert calls.rates()[topic] * 2.0 == pytest.approx(kept)
    calls.come(2 * WINDOW_S, topic, rate=100)
    assert calls.rates()[topic] * WINDOW_S <= 2 * kept
    assert len(calls.recent._calls) + len(calls.recent._calls_before) <= 2 * kept * (len(topic) + HEAD_BYTES)


def test_the_connections_that_were_closed_last_are_kept_in_their_order() -> None:
    recent = Recent(1000.0, random.random)
    for number in range(KEPT_CLOSES + 5):
        recent.close(float(number), f"peer {number}", Close.PEER, "the peer closed it")
    assert len(recent.closed) == KEPT_CLOSES
    assert recent.closed[0] == (5.0, "peer 5", "peer", "the peer closed it")
    assert recent.closed[-1][0] == KEPT_CLOSES + 4
