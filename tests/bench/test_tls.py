"""The benchmark of TLS and access control, on real nodes: that they are what it says they are."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest

from bench.connections import Connections, greeting
from bench.errors import BenchError, Unreachable
from bench.generator import work
from bench.lockstep import Caller
from bench.measure import measure
from bench.plan import Plan, Window
from bench.secure import Secure
from bench.tls import KINDS, LOADS, WORK, Kind, connections_per_core, nodes, table
from tests.helpers import time_factor

Reached = dict[Kind, tuple[int, Plan]]


@pytest.fixture(scope="module")
def reached() -> Iterator[Reached]:
    with nodes() as reached:
        yield reached


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_node_of_each_kind_does_the_work(reached: Reached, kind: Kind) -> None:
    pid, plan = reached[kind]
    # Values of several records, and more of them than a socket has room for.
    plan = dataclasses.replace(plan, pairs=2, in_flight=64, value_bytes=40_000, patience_s=5 * time_factor())
    with Connections() as connections:
        connections.open(plan)
        start = time.monotonic()
        tally = work(plan, connections, Window(start, start + 0.2))
    assert tally.total_sent == tally.total_received >= 2 * 64
    assert connections_per_core(pid, plan, 0.1) > 0


def test_a_generator_in_a_process_of_its_own_is_told_everything(reached: Reached) -> None:
    pid, plan = reached[Kind(True, True)]
    sample = measure(pid, dataclasses.replace(plan, pairs=2, in_flight=8), 0.5 * time_factor())
    assert sample.sent == sample.received > 0
    assert sample.rate_per_core > 0


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_node_speaks_tls_and_wants_a_token_if_that_is_its_kind(reached: Reached, kind: Kind) -> None:
    _, plan = reached[kind]
    with Connections() as connections:
        link = connections.connect(plan, greeting())
        assert isinstance(link, Secure) == kind.tls
    assert bool(plan.token) == kind.access
    if kind.access:
        with pytest.raises(Unreachable, match="unauthorized"), Connections() as connections:
            connections.open(dataclasses.replace(plan, token="skw_wrong"))
    if kind.tls:
        with pytest.raises(Unreachable), Connections() as connections:
            connections.connect(dataclasses.replace(plan, ca=""), greeting())


def test_a_node_that_speaks_no_tls_is_not_taken_for_one_that_does(reached: Reached) -> None:
    (_, plain), (_, secured) = reached[Kind(False, False)], reached[Kind(True, False)]
    with pytest.raises(Unreachable, match="TLS"), Connections() as connections:
        connections.open(dataclasses.replace(plain, ca=secured.ca, patience_s=0.3))  # it waits for half a frame


def test_what_is_not_measured_over_tls_says_so(reached: Reached) -> None:
    _, plan = reached[Kind(True, False)]
    with Connections() as connections:
        connections.open(plan)
        with pytest.raises(BenchError, match="TLS"):
            Caller(*connections.receivers[0], plan.patience_s)


def test_the_table_has_a_place_for_everything_and_compares_within_a_run() -> None:
    samples = {(kind, what): [1000.0, 9000.0, 3000.0] for kind in KINDS for what in WORK}
    samples[KINDS[-1], LOADS[0]] = [500.0, 4500.0, 1500.0]
    head, _, *rows = table(samples)
    assert [row.count("|") for row in rows] == [head.count("|")] * len(KINDS)
    assert rows[0].startswith("| plain | 3.0 k (1.00) |")
    assert rows[-1].startswith("| TLS 1.3, access by token | 1.5 k (0.50) | 3.0 k (1.00) |")
