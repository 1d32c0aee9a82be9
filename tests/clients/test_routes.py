"""Which connections a client wants, and when: decisions only, with a clock that the test turns."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.clients.line import Line
from skywalker.clients.routes import DRAINED_S, REDIAL_S, RETRY_S, Dial, Greeting, Routes, source_port
from skywalker.ring import Ring, random_tokens, slices, token_of

T0 = 1000.0
TOKENS = random_tokens()


def answer(worker: int, workers: int = 4, **changes: Any) -> dict[str, Any]:
    """Return what a worker answers to :hello."""
    told = {"node": "n", "worker": worker, "workers": workers, "tokens": slices(TOKENS, workers), "steering": True}
    return {**told, **changes}


def line() -> Line:
    return Line([])


def taking() -> Line:
    made = line()
    made.takes_calls = True
    return made


def greeted(worker: int = 0, **changes: Any) -> Routes:
    routes = Routes(taking(), direct=True)
    routes.main_greeted(answer(worker, **changes), T0)
    return routes


def meet(routes: Routes, worker: int, now: float = T0) -> Line | None:
    """Have the connection that is wanted meet this worker; return its line if it is kept."""
    assert routes.dial(now) is not None
    made = line()
    routes.candidate = made
    if routes.greeted(made, answer(worker), now) is None:
        return None
    made.takes_calls = True
    return made


@given(st.integers(1, 256), st.data(), st.floats(0, 1, exclude_max=True))
def test_a_source_port_is_one_that_steers_and_that_connect_does_not_prefer(
    workers: int, data: st.DataObject, luck: float
) -> None:
    worker = data.draw(st.integers(0, workers - 1))
    port = source_port(Dial(worker, workers), luck)
    assert (port >> 1) % workers == worker
    assert 32_768 < port < 61_000
    assert port % 2 == 1


def test_source_ports_are_many() -> None:
    assert len({source_port(Dial(3, 4), luck / 10_000) for luck in range(10_000)}) > 3_000


def test_with_steering_each_worker_that_is_missing_is_dialled_once() -> None:
    routes = greeted(worker=2)
    for worker in (0, 1, 3):
        assert routes.dial(T0) == Dial(worker, 4)
        assert routes.dial(T0) is None, "one attempt at a time"
        routes.greeted(line(), answer(worker), T0)
    assert routes.dial(T0) is None
    assert routes.dial_at == math.inf


def test_without_steering_we_dial_until_all_are_met_with_a_limit() -> None:
    routes = greeted(steering=False)
    dials = 0
    while wanted := routes.dial(T0):
        assert wanted.worker is None
        dials += 1
        routes.greeted(line(), answer(0), T0)
    assert dials == 2 * 4 + 8
    assert routes.dial_at == T0 + RETRY_S
    assert meet(routes, 1, T0 + RETRY_S) is not None


def test_a_router_between_that_changes_ports_is_noticed() -> None:
    routes = greeted()
    assert meet(routes, 0) is None
    assert routes.dial(T0) == Dial(None, 4)


def test_what_was_met_is_kept_when_the_rest_cannot_be_had() -> None:
    routes = greeted()
    second = meet(routes, 1)
    assert second is not None
    assert routes.dial(T0) is not None
    routes.failed(T0)
    assert routes.dial(T0 + RETRY_S - 1) is None
    assert routes.line(1) is second
    assert routes.line(2) is routes.line(None)
    assert routes.dial(T0 + RETRY_S) == Dial(2, 4)


def test_topics_are_routed_as_the_node_routes_them() -> None:
    routes = greeted()
    ring = Ring(slices(TOKENS, 4))
    for topic in (b"\x01", b"\xa3foo", b"\xc0"):
        assert routes.owner(topic) == ring.owner(token_of(topic))


def test_a_node_with_one_worker_has_nobody_to_be_dialled() -> None:
    routes = greeted(workers=1, tokens=slices(TOKENS, 1))
    assert routes.dial(T0 + 10 * RETRY_S) is None
    assert routes.owner(b"\x01") is None


def test_a_client_that_wants_no_direct_lines_gets_none() -> None:
    routes = Routes(taking(), direct=False)
    assert routes.dial(T0) is None
    routes.main_greeted(answer(0), T0)
    assert routes.dial(T0) is None
    assert routes.owner(b"\x01") is None


def test_a_worker_without_tokens_is_not_dialled() -> None:
    tokens = {0: TOKENS[:10], 1: [], 2: TOKENS[10:]}
    routes = greeted(workers=3, tokens=tokens)
    assert routes.dial(T0) == Dial(2, 3)
    routes.greeted(line(), answer(2, workers=3, tokens=tokens), T0)
    assert routes.dial(T0) is None


def test_a_lost_line_is_made_anew_soon_but_not_again_and_again() -> None:
    routes = greeted(worker=0, workers=2, tokens=slices(TOKENS, 2))
    now = T0

    def rejoin() -> Line:
        assert routes.dial(now) == Dial(1, 2)
        made = taking()
        assert routes.greeted(made, answer(1, 2), now) == 1
        return made

    first = rejoin()
    routes.lost(first, now)
    assert routes.line(1) is routes.line(None)
    assert routes.dial_at == now + REDIAL_S
    now += REDIAL_S
    second = rejoin()
    routes.lost(second, now)
    assert routes.dial_at == now + RETRY_S
    now += RETRY_S
    routes.lost(rejoin(), now)
    assert routes.dial_at == now + REDIAL_S


def test_a_worker_that_drained_gets_time_to_be_replaced() -> None:
    routes = greeted()
    left = meet(routes, 1)
    assert left is not None
    left.takes_calls, left.leaving = False, set()
    routes.lost(left, T0)
    assert routes.dial_at == T0 + DRAINED_S


def test_a_line_that_was_never_joined_is_not_dialled_soon() -> None:
    routes = greeted()
    made = meet(routes, 1)
    assert made is not None
    made.takes_calls = False
    routes.lost(made, T0)
    assert routes.dial_at == T0 + RETRY_S


def test_another_node_behind_the_main_line_makes_the_direct_ones_useless() -> None:
    routes = greeted(worker=0)
    lines = [meet(routes, worker) for worker in (1, 2, 3)]
    new = taking()
    routes.main_changed(new, T0)
    assert routes.main_greeted(answer(2), T0) == [], "the same node"
    assert routes.dial(T0) == Dial(0, 4)
    assert routes.main_greeted(answer(0, node="another"), T0) == lines
    assert routes.line(1) is new


def test_a_direct_line_to_another_node_is_not_kept() -> None:
    routes = greeted()
    assert routes.dial(T0) is not None
    assert routes.greeted(line(), answer(1, node="another"), T0) is None
    assert routes.dial_at == T0 + RETRY_S


@pytest.mark.parametrize(
    "told",
    [
        None, True, {}, [1], {"node": "n"}, answer(4), answer(-1), answer("0"), answer(0, node=5),  # type: ignore[arg-type]  # wrong on purpose
        answer(0, tokens={0: [1]}), answer(0, tokens=[[1]]), answer(0, tokens={n: [7] for n in range(4)}),
        answer(0, tokens={n: ["x", n] for n in range(4)}), answer(0, tokens={n: [] for n in range(4)}),
        answer(0, tokens={n: n for n in range(4)}), answer(0, workers=0, tokens={}),
    ],
    ids=repr,
)  # fmt: skip
def test_an_answer_of_something_else_leaves_all_with_the_main_line(told: Any) -> None:
    assert Greeting.parse(told) is None
    routes = Routes(taking(), direct=True)
    routes.main_greeted(told, T0)
    assert routes.dial(T0) is None
    assert routes.owner(b"\x01") is None
