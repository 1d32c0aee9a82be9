"""Micro benchmarks of the junction and of deadlines: what a rendezvous costs without any I/O."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from skywalker.deadlines import Deadlines
from skywalker.junction import Call, Junction

TOPIC = b"\xacorders/eu/17"
VALUE = b"\xc4\x10" + bytes(16)
BATCH = 1000
"""Calls of one round: enough that the loop around them does not count."""


class PlainCall(Call):
    """A send whose caller is not told anything but by `answered`, or a listener that takes any value."""

    __slots__ = ()

    def give(self, send: Call) -> bool:
        return True

    def met(self) -> None:
        pass


def wait_to_send(junction: Junction, since: float) -> PlainCall:
    send = PlainCall(TOPIC, since, VALUE, None)
    if not junction.send(send):
        junction.wait(send)
    return send


def wait_to_listen(junction: Junction, since: float, group: bytes | None) -> PlainCall:
    listener = PlainCall(TOPIC, since, None, group)
    if not junction.listen(listener):
        junction.wait(listener)
    return listener


groups = pytest.mark.parametrize("group", [None, b"\xa4pool"], ids=["receiver", "taker"])


@groups
def test_a_send_meets_a_listener_that_waits(benchmark: BenchmarkFixture, group: bytes | None) -> None:
    junction = Junction()

    def meet() -> PlainCall:
        for number in range(BATCH):
            wait_to_listen(junction, number, group)
            send = wait_to_send(junction, number)
            junction.confirm(send)
        return send

    assert benchmark(meet).answered
    assert len(junction) == 0


@groups
def test_a_listener_meets_a_send_that_waits(benchmark: BenchmarkFixture, group: bytes | None) -> None:
    junction = Junction()

    def meet() -> PlainCall:
        for number in range(BATCH):
            send = wait_to_send(junction, number)
            wait_to_listen(junction, number, group)
            junction.confirm(send)
        return send

    assert benchmark(meet).answered
    assert len(junction) == 0


def test_a_line_of_senders_is_served_by_a_pool(benchmark: BenchmarkFixture) -> None:
    junction = Junction()

    def serve() -> None:
        for number in range(BATCH):
            wait_to_send(junction, number)
        for number in range(BATCH):
            wait_to_listen(junction, number, b"\xa4pool")

    benchmark(serve)
    assert len(junction) == 0


def test_one_send_reaches_a_crowd(benchmark: BenchmarkFixture) -> None:
    junction = Junction()

    def reach() -> PlainCall:
        for number in range(BATCH):
            wait_to_listen(junction, number, None)
        return wait_to_send(junction, BATCH)

    assert benchmark(reach).offers == BATCH
    assert len(junction) == 0


def test_calls_that_time_out_leave_the_middle_of_a_line(benchmark: BenchmarkFixture) -> None:
    junction = Junction()

    def come_and_go() -> None:
        sends = [wait_to_send(junction, number) for number in range(BATCH)]
        for send in sends[::2] + sends[1::2]:
            junction.withdraw(send)

    benchmark(come_and_go)
    assert len(junction) == 0


@pytest.mark.parametrize("waiting", [0, 100_000])
def test_a_call_that_completes_adds_and_discards_its_deadline(benchmark: BenchmarkFixture, waiting: int) -> None:
    deadlines = Deadlines()
    for number in range(waiting):
        deadlines.add(-number, 10.0 + number * 0.001)
    times = [30.0 + number * 0.0001 for number in range(BATCH)]

    def complete() -> None:
        for number, at in enumerate(times, 1):
            deadlines.add(number, at)
            deadlines.discard(number, at)

    benchmark(complete)
    assert len(deadlines) == waiting
