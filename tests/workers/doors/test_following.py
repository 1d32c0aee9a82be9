"""Connections of real clients that follow their calls to another worker, and what a death on the way costs."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

import skywalker
from skywalker.cli.admin_api import AdminAddress, AdminApi
from skywalker.cli.node import STATE
from tests.helpers import eventually
from tests.journal.raw import header_of
from tests.workers.moves import stall
from tests.workers.pairs import TIMEOUT_MS, have_meet, have_some_meet, moved, unix_client
from tests.workers.running_nodes import Node, running
from tests.workers.wire_client import WireClient, clients_of

CALLS = 2500
"""Enough that a connection follows them."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with running(workers=2) as node:
        yield node


@pytest.mark.parametrize("at_once", [1, 64])
def test_a_connection_goes_where_most_of_its_calls_go_while_it_makes_them(node: Node, topic: str, at_once: int) -> None:
    with clients_of(node.address) as connect:
        sender, taker = connect(worker=0), connect(worker=0)

        def both_follow() -> bool:
            have_meet(sender, taker, node.topic_of(1, topic), CALLS, at_once)
            return (sender.worker(), taker.worker()) == (1, 1)

        eventually(both_follow)  # later where the machine has other things to do meanwhile
        have_meet(sender, taker, node.topic_of(1, topic), 100, at_once)


def test_calls_that_wait_go_along_and_each_is_answered_once(node: Node, topic: str) -> None:
    assert stall(node, topic) > 0.0


def test_what_it_subscribes_to_goes_along_and_what_it_has_yet_to_acknowledge(topic: str) -> None:
    with running(workers=3) as node, clients_of(node.address) as connect:
        mover, partner, teller = (connect(worker=worker) for worker in range(3))
        subscribed = {f"of {worker}": node.topic_of(worker, f"{topic}{worker}") for worker in range(3)}
        assert "ack" in mover.ask(":hello", 0, {"ack": True})["extensions"]
        for id, each in subscribed.items():
            assert mover.ask(":subscribe", id, each) is True
        is_over = threading.Event()
        told, came = itertools.count(), {id: [] for id in subscribed}

        def tell() -> None:
            while not is_over.is_set():
                number = next(told)
                for each in subscribed.values():
                    assert teller.answer(":send!", TIMEOUT_MS, each, number) is True

        def result() -> list[object]:
            while (reply := mover.reply())[0] == ":message":
                came[reply[1]].append(reply[2])
            return reply

        telling = threading.Thread(target=tell)
        telling.start()
        hot, owed = node.topic_of(1, topic), deque[int]()
        for number in range(CALLS):
            mover.call(":take!", number, TIMEOUT_MS, hot, "group")
            partner.call(":send!", number, TIMEOUT_MS, hot, number)
            assert result() == [":take!", number, number]
            owed.append(number)
            if len(owed) > 3:  # so that some always are
                mover.call(":ack", owed.popleft())
                assert partner.reply() == [":send!", number - 3, True]
        is_over.set()
        telling.join()
        mover.call(":ping", "last")
        assert result() == [":ping", "last", True]
        everything = [*range(next(told))]
        assert [*came.values()] == [everything] * len(subscribed)
        assert mover.worker() == 1


def test_a_connection_of_many_topics_stays(node: Node, topic: str) -> None:
    with clients_of(node.address) as connect:
        sender, taker = connect(worker=0), connect(worker=0)
        for number in range(20):
            have_meet(sender, taker, node.topic_of(number % 2, f"{topic}{number}"), 100)
        assert (sender.worker(), taker.worker()) == (0, 0)


def test_none_moves_where_that_is_switched_off(topic: str) -> None:
    with running(workers=2, max_moves=0) as node, clients_of(node.address) as connect:
        sender, taker = connect(worker=0), connect(worker=0)
        have_meet(sender, taker, node.topic_of(1, topic), CALLS)
        assert (sender.worker(), taker.worker()) == (0, 0)


def test_connections_by_a_unix_socket_move_and_that_is_counted(tmp_path: Path, topic: str) -> None:
    path = str(tmp_path / "socket")
    journal = tmp_path / "journal"
    with skywalker.embedded(workers=3, unix=path, admin=True, journal=str(journal)) as embedded:
        api = AdminApi(AdminAddress.parse(embedded.admin_address))
        pairs = [(unix_client(path), unix_client(path)) for _ in range(4)]
        for number, (sender, taker) in enumerate(pairs):
            have_meet(sender, taker, f"{topic}{number}", CALLS)
        eventually(lambda: moved(api.get(STATE)) > 0)
        before = api.get(STATE)["routed"]
        for number, (sender, taker) in enumerate(pairs):
            have_meet(sender, taker, f"{topic}{number}", CALLS)
            sender.close()
            taker.close()
        eventually(lambda: sum(api.get(STATE)["routed"].values()) >= sum(before.values()) + 8 * CALLS)
        state = api.get(STATE)
        after = state["routed"]
        assert after["sibling"] - before["sibling"] <= 0.05 * (after["here"] - before["here"])
    assert sum(header_of(file)["moved"] for file in journal.glob("*.calls")) == moved(state)


@pytest.mark.parametrize("killed", [0, 1])
def test_a_worker_that_is_killed_while_connections_move_loses_and_doubles_nothing(topic: str, killed: int) -> None:
    with skywalker.embedded(workers=2, watchdog_s=60) as embedded:
        node = Node(embedded)
        found: list[tuple[set[int], list[int]]] = []

        def load(number: int) -> None:
            with WireClient.open(node.address) as sender, WireClient.open(node.address) as taker:
                told, came = have_some_meet(sender, taker, node.topic_of(1 - killed, f"{topic}{number}"), 200_000)
            found.append((told, [*came]))

        loads = [threading.Thread(target=load, args=(number,)) for number in range(8)]
        for thread in loads:
            thread.start()
        for _ in range(4):
            threading.Event().wait(0.3)
            pid = node.pids()[killed]
            os.kill(pid, signal.SIGKILL)
            eventually(lambda pid=pid: pid not in node.pids() and len(node.pids()) == 2)
        for thread in loads:
            thread.join(60)
        assert len(found) == len(loads)  # none is left half alive, waiting
        for _, came in found:
            assert len(came) == len({*came})
            assert came == sorted(came)
