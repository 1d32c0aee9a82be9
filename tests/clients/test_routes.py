"""Which connections a client wants, and when: decisions only, with a clock that the test turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.clients.line import Line
from skywalker.clients.routes import (
    DRAINED_S,
    LATELY_S,
    MAX_DIRECT,
    REDIAL_S,
    RETRY_S,
    WANTED_AFTER_CALLS,
    Dial,
    Greeting,
    Node,
    Routes,
    View,
)
from skywalker.clients.sockets import numeric
from skywalker.dialling import source_port
from skywalker.members import Member, Place, PlaceRing, Share, Snapshot
from skywalker.ring import random_tokens, slices

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
    greet(routes, answer(worker, **changes))
    return routes


def greet(routes: Routes, told: dict[str, Any]) -> list[Line]:
    """Have the main line be greeted by a node that is in no cluster; return the lines that are of no use any more."""
    greeting = Greeting.parse(told)
    gone = routes.adopt(None if greeting is None else View.alone(greeting), T0)
    if greeting is not None:
        routes.main_greeted(greeting.place, T0)
    return gone


def at(worker: int) -> Place:
    return Place("n", worker)


def wanted(worker: int | None, workers: int = 4) -> Dial:
    """Return the connection to a worker of the node that is wanted."""
    return Dial(worker, workers, "n")


def answered(routes: Routes, dial: Dial, told: Any, now: float) -> tuple[Line, Place | None]:
    """Have a connection that was wanted be made and greeted; return its line and what it is kept for."""
    made = line()
    routes.opened(dial, made)
    return made, routes.greeted(made, told, now)


def meet(routes: Routes, worker: int, now: float = T0) -> Line | None:
    """Have the connection that is wanted meet this worker; return its line if it is kept."""
    dial = routes.dial(now)
    assert dial is not None
    made, place = answered(routes, dial, answer(worker), now)
    if place is None:
        return None
    made.takes_calls = True
    return made


@given(st.integers(1, 256), st.data(), st.floats(0, 1, exclude_max=True))
def test_a_source_port_is_one_that_steers_and_that_connect_does_not_prefer(
    workers: int, data: st.DataObject, luck: float
) -> None:
    worker = data.draw(st.integers(0, workers - 1))
    port = source_port(worker, workers, luck)
    assert (port >> 1) % workers == worker
    assert 32_768 < port < 61_000
    assert port % 2 == 1


@pytest.mark.parametrize("host", ["fe80::1%" + "z" * 70, "a..b"])
def test_an_address_that_a_node_tells_and_that_is_of_no_use_cannot_be_had_like_any_other(host: str) -> None:
    with pytest.raises(OSError, match="no numeric address"):
        numeric(Address(host, 1))


def test_without_steering_we_dial_until_all_are_met_with_a_limit() -> None:
    routes = greeted(steering=False)
    dials = 0
    while dial := routes.dial(T0):
        assert dial.worker is None
        dials += 1
        answered(routes, dial, answer(0), T0)
    assert dials == 2 * 4 + 8
    assert routes.dial_at == T0 + RETRY_S
    assert meet(routes, 1, T0 + RETRY_S) is not None


def test_a_lost_line_is_made_anew_soon_but_not_again_and_again() -> None:
    routes = greeted(worker=0, workers=2, tokens=slices(TOKENS, 2))
    now = T0

    def rejoin() -> Line:
        assert routes.dial(now) == wanted(1, 2)
        made, place = answered(routes, wanted(1, 2), answer(1, 2), now)
        assert place == at(1)
        made.takes_calls = True
        return made

    first = rejoin()
    routes.lost(first, now)
    assert routes.line(at(1)) is routes.line(None)
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


# In a cluster.


def cluster(nodes: int, workers: int) -> View:
    members = [
        Member(f"m{number}", "", Address(f"10.0.0.{number}", 1), workers, True, tuple(random_tokens()))
        for number in range(nodes)
    ]
    return View.of(Snapshot(members), "v")


def in_cluster(nodes: int = 3, workers: int = 4) -> tuple[Routes, View]:
    """Return the routes of a client whose main line ends at m0."""
    routes = Routes(taking(), direct=True)
    view = cluster(nodes, workers)
    routes.adopt(view, T0)
    routes.main_greeted(Place("m0", 0), T0)
    return routes, view


def call(routes: Routes, place: Place, count: int = WANTED_AFTER_CALLS, now: float = T0) -> None:
    """Have the main line take calls for a place."""
    for _ in range(count):
        routes.called(place, b"\x01", now)


def join(routes: Routes, view: View, place: Place, now: float = T0) -> Line:
    """Have a place called until there is a line to it; return that."""
    call(routes, place, now=now)
    dial = routes.dial(now)
    assert dial is not None
    made = line()
    routes.opened(dial, made)
    tokens = {worker: [worker] for worker in range(view.nodes[place.node].workers)}
    told = {"node": place.node, "worker": place.worker, "workers": len(tokens), "tokens": tokens, "ring": "v"}
    assert routes.greeted(made, told, now) == place
    made.takes_calls = True
    return made


def test_in_a_cluster_only_what_is_called_lately_and_often_is_dialled_at_its_own_address() -> None:
    routes, _ = in_cluster()
    assert routes.dial(T0) is None
    call(routes, Place("m1", 2), WANTED_AFTER_CALLS - 1)
    assert routes.dial(T0) is None
    call(routes, Place("m1", 2), WANTED_AFTER_CALLS - 1, now=T0 + LATELY_S + 1)
    assert routes.dial(T0 + LATELY_S + 1) is None
    call(routes, Place("m1", 2), 1, now=T0 + LATELY_S + 1)
    assert routes.dial(T0 + LATELY_S + 1) == Dial(2, 4, "m1", Address("10.0.0.1", 1))


def test_there_are_never_more_lines_than_allowed_and_an_idle_one_makes_room() -> None:
    workers = 16
    routes, view = in_cluster(nodes=MAX_DIRECT // workers + 2, workers=workers)
    places = sorted(place for place in view.owners if place.node != "m0")
    lines = {place: join(routes, view, place) for place in places[:MAX_DIRECT]}
    for each in lines.values():
        each.heard(T0)
    late = places[MAX_DIRECT]
    call(routes, late)
    assert routes.dial(T0) is None
    now = routes.dial_at
    assert now > T0
    for place in places[1:MAX_DIRECT]:
        lines[place].heard(now)
    call(routes, late, now=now)
    dial = routes.dial(now)
    assert dial is not None
    assert dial.node == late.node
    assert "another is wanted" in lines[places[0]].hang_up
    assert not any(lines[place].hang_up for place in places[1:MAX_DIRECT])


def test_who_owns_next_to_nothing_is_not_searched_for_long() -> None:
    routes = Routes(taking(), direct=True)
    ring = PlaceRing({0: Share("m0", 0, 1), -(2**63): Share("m1", 0, 1), -(2**63) + 1: Share("m1", 1, 1)})
    nodes = {"m0": Node(1, False), "m1": Node(2, False)}
    routes.adopt(View("v", nodes, ring, frozenset(ring.shares())), T0)
    assert routes.barrier_topic(Place("m1", 0)) is None


@pytest.mark.parametrize(
    "told",
    [
        None, True, {}, [1], {"node": "n"}, answer(4), answer(-1), answer("0"), answer(0, node=5),  # type: ignore[arg-type]  # wrong on purpose
        answer(0, tokens={0: [1]}), answer(0, tokens=[[1]]), answer(0, tokens={n: [7] for n in range(4)}),
        answer(0, tokens={n: ["x", n] for n in range(4)}), answer(0, tokens={n: [] for n in range(4)}),
        answer(0, tokens={n: n for n in range(4)}), answer(0, tokens={n: [str(n)] for n in range(4)}),
        answer(0, workers=0, tokens={}),
    ],
    ids=repr,
)  # fmt: skip
def test_an_answer_of_something_else_leaves_all_with_the_main_line(told: Any) -> None:
    assert Greeting.parse(told) is None
    routes = Routes(taking(), direct=True)
    greet(routes, told)
    assert routes.dial(T0) is None
    assert routes.owner(b"\x01") is None
