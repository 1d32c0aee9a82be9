"""Both colours of client at clusters of real nodes, that end, drain, hang and join under them."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import skywalker
from tests.clients.driving import Driver, Place, background
from tests.clients.spying import SOON, Spy, connections, meet, meet_until_direct
from tests.cluster.clusters import Cluster, ClusterNode, Dns, Silk
from tests.discovery import dns_server
from tests.discovery.dns_server import DnsServer
from tests.helpers import eventually, time_factor

WORKERS = 2

MakePlace = Callable[[str | None], Place]

BLOCKING = pytest.mark.parametrize("make_place", ["blocking"], indirect=True)
"""Simulated programs show what becomes of the client for asyncio, or it asks another source in the same way."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes that no test harms."""
    with Cluster(3, workers=WORKERS) as cluster:
        cluster.start()
        yield cluster


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """Three nodes that a test may harm."""
    with Cluster(3, workers=WORKERS, drain_timeout_s=2.0) as cluster:
        cluster.start()
        yield cluster


def all_of(cluster: Cluster) -> str:
    """Return where a cluster is."""
    return ",".join(node.address for node in cluster.nodes)


def ports_of(cluster: Cluster) -> list[int]:
    return [node.port for node in cluster.nodes]


def home_of(cluster: Cluster, junction: Driver) -> ClusterNode:
    """Return the node of the main connection."""
    name = junction.hello()["name"]
    return next(node for node in cluster.nodes if node.name == name)


def begin_many(junction: Driver, topic: str, count: int = 24) -> list[Any]:
    """Begin calls on topics all over the ring, and see to it that their nodes have them."""
    begun = [junction.begin("recv", [topic, number], timeout=3 * SOON) for number in range(count)]
    for number in range(count):
        eventually(lambda number=number: junction.topic([topic, number])["receivers"] == 1, within=SOON)
    return begun


def assert_all_meet(cluster: Cluster, calls: list[Any], topic: str) -> None:
    """Assert that these calls are still there for whoever comes by way of another node."""
    results = [background(call.result) for call in calls]
    with skywalker.connect(cluster.live[0].address, direct=False) as other:
        for number, result in enumerate(results):
            assert other.send([topic, number], number, timeout=SOON)
            assert result.result(SOON * time_factor()) == number


# Finding the nodes.


def test_every_call_goes_to_the_node_and_worker_that_own_its_topic(
    make_place: MakePlace, cluster: Cluster, spy: Spy, topic: str
) -> None:
    before = connections(*ports_of(cluster))
    junction = make_place(all_of(cluster)).join()
    meet_until_direct(junction, spy, topic)
    assert connections(*ports_of(cluster)) <= before + 3 * WORKERS
    spy.forget()
    for number in range(24):
        meet(junction, [topic, number])
    assert (spy.right, spy.forwarded) == (48, 0)


def test_nobody_at_some_of_the_addresses_is_no_obstacle(make_place: MakePlace, cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        nobody = f"127.0.0.1:{probe.getsockname()[1]}"
    for _ in range(5):
        assert make_place(f"{nobody},no-such-host.invalid:1,{cluster.nodes[0].address}").join().ping()


def test_an_address_from_which_nothing_comes_takes_no_more_than_its_share_of_the_time(
    make_place: MakePlace, cluster: Cluster
) -> None:
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # A full queue: the kernel drops what else would connect.
        for _ in range(3):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(silent.getsockname())
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        for _ in range(4):
            assert make_place(f"{where},{cluster.nodes[0].address}").join(connect_timeout=4 * time_factor()).ping()
        with pytest.raises(skywalker.Unreachable, match=f"{where}: no answer"):
            make_place(f"{where},127.0.0.2:1").join(connect_timeout=0.3)


def test_dns_tells_where_a_cluster_is(make_place: MakePlace, cluster: Cluster, topic: str) -> None:
    dns_server.require()
    with DnsServer() as server:
        Dns(server, cluster.nodes)
        meet(make_place(f"dns://{Dns.NAME}?server={server.address}").join(), topic)
        server.stop()
        with pytest.raises(skywalker.Unreachable, match="DNS"):
            make_place(f"dns://{Dns.NAME}?server={server.address}").join(connect_timeout=0.3)


@BLOCKING
def test_silk_tells_where_a_cluster_is_and_is_not_needed_afterwards(make_place: MakePlace, topic: str) -> None:
    with Cluster(3, workers=1, drain_timeout_s=1.0) as cluster:
        discovery = cluster.discovery = Silk(cluster.nodes)
        cluster.start()
        members = discovery.where.removeprefix("silk://").split(",")
        for member in members:
            assert make_place(f"silk://{member}").join().ping()
        junction = make_place(discovery.where).join()
        meet(junction, topic)
        waiting = begin_many(junction, topic, 6)
        for node in cluster.nodes:
            node.kill_agent()
        home_of(cluster, junction).kill()
        assert_all_meet(cluster, waiting, topic)
    with pytest.raises(skywalker.Unreachable, match=f"Silk at {members[0]}: tcp://{members[0]}: Connection refused"):
        make_place(f"silk://{members[0]}").join(connect_timeout=2.0)


@BLOCKING
def test_a_source_that_hangs_delays_no_call_while_a_node_answers(
    make_place: MakePlace, own_cluster: Cluster, topic: str
) -> None:
    dns_server.require()
    with DnsServer() as server:
        Dns(server, own_cluster.nodes)
        junction = make_place(f"dns://{Dns.NAME}?server={server.address}").join()
        meet(junction, topic)
        with server.frozen():
            home_of(own_cluster, junction).kill()
            began = time.monotonic()
            for number in range(24):
                meet(junction, [topic, number])
            assert time.monotonic() - began < 4 * time_factor()


def test_a_url_that_is_wrong_is_refused_before_anything_is_asked(make_place: MakePlace) -> None:
    for where in ("http://a", "silk://", "consul://a", "dns://10.0.0.1", "a:1,,b:1", "a:1,b:x"):
        with pytest.raises(skywalker.LocalProtocolError):
            make_place(where).join()


# What becomes of nodes.
