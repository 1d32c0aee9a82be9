"""Real nodes that find each other by Silk: what is particular to it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

import skywalker
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.silk import Keys
from tests.cli.running import run
from tests.cluster.clusters import Cluster, ClusterNode, Silk
from tests.helpers import eventually


def loads_zeromq(pid: int) -> bool:
    return "zmq" in Path(f"/proc/{pid}/maps").read_text()


def told_of_trouble(node: ClusterNode) -> str:
    """Return what a node has logged of not finding others."""
    return "\n".join(line for line in node.log.splitlines() if "event=discovery-failed" in line)


def test_members_are_found_by_every_command_and_only_agents_load_zeromq() -> None:
    (nobody,) = free_ports(1)
    with Cluster(2, workers=1) as cluster:
        discovery = cluster.discovery = Silk(cluster.nodes)
        cluster.start()
        for node in cluster.nodes:
            agent = node.agent_pid()
            assert agent is not None
            assert loads_zeromq(agent)
            assert not any(map(loads_zeromq, [node.pid, *node.worker_pids()]))
        where = discovery.where.replace("silk://", f"silk://127.0.0.1:{nobody},")
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
