"""The generator: it counts what was answered, and anything but the right answers ends it."""

import contextlib
import os
import time

import pytest

from bench import cpu, lanes
from bench.connections import Connections
from bench.errors import BenchError, Stalled, Unreachable, WrongReply
from bench.generator import work
from bench.measure import measure, percentile
from bench.plan import Mode, Plan, Tally, Window
from skywalker.errors import Busy
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.bench.broker import Fault, serving
from tests.helpers import time_factor

AT = 100  # which value the faults fall on


def plan_for(port: int, mode: Mode, **changes: object) -> Plan:
    in_flight = 8 if mode == Mode.CLOSED_LOOP else 1
    fields = {"pairs": 3, "in_flight": in_flight, "patience_s": 5 * time_factor(), **changes}
    return Plan(mode, "127.0.0.1", port, "test", **fields)


def generate(plan: Plan, seconds: float = 0.3) -> Tally:
    with Connections() as connections:
        connections.open(plan)
        start = time.monotonic() + 0.05
        return work(plan, connections, Window(start, start + seconds))


@pytest.mark.parametrize("mode", Mode)
def test_totals_are_those_of_the_node(mode: Mode) -> None:
    with serving() as (broker, port):
        tally = generate(plan_for(port, mode))
        assert tally.total_sent == tally.total_received == broker.values_given
    assert 0 < tally.sent <= tally.total_sent
    assert 0 < tally.received <= tally.total_received
    assert len(tally.latencies_us) == (tally.sent if mode == Mode.LOCKSTEP else 0)
    assert all(0 < latency < tally.seconds * 1e6 for latency in tally.latencies_us)


def test_values_that_fill_every_buffer_are_all_counted() -> None:
    with serving() as (broker, port):
        tally = generate(plan_for(port, Mode.CLOSED_LOOP, pairs=2, in_flight=200, value_bytes=60_000), 0.5)
        assert tally.total_sent == tally.total_received == broker.values_given
    assert tally.total_sent >= 2 * 200


def only_at(number: int, fault: Fault) -> Fault:
    return lambda reply, count: fault(reply, count) if count == number else reply


def another_pairs_value(reply: bytes, number: int) -> bytes:
    method, id, value = values.unpack(reply[2:])
    other = value[:3] + bytes((value[3] ^ 1,)) + value[4:]
    return wire.reply(values.pack(method), values.pack(id), values.pack(other))


def another_lanes_id(reply: bytes, number: int) -> bytes:
    return reply.replace(b"\xcd\x01", b"\xcd\x02")


def a_lane_that_is_none(reply: bytes, number: int) -> bytes:
    at = reply.index(b"\xcd\x01") + 2
    return reply[:at] + b"\xff" + reply[at + 1 :]


def an_error(reply: bytes, number: int) -> bytes:
    return wire.error_frame(wire.RECV, values.pack(256), Busy("too much waits"))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("fault", [another_pairs_value, another_lanes_id, a_lane_that_is_none, an_error])
def test_a_reply_that_is_not_the_right_one_ends_it(mode: Mode, fault: Fault) -> None:
    with serving(only_at(AT, fault)) as (_, port), pytest.raises(WrongReply):
        generate(plan_for(port, mode), 10)


@pytest.mark.parametrize("mode", Mode)
def test_a_value_that_comes_twice_ends_it(mode: Mode) -> None:
    with serving(only_at(AT, lambda reply, _: reply + reply)) as (_, port), pytest.raises(WrongReply):
        generate(plan_for(port, mode))


@pytest.mark.parametrize("mode", Mode)
def test_a_value_that_never_comes_ends_it_when_patience_does(mode: Mode) -> None:
    with serving(only_at(AT, lambda _reply, _: b"")) as (_, port), pytest.raises(Stalled):
        generate(plan_for(port, mode, patience_s=0.5))


@pytest.mark.parametrize("mode", Mode)
def test_a_timeout_shorter_than_any_value_is_told_when_patience_ends(mode: Mode) -> None:
    timed_out = wire.reply(wire.RECV, values.pack(256), wire.TIMED_OUT)
    with (
        serving(only_at(AT, lambda _reply, _: timed_out)) as (_, port),
        pytest.raises((Stalled, WrongReply), match="recv!"),
    ):
        generate(plan_for(port, mode, pairs=1, in_flight=1, patience_s=0.5))


@pytest.mark.parametrize("mode", Mode)
def test_a_node_that_goes_away_ends_it(mode: Mode) -> None:
    with contextlib.ExitStack() as node:
        _, port = node.enter_context(serving())
        with Connections() as connections:
            plan = plan_for(port, mode)
            connections.open(plan)
            node.close()
            start = time.monotonic()
            with pytest.raises(Unreachable):
                work(plan, connections, Window(start, start + 10))


def test_a_generator_process_says_what_it_could_not_reach(capfd: pytest.CaptureFixture[str]) -> None:
    with serving() as (_, port):
        pass
    with pytest.raises(BenchError, match="exit status 1"):
        measure(os.getpid(), plan_for(port, Mode.CLOSED_LOOP), 0.1)
    assert f"cannot connect to 127.0.0.1:{port}" in capfd.readouterr().err


def test_generators_share_a_plan_without_gap_or_overlap() -> None:
    plan = plan_for(1, Mode.CLOSED_LOOP, pairs=10, first_pair=5)
    for parts in range(1, 11):
        shares = [plan.share(part, parts) for part in range(parts)]
        numbers = [number for each in shares for number in range(each.first_pair, each.first_pair + each.pairs)]
        assert numbers == list(range(5, 15))
        assert all(each.pairs for each in shares)


def test_samples_of_several_generators_add_up() -> None:
    with serving() as (broker, port):
        # The broker is part of this process.
        sample = measure(os.getpid(), plan_for(port, Mode.CLOSED_LOOP), 0.3, generators=2)
        assert sample.sent == sample.received == broker.values_given
    assert sample.rate == pytest.approx(sample.rendezvous / sample.seconds, rel=0.2)


def test_no_two_lanes_share_a_topic_or_a_value() -> None:
    pairs = [lanes.Pair.encode("test", number, lanes.MAX_LANES, 16) for number in range(3)]
    topics = {values.unpack(call[2:])[3] for pair in pairs for call in pair.receiver.calls}
    sent = {tuple(values.unpack(call[2:])[3:]) for pair in pairs for call in pair.sender.calls}
    assert len(topics) == len({value for _, value in sent}) == 3 * lanes.MAX_LANES
    assert {topic for topic, _ in sent} == topics
    assert {len(value) for _, value in sent} == {16}


@pytest.mark.parametrize(("in_flight", "value_bytes"), [(0, 16), (257, 16), (1, 7)])
def test_lanes_that_could_not_be_told_apart_are_refused(in_flight: int, value_bytes: int) -> None:
    with pytest.raises(ValueError, match=r"allowed are 1 to 256|the shortest are of 8"):
        lanes.Pair.encode("test", 0, in_flight, value_bytes)


def test_cpu_time_counts_what_this_process_burns() -> None:
    before = cpu.seconds(os.getpid())
    started = time.process_time()
    while time.process_time() - started < 0.1:
        pass
    assert 0.08 <= cpu.seconds(os.getpid()) - before <= 1.0


def test_percentiles_are_measured_values() -> None:
    ordered = [float(number) for number in range(1, 101)]
    assert percentile(ordered, 50) == 50
    assert percentile(ordered, 99) == 99
    assert percentile(ordered, 100) == 100
    assert percentile([7.0], 99) == 7
