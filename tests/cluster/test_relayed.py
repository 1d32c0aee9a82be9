"""Workers of two real nodes that are linked through a sibling, which dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from skywalker.members import Place
from skywalker.ring import token_of
from tests.admin.asking import Asker
from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.meeting import meet
from tests.cluster.secured import secured
from tests.helpers import eventually
from tests.workers.wire_client import WireClient, clients_of, packed

LONG: Final = 60_000
"""Bytes of a value: some of them are more than may be on their way."""


def owned_by(cluster: Cluster, node: ClusterNode, worker: int) -> Iterator[str]:
    """Yield topics that a worker of a node owns, without end."""
    ring = cluster.snapshot().ring
    ids = {member.name: member.id for member in cluster.snapshot()}
    for topic in cluster.topics_of(node):
        if ring.owner(token_of(packed(topic))) == Place(ids[node.name], worker):
            yield topic


def exchange(sender: WireClient, listener: WireClient, topic: str, count: int) -> None:
    """Have long values go from the one to the other."""
    values = [f"{number}".zfill(LONG) for number in range(count)]
    for number, value in enumerate(values):
        sender.call(":send!", f"send-{number}", 10_000, topic, value)
    for number in range(count):
        listener.call(":take!", f"take-{number}", 10_000, topic, "group")
    got = [result for _, _, result in listener.replies(count, 10.0)]
    assert [int(value[-4:]) for value in got] == [*range(count)]
    assert got == values
    assert [result for _, _, result in sender.replies(count, 10.0)] == [True] * count


@pytest.mark.parametrize("speaks", ["plain", "TLS"])
def test_workers_meet_through_a_sibling_until_it_dies_and_through_its_successor(speaks: str, tmp_path: Path) -> None:
    with Cluster(2) as cluster, ExitStack() as stack:
        node, other = cluster.nodes
        context = None
        if speaks == "TLS":
            context = stack.enter_context(secured(tmp_path, cluster)).context
            with (tmp_path / "access.toml").open("a") as access:
                access.write("admin = true\n")  # clients
        for each in cluster.nodes:
            each.start(**cluster.discovery.settings(each), admin=True, max_links=1, link_idle_s=0.2)
        cluster.settle()
        asker = Asker(node.admin_address, context)

        def links(way: str, worker: int) -> float:
            return asker.metric("skywalker_links", way=way, worker=str(worker))

        # Workers that are new go to all others.
        eventually(lambda: links("connected", 0) + links("connected", 1) == 0, 10.0)
        connect = stack.enter_context(clients_of((node.machine.address, node.port)))
        client = connect(worker=0)
        there = stack.enter_context(other.client())
        topic, *others = islice(owned_by(cluster, other, 1), 30)
        client.call(":recv!", "waits", 20_000, topic)
        eventually(lambda: (links("relayed", 0), links("passing", 1)) == (1, 1), 10.0)
        assert links("connected", 0) == 0
        exchange(client, there, others[0], 10)
        exchange(there, client, others[1], 10)
        meet(client, there, others[2:])

        os.kill(node.worker_pids()[1], signal.SIGKILL)
        there.call(":send!", "waits", 10_000, topic, "it")
        assert client.reply(10.0) == [":recv!", "waits", "it"]
        assert there.reply(10.0) == [":send!", "waits", True]
        exchange(client, there, others[0], 10)
        exchange(there, client, others[1], 10)
        assert "Traceback" not in node.log + other.log
