"""Well-behaved clients in a process of their own, and how long they wait while others attack their node.

Calls are due at fixed times, whether or not those before them were answered: one that is late for a call that
stands still counts as slow, too. Otherwise a node that serves nobody for a second would cost one call.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

import psutil

from tests.abuse.foe import Target
from tests.helpers import time_factor
from tests.workers.pubsub_client import PubSubClient
from tests.workers.wire_client import WireClient

EVERY_S: Final = 0.003
"""Seconds from one rendezvous to the next, and from one publication to the next."""

ANSWER_S: Final = 10.0

WATCH_S: Final = 0.02


class Times(NamedTuple):
    """In seconds, how long the slowest of a hundred take: a value from a sender to a receiver, and to a subscriber."""

    rendezvous: float
    publication: float


class Probe:
    """The clients, as the test has them. Made by probing().

    `stood_still_s` says for how long a processor stood still while they were measured last: a virtual one may for
    seconds.
    """

    def __init__(self, ours: Connection) -> None:
        self.stood_still_s = 0.0
        self._ours = ours

    def measure(self, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> Times:
        """Return the times of calls of so many seconds; call `meanwhile` again and again until they are over."""
        self._ours.send(seconds)
        stolen = _stolen()
        self.stood_still_s = 0.0
        end = time.monotonic() + seconds + ANSWER_S * time_factor()
        while not self._polled():
            assert time.monotonic() < end, "the well-behaved clients get no answer"
            meanwhile()
        try:
            times = self._ours.recv()
        except EOFError:
            raise AssertionError("a well-behaved client has failed") from None
        taken = (now - before for before, now in zip(stolen, _stolen(), strict=True))
        self.stood_still_s = max(self.stood_still_s, *taken)
        assert isinstance(times, Times)
        return times

    def _polled(self) -> bool:
        due = time.monotonic() + WATCH_S
        found = self._ours.poll(WATCH_S)
        self.stood_still_s = max(self.stood_still_s, time.monotonic() - due)
        return found


@contextlib.contextmanager
def probing(target: Target) -> Iterator[Probe]:
    """Have well-behaved clients of the node for the length of a `with` block."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, target), daemon=True)
    process.start()
    theirs.close()
    try:
        probe = Probe(ours)
        probe.measure(0.1)
        yield probe
    finally:
        ours.close()
        process.kill()
        process.join()


def _serve(asked: Connection, target: Target) -> None:
    with (
        WireClient.open(target.junction) as receiver,
        WireClient.open(target.junction) as sender,
        PubSubClient.open(target.pubsub) as subscriber,
        PubSubClient.open(target.pubsub) as publisher,
    ):
        subscriber.subscribe(b"probe")

        def meet(number: int) -> None:
            topic = f"probe-{target.topics[number % len(target.topics)]}"
            receiver.call(":recv!", 1, 60_000, topic)
            sender.call(":send!", 1, 60_000, topic, number)
            assert receiver.reply(ANSWER_S)[2] == number
            assert sender.reply(ANSWER_S)[2] is True

        def hand_out(number: int) -> None:
            publisher.publish(b"probe", b"%d" % number, ANSWER_S)
            assert subscriber.message(ANSWER_S).payload == b"%d" % number

        while True:
            seconds = asked.recv()
            due = time.monotonic()
            late: tuple[list[float], list[float]] = [], []
            for number in range(round(seconds / EVERY_S)):
                for call, times in zip((meet, hand_out), late, strict=True):
                    time.sleep(max(0.0, due - time.monotonic()))
                    call(number)
                    times.append(time.monotonic() - due)
                    due += EVERY_S / 2
            asked.send(Times(*map(_p99, late)))


def _stolen() -> list[float]:
    """Return the seconds for which each processor was another machine's."""
    return [times.steal for times in psutil.cpu_times(percpu=True)]


def _p99(times: list[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]
