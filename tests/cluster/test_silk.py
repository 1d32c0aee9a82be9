"""Real nodes that find each other by Silk: what is particular to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from itertools import islice
from pathlib import Path

import pytest

import skywalker
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.silk import Keys, ask
from tests.cli.running import run
from tests.cluster.clusters import Cluster, ClusterNode, Silk
from tests.cluster.meeting import assert_met, begin, meet
from tests.cluster.test_discovery import BACK_S
from tests.cluster.test_outages import assert_calls_go_on
from tests.helpers import eventually, time_factor


def loads_zeromq(pid: int) -> bool:
    return "zmq" in Path(f"/proc/{pid}/maps").read_text()


def told_of_trouble(node: ClusterNode) -> str:
    """Return what a node has logged of not finding others."""
    return "\n".join(line for line in node.log.splitlines() if "event=discovery-failed" in line)


def test_only_the_agent_loads_zeromq() -> None:
    with Cluster(2) as cluster:
        cluster.discovery = Silk(cluster.nodes)
        cluster.start()
        for node in cluster.nodes:
            agent = node.agent_pid()
            assert agent is not None
            assert loads_zeromq(agent)
            assert not any(map(loads_zeromq, [node.pid, *node.worker_pids()]))


def test_nodes_that_were_told_of_one_need_it_no_more_and_find_it_when_it_is_back() -> None:
    with Cluster(3, drain_timeout_s=1.0) as cluster:
        first, *others = cluster.nodes
        # Of which the first is told too, so that it looks for nobody else.
        cluster.discovery = Silk(cluster.nodes, seeds=[first])
        cluster.start(*others, first)
        first.drain()
        first.wait_for_end(10)
        cluster.settle()
        for each in others:
            each.drain()
            each.wait_for_end(10)
            cluster.revive(each)
            if each is others[0]:
                cluster.settle([others[1]])  # the one has nobody to ask for the other
        cluster.revive(first)
        cluster.settle(within=BACK_S)
        assert_calls_go_on(cluster, "all")
        first.kill()
        cluster.settle()
        # It knows nobody, and is not looked for until it has been silent for so long that it must have failed.
        cluster.revive(first)
        cluster.settle()


def test_nodes_with_keys_meet_and_one_without_stays_alone_and_says_so(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    keys, other_keys = tmp_path / "keys", tmp_path / "other"
    for file in (keys, other_keys):
        Keys.generate().save(file)
    with Cluster(4) as cluster:
        discovery = cluster.discovery = Silk(cluster.nodes, keys=keys)
        a, b, without, wrong = cluster.nodes
        cluster.start(a, b)
        told = discovery.settings(without)
        without.start(**{**told, "silk_keys": ""})
        wrong.start(**{**discovery.settings(wrong), "silk_keys": str(other_keys)})
        for node in (without, wrong):
            assert "may have other keys" in eventually(lambda node=node: told_of_trouble(node), within=10)
            assert node.sees() == {node.name}
        assert cluster.is_settled([a, b])
        assert not told_of_trouble(a)
        with skywalker.connect(discovery.where) as client:
            assert {each["name"] for each in client.nodes()} == {a.name, b.name}
        with pytest.raises(skywalker.Unreachable, match="no node answered"):
            skywalker.connect(discovery.where.partition("?")[0].partition(",")[0], connect_timeout=3.0)


def test_a_node_that_drains_leaves_before_it_ends() -> None:
    with Cluster(3) as cluster:
        discovery = cluster.discovery = Silk(cluster.nodes)
        cluster.start()
        places = [str(discovery.settings(node)["silk"]) for node in cluster.nodes]
        for count, node in enumerate(cluster.nodes[:2]):
            eventually(lambda count=count: all(len(ask(place)) == 3 - count for place in places[count:]))
            time.sleep(0.3 * time_factor())  # none can know whether all listen to it
            node.drain()
            node.wait_for_end(5)
            # Had it ended without a word, it would be a member for four seconds more.
            eventually(lambda node=node: node.name not in {each.name for each in ask(places[2])}, within=1)


def test_an_agent_is_a_member_again_after_it_was_stopped_for_long_or_killed() -> None:
    with Cluster(3) as cluster:
        discovery = cluster.discovery = Silk(cluster.nodes)
        cluster.start()
        places = [str(discovery.settings(node)["silk"]) for node in cluster.nodes]

        def members(place: str) -> dict[str, str]:
            return {each.name: each.id for each in ask(place)}

        def all_agree() -> dict[str, str] | None:
            told = [members(place) for place in places]
            return told[0] if told[0].keys() == {"n1", "n2", "n3"} and told[1:] == told[:1] * 2 else None

        before = eventually(all_agree)
        stopped = cluster.nodes[2].agent_pid()
        assert stopped is not None
        os.kill(stopped, signal.SIGSTOP)
        eventually(lambda: members(places[0]).keys() == members(places[1]).keys() == {"n1", "n2"}, within=8)
        os.kill(stopped, signal.SIGCONT)
        assert eventually(all_agree) == before
        cluster.nodes[2].kill_agent()
        after = eventually(lambda: (found := all_agree()) != before and found, within=8)
        assert after["n3"] != before["n3"]


def test_a_node_whose_place_is_taken_serves_and_says_so(closing: contextlib.ExitStack) -> None:
    with Cluster(2) as cluster:
        cluster.discovery = Silk(cluster.nodes)
        a, b = cluster.nodes
        cluster.start(a)
        place = cluster.discovery.settings(a)["silk"]
        b.start(**{**cluster.discovery.settings(b), "silk": place})
        assert f"cannot listen at tcp://{place}: Address already in use" in eventually(lambda: told_of_trouble(b))
        with b.client() as sender, b.client() as receiver:
            meet(sender, receiver, ["alone"])
        a.kill()
        eventually(lambda: "event=discovery-works" in b.log, within=10)


def test_values_that_wait_move_to_the_new_owner_when_theirs_is_frozen_for_long(closing: contextlib.ExitStack) -> None:
    with Cluster(3) as cluster:
        cluster.discovery = Silk(cluster.nodes)
        cluster.start()
        a, b, hung = (closing.enter_context(node.client()) for node in cluster.nodes)
        topics = [*islice(cluster.topics_of(cluster.nodes[2]), 20)]
        begin(a, ":send!", topics)
        cluster.nodes[2].freeze()
        cluster.settle(within=6)
        began = time.monotonic()
        begin(b, ":recv!", topics)
        assert_met(a, b, topics)
        # Its Silk too is given up meanwhile: three signs of life, and one more for the answer.
        eventually(lambda: time.monotonic() - began > 3)
        cluster.nodes[2].thaw()
        cluster.settle(within=3)
        meet(a, hung, topics)


def test_every_command_that_asks_a_node_finds_it_by_silk() -> None:
    (nobody,) = free_ports(1)
    with Cluster(2, workers=1) as cluster:
        cluster.discovery = Silk(cluster.nodes)
        cluster.start()
        where = cluster.discovery.where.replace("silk://", f"silk://127.0.0.1:{nobody},")
        ring = run("ring", "--json", "--node", where)
        assert ring.returncode == 0, ring.stderr
        told = json.loads(ring.stdout)["value"]
        assert told["agreed"]
        assert {node["name"] for node in told["nodes"]} == {"n1", "n2"}
        assert run("ping", node=where).returncode == 0
        assert b"n1" in run("route", "--node", where, cluster.topic_of(cluster.nodes[0])).stdout
        wrong = run("ping", "--node", f"silk://127.0.0.1:{nobody}")
        assert wrong.returncode == 4
        assert b"Connection refused" in wrong.stderr
