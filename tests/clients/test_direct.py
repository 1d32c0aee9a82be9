"""Direct connections of both colours of client, at real nodes with four workers and at a scripted one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import skywalker
from skywalker.clients.routes import DIRECT_AFTER_CALLS
from skywalker.embedding import Node
from skywalker.ring import token_of, worker_of
from skywalker.wire import values
from tests.clients.driving import Place, background
from tests.clients.proxy import Proxy
from tests.clients.spying import SOON, Spy, connections, meet, meet_until_direct
from tests.helpers import eventually, time_factor

WORKERS = 4

MakePlace = Callable[[str | None], Place]

BLOCKING = pytest.mark.parametrize("make_place", ["blocking"], indirect=True)
"""Simulated programs show what becomes of the client for asyncio."""


@pytest.fixture
def own_node() -> Iterator[Node]:
    """A node that a test may harm."""
    with skywalker.embedded(workers=WORKERS) as node:
        yield node


def test_with_four_workers_nothing_is_forwarded_once_the_workers_are_met(
    make_place: MakePlace, node: Callable[[int], Node], spy: Spy, topic: str
) -> None:
    at = node(WORKERS)
    before = connections(at.port)
    junction = make_place(at.address).join()
    meet_until_direct(junction, spy, topic)
    assert connections(at.port) == before + WORKERS
    spy.forget()
    for number in range(100):
        meet(junction, [topic, "again", number])
    assert (spy.right, spy.forwarded) == (200, 0)


@BLOCKING
def test_with_ipv6_too(make_place: MakePlace, spy: Spy, topic: str) -> None:
    with skywalker.embedded(workers=2, bind="::1") as node:
        junction = make_place(node.address).join(name="six")
        meet_until_direct(junction, spy, topic)
        assert connections(node.port) == 2


@pytest.mark.parametrize("options", [{"direct": False, "name": "me"}, {}], ids=str)
def test_a_client_that_does_not_want_them_or_asks_little_has_one_connection(
    make_place: MakePlace, node: Callable[[int], Node], topic: str, options: dict[str, Any]
) -> None:
    at = node(WORKERS)
    before = connections(at.port)
    junction = make_place(at.address).join(**options)
    for number in range(100 if options else DIRECT_AFTER_CALLS // 2 - 2):  # it asks a little by itself
        meet(junction, [topic, number])
        assert number % 10 or connections(at.port) == before + 1


def test_behind_a_router_that_changes_ports_workers_are_met_by_redialling(
    make_place: MakePlace, node: Callable[[int], Node], spy: Spy, topic: str
) -> None:
    at = node(WORKERS)
    with Proxy(at.host, at.port) as proxy:
        junction = make_place(proxy.address).join(name="me")
        port = int(proxy.address.split(":")[1])

        def two_more() -> bool:
            for number in range(24):
                meet(junction, [topic, number])
            return connections(port) >= 3

        # With 16 dials at random the chance to miss one of three is 3 %, so what is certain is less.
        eventually(two_more, within=SOON)
        assert proxy.accepted <= 1 + 2 * WORKERS + 8
        spy.forget()
        for number in range(24):
            meet(junction, [topic, number])
        assert spy.right > 0


@BLOCKING
def test_a_worker_that_hangs_holds_up_no_call_of_the_others(
    make_place: MakePlace, own_node: Node, spy: Spy, topic: str
) -> None:
    junction = make_place(own_node.address).join()
    meet_until_direct(junction, spy, topic)
    with own_node.connect(direct=False) as other:
        workers = other.hello()["workers"]
    names = {worker_of(token_of(values.pack(name)), workers): name for name in (f"{topic}/{n}" for n in range(200))}
    hung, pid = WORKERS - 1, own_node.worker_pids()[WORKERS - 1]
    os.kill(pid, signal.SIGSTOP)
    try:

        def clog() -> None:
            with contextlib.suppress(skywalker.TimedOut):
                for _ in range(2_000):
                    junction.begin("send", names[hung], b"x" * 60_000, timeout=SOON)

        clogging = background(clog)
        healthy = [name for worker, name in names.items() if worker != hung]
        ends = time.monotonic() + 1.5
        while time.monotonic() < ends:
            for name in healthy:
                began = time.monotonic()
                sent = junction.begin("send", name, 1, timeout=SOON)
                assert junction.recv(name, timeout=SOON) == 1
                assert sent.result() is True
                assert time.monotonic() - began < 0.5 * time_factor()
        assert not clogging.done(), "the connection to the worker that hangs is full"
    finally:
        os.kill(pid, signal.SIGCONT)
    clogging.result(2 * SOON * time_factor())


def test_closing_closes_all_connections(
    make_place: MakePlace, node: Callable[[int], Node], spy: Spy, topic: str
) -> None:
    at = node(WORKERS)
    before = connections(at.port)
    junction = make_place(at.address).join()
    meet_until_direct(junction, spy, topic)
    call = background(lambda: junction.recv([topic, "never"], timeout=60))
    junction.close()
    with pytest.raises(skywalker.Closed):
        call.result(SOON * time_factor())
    eventually(lambda: connections(at.port) == before)


@pytest.mark.parametrize("workers", [2, 4])
def test_what_is_begun_is_in_effect_though_nobody_waits_just_as_its_topic_moves(
    node: Callable[[int], Node], topic: str, workers: int
) -> None:
    with skywalker.connect(node(workers).address) as sender:
        for round in range(5):
            with skywalker.connect(node(workers).address) as receiver:
                for number in range(100):
                    # Only this thread reads, and not between begin() and result().
                    call = receiver.begin("recv", [topic, round, number], timeout=60.0)
                    assert sender.send([topic, round, number], number, timeout=SOON) is True
                    assert call.result() == number
