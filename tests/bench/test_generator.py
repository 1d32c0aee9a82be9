"""A strict load: it counts what was answered, and anything but the right answers ends it."""

import contextlib
import time

import pytest

from bench.errors import Stalled, Unreachable, WrongReply
from bench.figures.samples import Mode
from bench.load.generator import Work
from bench.load.pairs import pair_of
from bench.load.plan import Load, Window
from bench.servers.peer import MAX_LANES
from skywalker.errors import Busy
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.bench.broker import Fault, serving
from tests.bench.works import work
from tests.helpers import time_factor

AT = 100  # which value the faults fall on


def load_for(port: int, mode: Mode, **changes: object) -> Load:
    lockstep = mode == Mode.LOCKSTEP
    fields = {"pairs": 3, "in_flight": 1 if lockstep else 8, "patience_s": 5 * time_factor(), **changes}
    return Load("127.0.0.1", port, "test", in_turn=lockstep, timed=lockstep, strict=True, **fields)


@pytest.mark.parametrize("mode", Mode)
def test_totals_are_those_of_the_node(mode: Mode) -> None:
    with serving() as (broker, port):
        done = work(load_for(port, mode))
        assert done.sent == done.received == broker.values_given
    assert 0 < done.counts.sent <= done.sent
    assert 0 < done.counts.received <= done.received
    assert sum(done.counts.latencies_us.values()) == (done.counts.sent if mode == Mode.LOCKSTEP else 0)
    assert all(0 < latency < done.counts.seconds * 1e6 for latency in done.counts.latencies_us)


def only_at(number: int, fault: Fault) -> Fault:
    return lambda reply, count: fault(reply, count) if count == number else reply


def another_pairs_value(reply: bytes, number: int) -> bytes:
    method, id, value = values.unpack(reply[2:])
    other = value[:3] + bytes((value[3] ^ 1,)) + value[4:]
    return wire.reply(values.pack(method), values.pack(id), values.pack(other))


def an_error(reply: bytes, number: int) -> bytes:
    return wire.error_frame(wire.RECV, values.pack(256), Busy("too much waits"))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("fault", [another_pairs_value, an_error])
def test_a_reply_that_is_not_the_right_one_ends_it(mode: Mode, fault: Fault) -> None:
    with serving(only_at(AT, fault)) as (_, port), pytest.raises(WrongReply):
        work(load_for(port, mode), 10)


@pytest.mark.parametrize("mode", Mode)
def test_a_value_that_never_comes_ends_it_when_patience_does(mode: Mode) -> None:
    with serving(only_at(AT, lambda _reply, _: b"")) as (_, port), pytest.raises(Stalled):
        work(load_for(port, mode, patience_s=0.5))


@pytest.mark.parametrize("mode", Mode)
def test_a_node_that_goes_away_ends_it(mode: Mode) -> None:
    with contextlib.ExitStack() as node:
        _, port = node.enter_context(serving())
        with Work(load_for(port, mode), lambda counts: None) as doing:
            doing.workload.connect()
            node.close()
            start = time.monotonic()
            with pytest.raises(Unreachable):
                doing.run(Window(start, start + 10))


def test_no_two_lanes_share_a_topic_or_a_value() -> None:
    load = Load(prefix="test", pairs=3, in_flight=MAX_LANES)
    pairs = [pair_of(load, number, None, None) for number in range(3)]
    topics = {values.unpack(call[2:])[3] for pair in pairs for call in pair.receiver.calls}
    sent = {tuple(values.unpack(call[2:])[3:]) for pair in pairs for call in pair.sender.calls}
    assert len(topics) == len({value for _, value in sent}) == 3 * MAX_LANES
    assert {topic for topic, _ in sent} == topics
    assert {len(value) for _, value in sent} == {16}
