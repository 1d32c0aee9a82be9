"""Both colours of client at clusters of real nodes, that end, drain, hang and join under them."""

from __future__ import annotations

import collections
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import skywalker
from skywalker.clients.routes import DIRECT_AFTER_CALLS
from tests.clients.driving import Driver, Place, background
from tests.clients.scripted import ScriptedNode
from tests.clients.spying import SOON, Spy, connections, meet, meet_until_direct
from tests.cluster.clusters import Cluster, ClusterNode, Consul, Dns, Silk
from tests.discovery import consul_agent, dns_server
from tests.discovery.consul_agent import ConsulAgent
from tests.discovery.dns_server import DnsServer
from tests.helpers import eventually, time_factor

WORKERS = 2

MakePlace = Callable[[str | None], Place]

BLOCKING = pytest.mark.parametrize("make_place", ["blocking"], indirect=True)
"""The client for asyncio is seen to in virtual time by test_cluster_aio.py, or asks another source in the same way."""


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


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


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


def test_one_address_leads_to_all_nodes(make_place: MakePlace, cluster: Cluster, spy: Spy, topic: str) -> None:
    junction = make_place(cluster.nodes[1].address).join()
    assert home_of(cluster, junction) is cluster.nodes[1]
    meet_until_direct(junction, spy, topic)


def test_nodes_are_told_in_the_order_of_their_ids(make_place: MakePlace, cluster: Cluster) -> None:
    told = make_place(all_of(cluster)).join().nodes()
    assert [each["id"] for each in told] == sorted(each["id"] for each in told)
    assert {(each["name"], each["address"], each["port"], each["workers"]) for each in told} == {
        (node.name, "127.0.0.1", node.port, WORKERS) for node in cluster.nodes
    }


