"""Who comes to a worker that crashes again and again: siblings accept there while it waits to be started anew."""

from __future__ import annotations

import signal

from tests.helpers import eventually
from tests.workers.pubsub_client import PubSubClient
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import TIMED_OUT, WireClient


def steered(node: Node, worker: int) -> WireClient:
    """Return a connection that the kernel gives to the listener of a worker."""
    return WireClient(PubSubClient.open(node.address, steer=(worker, node.workers)).socket)


def crash(node: Node, pid: int) -> None:
    node.kill(pid, signal.SIGSEGV)


def test_a_sibling_answers_who_comes_to_a_worker_that_keeps_crashing() -> None:
    with simulated(2, harmed=True) as node:

        def met_sibling() -> bool:
            with steered(node, 0) as client:
                assert client.ask(":recv!", 1, 0, "nobody sends") == TIMED_OUT
                if client.worker() == 1:
                    return True
                crash(node, node.pid_behind(client))
                return False

        eventually(met_sibling, within=20.0)


def test_those_who_waited_at_its_doors_when_it_crashed_are_let_in_by_a_sibling() -> None:
    with simulated(2, harmed=True) as node:
        sibling = _pid_at(node, 1)

        def all_met_sibling() -> bool:
            with steered(node, 0) as first:
                if first.worker() == 1:
                    return False  # it is not back yet
                pid = node.pid_behind(first)
                with node.hung_process(pid):
                    waiting = [steered(node, 0) for _ in range(10)]
                    subscriber = PubSubClient.open(node.pubsub, steer=(0, 2))
                    crash(node, pid)
                try:
                    subscriber.subscribe(node.bus.topic(1).encode())
                    by_sibling = {client.worker() for client in waiting} == {1}
                    return by_sibling and node.pid_behind(subscriber) == sibling
                finally:
                    for client in [*waiting, subscriber]:
                        client.socket.close()

        eventually(all_met_sibling, within=30.0)


def test_a_sibling_gives_the_doors_back_once_there_is_a_worker_again() -> None:
    with simulated(2, harmed=True) as node, steered(node, 1) as client:
        sibling = node.pid_behind(client)

        def files() -> int:
            assert client.worker() == 1  # what was closed before this is closed now
            return node.open_files(sibling)

        before = files()
        for _ in range(3):
            crash(node, eventually(lambda: _pid_at(node, 0)))
            eventually(lambda: _worker_at(node, 0) == 0)
        assert {_worker_at(node, 0) for _ in range(20)} == {0}
        eventually(lambda: files() == before)


def _pid_at(node: Node, worker: int) -> int:
    with steered(node, worker) as client:
        assert client.worker() == worker
        return node.pid_behind(client)


def _worker_at(node: Node, worker: int) -> int:
    with steered(node, worker) as client:
        return client.worker()


def test_a_worker_alone_has_nobody_to_stand_in_for_it() -> None:
    with simulated(1, harmed=True) as node:
        for _ in range(3):
            with WireClient.open(node.address) as client:
                assert client.ask(":recv!", 1, 0, "nobody sends") == TIMED_OUT
                crash(node, node.pid_behind(client))
        with WireClient.open(node.address) as client:
            assert client.ask(":recv!", 1, 0, "nobody sends") == TIMED_OUT
