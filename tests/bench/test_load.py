"""The load test: what it counts on real nodes, through stalls and restarts, and what it notices on one that errs."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.errors import BenchError
from bench.load.outcome import Outcome
from bench.load.pairs import pair_of
from bench.load.plan import DOUBLED, LOST, TIMED_OUT, UNANSWERED, UNREACHABLE, WRONG, Load
from bench.load.run import run
from bench.servers.skywalker import call_after
from skywalker.embedding import Node, embedded, start
from skywalker.errors import Busy
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.bench.broker import Fault, serving
from tests.helpers import time_factor

AT = 50  # which value the faults fall on


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with embedded(workers=2) as node:
        yield node


def load_on(port: int, prefix: str, **changes: object) -> Load:
    fields = {"pairs": 4, "in_flight": 8, "patience_s": 5 * time_factor(), **changes}
    return Load(port=port, prefix=prefix, **fields)


def run_with(act: Callable[[], None], load: Load, seconds: float, **options: Any) -> Outcome:
    """Put a load on a node, and have something done in another thread once it has run for a second."""
    acting = threading.Thread(target=act)
    outcome = run(load, seconds, progress=lambda _: None if acting.ident else acting.start(), **options)
    acting.join()
    return outcome


def ordered(outcome: Outcome) -> list[float]:
    found = [outcome.percentile_us(percent) for percent in (0, 50, 90, 99, 99.9, 100)]
    return [us for us in found if us is not None]


@pytest.mark.parametrize(
    "changes",
    [{}, {"direct": True}, {"dialect": "first"}, {"value_bytes": 20_000}, {"rate": 500.0}, {"topics": 3}],
    ids=["any", "direct", "first dialect", "large values", "open loop", "shared topics"],
)
def test_a_healthy_node_makes_no_errors(node: Node, changes: dict[str, object]) -> None:
    outcome = run(
        load_on(node.port, f"healthy-{changes}", **changes), 0.2, generators=2, server=node.pid, warm_up_s=0.05
    )
    assert outcome.errors == {}
    assert outcome.seconds == pytest.approx(0.2, abs=0.3 * time_factor())
    assert outcome.rate == pytest.approx(outcome.rendezvous / outcome.seconds)
    assert outcome.total.sent >= outcome.rendezvous > 0
    assert ordered(outcome) == sorted(ordered(outcome))
    assert outcome.latencies.get_total_count() == outcome.total.sent
    assert outcome.server is not None
    assert {process.pid for process in outcome.server.processes} == {node.pid, *node.worker_pids()}
    if outcome.load.topics:
        # On a topic where many wait a send reaches all of them.
        assert outcome.total.received > outcome.total.sent
    else:
        assert abs(outcome.total.received - outcome.total.sent) <= 4 * 8
    if outcome.load.dialect == "first":
        assert outcome.forwarded is None
    elif outcome.load.direct:
        assert outcome.forwarded == outcome.total.strays == 0
    else:
        assert outcome.forwarded


@pytest.mark.alone
def test_an_open_loop_keeps_its_rate(node: Node) -> None:
    outcome = run(load_on(node.port, "rate", rate=400.0, pairs=3), 0.7, generators=3)
    assert outcome.rate == pytest.approx(400, rel=0.05)
    assert outcome.total.behind < 400 * 0.05
    assert not [warning for warning in outcome.warnings() if "due" in warning]


@pytest.mark.alone
def test_a_stall_is_not_hidden_from_an_open_loop() -> None:
    stall = 0.5
    with embedded() as node:
        (worker,) = node.worker_pids()

        def stop_for_a_while() -> None:
            os.kill(worker, signal.SIGSTOP)
            time.sleep(stall)
            os.kill(worker, signal.SIGCONT)

        # One call in flight: a closed loop would see one slow call.
        outcome = run_with(stop_for_a_while, load_on(node.port, "stall", rate=1000.0, pairs=1, in_flight=1), 2.0)
    assert outcome.errors == {}
    longest = outcome.percentile_us(100)
    assert longest is not None
    assert longest >= stall * 1e6 * 0.9
    # Half of the calls that were due during the stall waited for more than half of it.
    over_half = sum(
        step.count_added_in_this_iter_step
        for step in outcome.latencies.get_recorded_iterator()
        if step.value_iterated_to >= stall * 1e6 / 2
    )
    assert over_half >= 0.4 * stall * 1000


@pytest.mark.alone
def test_a_node_that_is_restarted_is_found_again(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        node = start(workers=2)
        stack.callback(node.stop)

        def restart() -> None:
            node.stop()
            stack.callback(start(workers=2, port=node.port, state_dir=str(tmp_path)).stop)

        outcome = run_with(restart, load_on(node.port, "restart", direct=True, rate=200.0), 3.0 + 2.0 * time_factor())
    # What was under way moves elsewhere, as the node asks, and finds nobody there for a while.
    assert outcome.errors[UNREACHABLE] > 0
    assert set(outcome.errors) <= {UNREACHABLE, LOST}
    assert outcome.total.moved >= 2 * outcome.load.pairs
    assert outcome.timeline[-1].rate == pytest.approx(200, rel=0.2)
    # Those who waited for the node to come back say so.
    longest = outcome.percentile_us(100)
    assert longest is not None
    assert longest > 100_000


def only_at(number: int, fault: Fault) -> Fault:
    return lambda reply, count: fault(reply, count) if count == number else reply


def another_topics_value(reply: bytes, number: int) -> bytes:
    method, id, value = values.unpack(reply[2:])
    return wire.frame(values.pack(method), values.pack(id), values.pack(value[:7] + bytes((value[7] ^ 1,)) + value[8:]))


def instead(result: bytes) -> Fault:
    return lambda reply, number: wire.frame(wire.RECV, values.pack(values.unpack(reply[2:])[1]), result)


def busy(reply: bytes, number: int) -> bytes:
    return wire.error_frame(wire.RECV, values.pack(values.unpack(reply[2:])[1]), Busy("too much waits"))


FAULTS: dict[str, tuple[Fault, str]] = {
    "another value": (another_topics_value, WRONG),
    "nil": (instead(wire.NIL), WRONG),
    "no frame": (lambda reply, number: b"\0\x01\xc1" + reply, WRONG),
    "timed out": (instead(wire.TIMED_OUT), TIMED_OUT),
    "busy": (busy, "busy"),
    "nothing": (lambda reply, number: b"", UNANSWERED),
    "twice": (lambda reply, number: reply + reply, DOUBLED),
}


@pytest.mark.parametrize(("name", "rate"), [*((name, 0.0) for name in FAULTS), ("busy", 4000.0)])
def test_what_a_node_does_wrong_is_counted_once(name: str, rate: float) -> None:
    fault, code = FAULTS[name]
    with serving(only_at(AT, fault)) as (broker, port):
        outcome = run(load_on(port, "fault", pairs=2, in_flight=4, rate=rate, patience_s=0.3), 0.15, warm_up_s=0.02)
        assert broker.values_given > AT
    assert outcome.errors == {code: 1}
    assert any("no correct node" in warning for warning in outcome.warnings()) == (code == WRONG)


@pytest.mark.parametrize("dialect", ["current", "first"])
def test_a_call_that_is_issued_again_has_the_time_that_is_left(dialect: str) -> None:
    for script in pair_of(Load(timeout_s=60.0, dialect=dialect), 0, None, None):
        before, after = (values.unpack(frame[2:]) for frame in (script.calls[3], call_after(script.calls[3], 1.5)))
        assert after == [*before[:2], before[2] - 1500, *before[3:]]
        assert values.unpack(call_after(script.calls[3], 1e6)[2:])[2] == 0


def test_a_node_that_is_not_there_or_knows_no_owners_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with serving() as (_, port):
        with pytest.raises(BenchError, match="exit status 1"):
            run(load_on(port, "direct", direct=True), 0.1)
        assert "try it without --direct" in capfd.readouterr().err
    with pytest.raises(BenchError, match="exit status 1"):
        run(load_on(port, "gone"), 0.1)
    assert f"cannot connect to 127.0.0.1:{port}" in capfd.readouterr().err


@pytest.mark.parametrize("pairs", [1, 7, 16])
@pytest.mark.parametrize("topics", [0, 1, 5, 7])
def test_generators_share_a_load_and_no_topic(pairs: int, topics: int) -> None:
    load = Load(pairs=pairs, in_flight=8, topics=topics, rate=100.0)
    for count in range(1, 9):
        parts = load.parts(count)
        assert sorted(pair for part in parts for pair in part.own_pairs()) == list(range(pairs))
        assert all(part.own_pairs() for part in parts)
        used = [{topic for pair in part.own_pairs() for topic in part.topics_of(pair)} for part in parts]
        assert set().union(*used) == set(range(load.topic_count))
        assert sum(map(len, used)) == load.topic_count
        assert sum(part.rate for part in parts) == pytest.approx(100)