def test_nobody_at_some_of_the_addresses_is_no_obstacle(make_place: MakePlace, cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        nobody = f"127.0.0.1:{probe.getsockname()[1]}"
    for _ in range(5):
        assert make_place(f"{nobody},no-such-host.invalid:1,{cluster.nodes[0].address}").join().ping()


def test_nobody_at_any_address_is_told_with_all_of_them(make_place: MakePlace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        nobody = [f"127.0.0.1:{each.getsockname()[1]}" for each in (one, other)]
    with pytest.raises(skywalker.Unreachable) as caught:
        make_place(",".join(nobody)).join(connect_timeout=0.3)
    for address in nobody:
        assert f"{address}: connection refused" in str(caught.value)


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


def test_dns_tells_where_a_cluster_is(make_place: MakePlace, cluster: Cluster, spy: Spy, topic: str) -> None:
    dns_server.require()
    with DnsServer() as server:
        Dns(server, cluster.nodes)
        junction = make_place(f"dns://{Dns.NAME}?server={server.address}").join()
        meet_until_direct(junction, spy, topic)
        server.stop()
        with pytest.raises(skywalker.Unreachable, match="DNS"):
            make_place(f"dns://{Dns.NAME}?server={server.address}").join(connect_timeout=0.3)


@BLOCKING
def test_consul_tells_where_a_cluster_is_and_is_not_needed_afterwards(make_place: MakePlace, topic: str) -> None:
    consul_agent.require()
    with ConsulAgent() as agent, Cluster(3, workers=1, drain_timeout_s=1.0) as cluster:
        cluster.discovery = Consul(agent.address, "skywalker")
        cluster.start()
        junction = make_place(agent.url("skywalker")).join()
        meet(junction, topic)
        waiting = begin_many(junction, topic, 6)
        agent.kill()
        home_of(cluster, junction).kill()
        assert_all_meet(cluster, waiting, topic)
        with pytest.raises(skywalker.Unreachable, match=str(agent.address)):
            make_place(agent.url("skywalker")).join(connect_timeout=0.3)


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


@BLOCKING
@pytest.mark.parametrize("options", [{}, {"direct": False}], ids=str)
def test_a_home_that_is_killed_is_replaced_by_another_node(
    make_place: MakePlace, own_cluster: Cluster, topic: str, options: dict[str, Any]
) -> None:
    junction = make_place(all_of(own_cluster)).join(**options)
    for number in range(24):
        meet(junction, [topic, "before", number])
    waiting = begin_many(junction, topic)
    home = home_of(own_cluster, junction)
    home.kill()
    for number in range(24):
        meet(junction, [topic, "after", number])
    assert home_of(own_cluster, junction) is not home
    own_cluster.settle()
    assert_all_meet(own_cluster, waiting, topic)
    if options:
        assert connections(*ports_of(own_cluster)) == 1


@BLOCKING
def test_a_client_that_was_told_one_address_survives_the_node_there(
    make_place: MakePlace, own_cluster: Cluster, topic: str
) -> None:
    first = own_cluster.nodes[0]
    junction = make_place(first.address).join()
    for number in range(DIRECT_AFTER_CALLS):
        meet(junction, [topic, number])
    eventually(lambda: (meet(junction, topic), connections(*ports_of(own_cluster)) > 1)[1], within=SOON)
    first.kill()
    for number in range(24):
        meet(junction, [topic, number])
    assert home_of(own_cluster, junction) is not first


@BLOCKING
@pytest.mark.parametrize("whose", ["home", "another"])
def test_draining_a_node_loses_no_call(
    make_place: MakePlace, own_cluster: Cluster, spy: Spy, topic: str, whose: str
) -> None:
    junction = make_place(all_of(own_cluster)).join()
    meet_until_direct(junction, spy, topic)
    waiting = begin_many(junction, topic)
    home = home_of(own_cluster, junction)
    leaves = home if whose == "home" else next(node for node in own_cluster.nodes if node is not home)
    leaves.drain()
    for number in range(48):
        meet(junction, [topic, "meanwhile", number])
    results = [background(call.result) for call in waiting]
    leaves.wait_for_end(SOON)
    own_cluster.settle()
    with skywalker.connect(own_cluster.live[0].address, direct=False) as other:
        for number, result in enumerate(results):
            assert other.send([topic, number], number, timeout=SOON)
            assert result.result(SOON * time_factor()) == number
    assert home_of(own_cluster, junction) is not leaves


def test_a_node_that_joins_is_called_directly(
    make_place: MakePlace, own_cluster: Cluster, spy: Spy, topic: str
) -> None:
    late = own_cluster.nodes[2]
    late.kill()
    own_cluster.settle()
    junction = make_place(all_of(own_cluster)).join()
    meet_until_direct(junction, spy, topic)
    waiting = begin_many(junction, topic)
    own_cluster.revive(late)
    own_cluster.settle()
    meet_until_direct(junction, spy, f"{topic} again")
    theirs = {each["id"] for each in junction.nodes() if each["name"] == late.name}
    spy.forget()
    assert theirs
    assert_all_meet(own_cluster, waiting, topic)


@BLOCKING
def test_a_node_that_hangs_holds_up_only_its_own_topics_and_those_until_it_is_left_out(
    make_place: MakePlace, own_cluster: Cluster, spy: Spy, topic: str
) -> None:
    junction = make_place(all_of(own_cluster)).join()
    meet_until_direct(junction, spy, topic)
    home = home_of(own_cluster, junction)
    hangs, other = [node for node in own_cluster.nodes if node is not home]
    healthy = own_cluster.topic_of(other, topic)
    stuck = own_cluster.topic_of(hangs, topic)
    waiting = junction.begin("recv", stuck, timeout=3 * SOON)
    result = background(waiting.result)
    hangs.freeze()
    for _ in range(20):
        began = time.monotonic()
        meet(junction, healthy)
        assert time.monotonic() - began < 1.0 * time_factor()
    own_cluster.settle()
    with skywalker.connect(other.address, direct=False) as beside:
        assert beside.send(stuck, "v", timeout=SOON)
    assert result.result(SOON * time_factor()) == "v"
    hangs.thaw()


@BLOCKING
def test_a_home_that_hangs_is_left_once_the_others_leave_it_out(
    make_place: MakePlace, own_cluster: Cluster, spy: Spy, topic: str
) -> None:
    junction = make_place(all_of(own_cluster)).join()
    meet_until_direct(junction, spy, topic)
    home = home_of(own_cluster, junction)
    results = [background(call.result) for call in begin_many(junction, topic)]
    home.freeze()
    own_cluster.settle()
    began = time.monotonic()
    with skywalker.connect(own_cluster.live[0].address, direct=False) as other:
        for number, result in enumerate(results):
            assert other.send([topic, number], number, timeout=SOON)
            assert result.result(SOON * time_factor()) == number
    assert time.monotonic() - began < 6 * time_factor()
    home.thaw()


@BLOCKING
def test_a_node_that_hangs_is_not_long_taken_for_a_home(
    make_place: MakePlace, own_cluster: Cluster, topic: str
) -> None:
    own_cluster.nodes[0].freeze()
    own_cluster.settle()
    for number in range(6):
        began = time.monotonic()
        meet(make_place(all_of(own_cluster)).join(), [topic, number])
        assert time.monotonic() - began < 4 * time_factor()
    own_cluster.nodes[0].thaw()


@BLOCKING
def test_no_value_is_lost_while_nodes_come_and_go(make_place: MakePlace, own_cluster: Cluster, topic: str) -> None:
    steady, *others = own_cluster.nodes
    junction = make_place(all_of(own_cluster)).join()
    topics = [f"{topic}-{number}" for number in range(8)]
    got: dict[str, list[int]] = {each: [] for each in topics}
    over = threading.Event()
    sent: dict[str, int] = {}

    def send(each: str) -> None:
        window: collections.deque[Any] = collections.deque()
        number = 0
        while not over.is_set():
            window.append(junction.begin("send", each, number, timeout=3 * SOON))
            number += 1
            if len(window) > 4:
                assert window.popleft().result() is True
        sent[each] = number
        junction.begin("send", each, -1, timeout=3 * SOON).result()
        assert all(call.result() is True for call in window)

    def receive(each: str) -> None:
        with skywalker.connect(steady.address, direct=False) as reader:
            while (value := reader.recv(each, timeout=3 * SOON)) != -1:
                got[each].append(value)

    futures = [background(lambda each=each, what=what: what(each)) for each in topics for what in (send, receive)]
    for node in others:
        node.drain()
        node.wait_for_end(SOON)
        own_cluster.settle()
        own_cluster.revive(node)
        own_cluster.settle()
    over.set()
    for future in futures:
        future.result(3 * SOON * time_factor())
    for each in topics:
        # A value whose True was lost with a connection is sent again, so it may arrive twice.
        assert sorted(set(got[each])) == [*range(sent[each])], each
        assert len(got[each]) < sent[each] + 40


# Nodes that know no cluster.


def test_original_nodes_in_a_list_are_greeted_in_vain_and_then_left_in_peace(make_place: MakePlace) -> None:
    with ScriptedNode(courtesies=False) as one, ScriptedNode(courtesies=False) as other:
        answering = [background(lambda node=node: _be_original(node)) for node in (one, other)]
        junction = make_place(f"{one.address},{other.address}").join()
        for _ in range(2 * DIRECT_AFTER_CALLS):
            assert junction.tokens() == []
        junction.close()
        for node in (one, other):
            socket.create_connection(("127.0.0.1", node.port)).close()
        greeted = [future.result(SOON * time_factor()) for future in answering]
        # Twice by the main connection, and once by one that only looked.
        assert 2 <= sum(greeted) <= 3


def _be_original(node: ScriptedNode) -> int:
    """Answer :tokens, and close the connection on anything else, until one brings nothing; return how many did so."""
    greeted = 0
    while True:
        connection = node.next_connection()
        message = connection.read()
        if message is None:
            return greeted
        while message is not None and message[0] == ":tokens":
            connection.write([":tokens", message[1], []])
            message = connection.read()
        greeted += message is not None
        connection.close()
