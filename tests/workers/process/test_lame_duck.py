"""A node that is told to end is found no more before it lets nobody in, and has its clients go elsewhere in time."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import skywalker
from tests.cluster.clusters import Cluster, ClusterNode
from tests.helpers import CLOCK, eventually, time_factor
from tests.workers import operated
from tests.workers.processes import is_gone
from tests.workers.wire_client import WireClient, code_of
from workers.ipc import exits
from workers.process.supervisor import LEAVE_S


@contextlib.contextmanager
def two_nodes(drain_timeout_s: float) -> Iterator[tuple[Cluster, ClusterNode, ClusterNode]]:
    with Cluster(2, workers=2, drain_timeout_s=drain_timeout_s) as cluster:
        cluster.start()
        leaves, stays = cluster.nodes
        yield cluster, leaves, stays


def lets_in(node: ClusterNode) -> bool:
    try:
        with node.client():
            return True
    except OSError:
        return False


def test_the_doors_are_open_until_the_node_is_found_no_more() -> None:
    with two_nodes(drain_timeout_s=60) as (_, leaves, stays), leaves.client() as client:
        client.call(":recv!", 1, 60_000, "topic")  # so that it has something to wait for
        os.kill(leaves.agent_pid() or 0, signal.SIGSTOP)
        leaves.drain()
        eventually(lambda: "event=draining" in leaves.log)
        # Its agent hangs, so that it may still be found; and who finds it is let in.
        told_at = time.monotonic()
        while time.monotonic() - told_at < LEAVE_S / 2:
            assert lets_in(leaves)
        eventually(lambda: not lets_in(leaves), LEAVE_S)
        assert time.monotonic() - told_at >= LEAVE_S * 0.9
        assert stays.lives


def test_a_node_that_nobody_finds_any_more_lets_nobody_in_and_its_calls_go_on() -> None:
    with two_nodes(drain_timeout_s=60) as (cluster, leaves, stays), leaves.client() as here, stays.client() as there:
        topics = [cluster.topic_of(each, "waits") for each in (leaves, stays)]
        for number, topic in enumerate(topics):
            here.call(":recv!", number, 60_000, topic)
            there.wait_until(topic, receivers=1)
        leaves.drain()
        eventually(lambda: stays.sees() == {stays.name}, LEAVE_S)
        eventually(lambda: not lets_in(leaves), LEAVE_S)
        for number, topic in enumerate(topics):
            assert there.ask(":send!", number, 5_000, topic, topic) is True
        assert {here.reply()[2] for _ in topics} == {*topics}
        leaves.wait_for_end(5.0)


def test_calls_that_still_wait_at_the_end_of_the_grace_go_on_at_another_node() -> None:
    with two_nodes(drain_timeout_s=1.0) as (cluster, leaves, stays):
        topics = [cluster.topic_of(each, "goes") for each in (leaves, stays)]
        with (
            skywalker.connect(f"{leaves.address},{stays.address}") as client,
            ThreadPoolExecutor(len(topics)) as pool,
            stays.client() as sender,
        ):
            waiting = [pool.submit(client.recv, topic, timeout=30) for topic in topics]
            for topic in topics:
                sender.wait_until(topic, receivers=1)
            leaves.drain()
            leaves.wait_for_end(10.0)
            for topic in topics:
                assert sender.ask(":send!", 1, 5_000, topic, topic) is True
            assert [each.result() for each in waiting] == topics


@pytest.mark.parametrize("drain_timeout_s", [0.0, 0.4])
def test_an_agent_that_hangs_keeps_a_node_for_half_its_time_at_most(drain_timeout_s: float) -> None:
    with two_nodes(drain_timeout_s) as (_, leaves, _), leaves.client() as client:
        client.greet().call(":recv!", 1, 60_000, "topic")
        os.kill(leaves.agent_pid() or 0, signal.SIGSTOP)
        told_at = time.monotonic()
        leaves.drain()
        assert client.refusal().code == "draining"
        took = time.monotonic() - told_at
        assert drain_timeout_s <= took < drain_timeout_s + 0.5 * time_factor()
        leaves.wait_for_end(5.0)


def test_a_node_without_an_agent_closes_its_doors_at_once() -> None:
    with operated.node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as client:
        waiting = client.begin(":recv!", 60_000, "topic")
        client.answer(":ping")
        told_at = CLOCK.monotonic()
        running.signal(signal.SIGTERM)

        def is_shut() -> bool:
            try:
                running.connect().close()
            except ConnectionRefusedError:
                return True
            return False

        eventually(is_shut, 1.0)
        assert CLOCK.monotonic() - told_at < 0.5 * time_factor()
        running.signal(signal.SIGTERM)
        assert code_of(client.result, waiting) == "draining"
        assert running.wait(within=2.0) == exits.OK


# The end of the supervisor.


def test_workers_and_agent_are_gone_within_a_second_of_their_supervisor_and_another_start_serves() -> None:
    with two_nodes(drain_timeout_s=60) as (cluster, dies, stays):
        children = [*dies.worker_pids(), dies.agent_pid() or 0]
        with dies.client() as client:
            client.call(":recv!", 1, 60_000, "topic")
            os.kill(dies.pid, signal.SIGKILL)
            killed_at = time.monotonic()
            with contextlib.suppress(Exception):
                client.reply()
        eventually(lambda: all(map(is_gone, children)), 1.0)
        assert time.monotonic() - killed_at < 1.0 * time_factor()
        dies.end()
        cluster.revive(dies)
        cluster.settle()
        with dies.client() as client, stays.client() as other:
            client.call(":recv!", 1, 5_000, "again")
            assert other.ask(":send!", 1, 5_000, "again", "value") is True
            assert client.reply()[2] == "value"


def test_a_supervisor_that_is_killed_in_a_reload_leaves_nobody_behind() -> None:
    with operated.node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as client:
        client.answer(":ping")
        running.signal(signal.SIGHUP)
        pids = running.wait_for_workers(3)
        running.kill(running.pid, signal.SIGKILL)
        eventually(lambda: all(map(running.is_gone, pids)), 1.0)


# A reload in a cluster.


def test_calls_between_nodes_go_on_while_one_of_them_is_reloaded() -> None:
    # The other nodes' agents stay connected until a worker's time is over.
    with Cluster(3, workers=2, drain_timeout_s=1.5) as cluster:
        cluster.start()
        reloaded, *others = cluster.nodes
        topics = [topic for node in cluster.nodes for topic, _ in zip(cluster.topics_of(node), range(8), strict=False)]
        with contextlib.ExitStack() as stack:
            old = [stack.enter_context(node.client()) for node in cluster.nodes]
            for which, client in enumerate(old):
                for number, topic in enumerate(topics):
                    client.call(":recv!", number, 60_000, f"{topic}/{which}")
            for which, client in enumerate(old):
                client.wait_until(f"{topics[-1]}/{which}", receivers=1)
            before = reloaded.worker_pids()
            os.kill(reloaded.pid, signal.SIGHUP)
            eventually(lambda: len(reloaded.worker_pids()) == 3)
            for which, client in enumerate(old):
                sender: WireClient = stack.enter_context(others[which % 2].client())
                for number, topic in enumerate(topics):
                    sender.call(":send!", number, 5_000, f"{topic}/{which}", number)
                assert [sender.reply()[2] for _ in topics] == [True] * len(topics)
                assert sorted(client.reply()[2] for _ in topics) == [*range(len(topics))]
            for client in old:
                client.close()
            eventually(lambda: "event=reloaded" in reloaded.log, 8.0)
            assert not {*before} & {*reloaded.worker_pids()}
            cluster.settle()
            with reloaded.client() as receiver, others[0].client() as sender:
                for number, topic in enumerate(topics):
                    receiver.call(":recv!", number, 5_000, topic)
                    assert sender.ask(":send!", number, 5_000, topic, number) is True
                    assert receiver.reply()[2] == number
        assert not any("Traceback" in node.log for node in cluster.nodes)
