"""Watching a source: told of what differs, and of each outage once; the pauses are those that were asked for."""

from __future__ import annotations

import itertools
import queue
import threading
import time

from skywalker.address import Address
from skywalker.discovery.source import Finding, Source, StaticSource
from skywalker.discovery.watch import RETRY_CAP_S, repeat
from skywalker.errors import DiscoveryError
from tests.discovery.watching import Watch
from tests.helpers import eventually

A, B = frozenset({Address("10.0.0.1", 3443)}), frozenset({Address("10.0.0.2", 3443)})


class ToldSource(Source):
    """Finds what a test puts in line, or fails with it."""

    def __init__(self) -> None:
        self._line: queue.Queue[Finding | str | None] = queue.Queue()
        self.looks = 0

    def then(self, *findings: frozenset[Address] | str) -> None:
        for each in findings:
            self._line.put(each if isinstance(each, str) else Finding(each, 0))

    def look(self) -> Finding:
        each = self._line.get()
        self.looks += 1
        if isinstance(each, Finding):
            return each
        raise DiscoveryError(each or "closed")

    def close(self) -> None:
        self._line.put(None)

    def __str__(self) -> str:
        return "told"


def test_only_what_differs_is_told() -> None:
    source = ToldSource()
    with Watch(source) as watch:
        source.then(A, A, B, B, A | B, frozenset(), frozenset(), A)
        eventually(lambda: source.looks == 8)
        eventually(lambda: watch.found == [A, B, A | B, frozenset(), A])


def test_an_empty_first_finding_is_told_too() -> None:
    source = ToldSource()
    with Watch(source) as watch:
        source.then(frozenset())
        watch.wait_for([])


def test_an_outage_is_told_once_and_so_is_its_end_and_what_was_known_stays() -> None:
    source = ToldSource()
    with Watch(source) as watch:
        source.then(A, "no route", "no route", "another reason", A, A, "again", B)
        watch.wait_for(B)
        assert watch.troubles == ["no route", None, "again", None]
        assert watch.found == [A, B]


def test_an_outage_from_the_start_is_told_and_nothing_is_found() -> None:
    source = ToldSource()
    with Watch(source) as watch:
        source.then("down")
        watch.wait_for_trouble(1)
        assert (watch.troubles, watch.found) == (["down"], [])


def test_the_end_of_a_watch_is_no_outage() -> None:
    source = ToldSource()
    with Watch(source) as watch:
        source.then(A)
        watch.wait_for(A)
    assert watch.troubles == []


def test_a_list_is_looked_at_once_and_its_watch_ends_when_it_is_told_to() -> None:
    with Watch(StaticSource(A)) as watch:
        watch.wait_for(A)
    assert watch.found == [A]
    assert watch.troubles == []


def test_the_pause_that_a_step_asks_for_is_kept_and_the_end_does_not_wait_for_it() -> None:
    stopped, steps = threading.Event(), []

    def step() -> float:
        steps.append(time.monotonic())
        return 0.2 if len(steps) < 3 else 3600.0

    thread = threading.Thread(target=repeat, args=(step, print, stopped))
    thread.start()
    eventually(lambda: len(steps) == 3)
    stopped.set()
    thread.join(1.0)
    assert not thread.is_alive()
    assert all(later - earlier >= 0.19 for earlier, later in itertools.pairwise(steps))


def test_what_fails_is_tried_less_and_less_often_but_at_least_every_few_seconds() -> None:
    class Pauses(threading.Event):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[float | None] = []

        def wait(self, timeout: float | None = None) -> bool:
            self.asked.append(timeout)
            if len(self.asked) == 40:
                self.set()
            return self.is_set()

    def step() -> float:
        raise DiscoveryError("down")

    stopped, troubles = Pauses(), []
    repeat(step, troubles.append, stopped, lambda: 0.5)
    pauses = [pause or 0.0 for pause in stopped.asked]
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < 0.1
    assert pauses[-1] == RETRY_CAP_S / 2
    assert troubles == ["down"]
