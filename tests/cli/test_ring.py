"""`ring` and `route`: against nodes that tell what a test wants, then against a real one."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import socket
import subprocess
import threading
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.cli import options
from skywalker.cli.commands import skywalker as skywalker_command
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.cli.ring.screen import LOWEST
from skywalker.embedding import Node, embedded
from skywalker.members import Member, Snapshot, arcs
from skywalker.ring import TOKENS, token_of, worker_of
from skywalker.wire import values
from tests.cli.running import run
from tests.cli.told_cluster import ToldNode, tokens, told_cluster
from tests.helpers import time_factor

ROW = re.compile(r"^  (?P<mark>\S)  (?P<name>\S+) +.*?(?P<share>[0-9.]+)% +(?P<of_fair>[0-9.]+)$", re.MULTILINE)
HIGHEST = -LOWEST - 1


def address(node: ToldNode) -> str:
    return str(node.member.address)


def ring_of(*owned: list[int]) -> Snapshot:
    """Return a ring of nodes "0", "1"... with these tokens."""
    return Snapshot(
        Member(str(number), f"n{number}", Address("127.0.0.1", 3443), 1, True, tuple(sorted(numbers)))
        for number, numbers in enumerate(owned)
    )


def band(screen: str) -> str:
    """Return the drawing of a ring as one line."""
    lines = screen.split("tokens ascending")[0].rstrip().split("\n\n")[-1].splitlines()
    return "".join(line.strip() for line in lines)


def value_of(ran: subprocess.CompletedProcess[bytes]) -> Any:
    document = json.loads(ran.stdout)
    assert document["status"] == "answered", document
    return document["value"]


# The arcs.


@given(st.lists(st.lists(st.integers(LOWEST, HIGHEST), min_size=1, max_size=6), min_size=1, max_size=5))
def test_arcs_are_the_whole_ring_and_each_shares_its_sum(owned: list[list[int]]) -> None:
    snapshot = ring_of(*owned)
    found = arcs(snapshot)
    assert sum(arc.length for arc in found) == TOKENS
    shares = snapshot.shares()
    for member in snapshot:
        length = sum(arc.length for arc in found if arc.share.node == member.id)
        assert length / TOKENS == pytest.approx(shares[member.id], abs=1e-9)
    for arc in found:
        last = (arc.start + arc.length - LOWEST) % TOKENS + LOWEST
        first = (arc.start + 1 - LOWEST) % TOKENS + LOWEST
        assert {snapshot.ring.owner(first).node, snapshot.ring.owner(last).node} == {arc.share.node}


# The table and the drawing.


def test_the_table_tells_every_nodes_share_and_the_band_shows_it() -> None:
    with told_cluster(3) as nodes:
        ran = run("ring", node=address(nodes[1]))
    assert (ran.returncode, ran.stderr) == (0, b"")
    screen = ran.stdout.decode()
    snapshot = nodes[0].ring
    shares = snapshot.shares()
    rows = list(ROW.finditer(screen))
    assert [(row["mark"], row["name"]) for row in rows] == [("A", "node1"), ("B", "node2"), ("C", "node3")]
    drawn = band(screen)
    for row, node in zip(rows, nodes, strict=True):
        share = shares[node.member.id]
        assert float(row["share"]) == pytest.approx(100 * share, abs=0.01)
        assert float(row["of_fair"]) == pytest.approx(3 * share, abs=0.01)
        assert drawn.count(row["mark"]) / len(drawn) == pytest.approx(share, abs=0.05)
        assert address(node) in row[0]
        assert node.member.id[:8] in row[0]
        busiest = max((part, place) for place, part in snapshot.ring.shares().items() if place.node == node.member.id)
        assert f" all at {6 * busiest[0]:.2f} " in row[0]
    assert snapshot.version in screen
    assert "all nodes use this ring" in screen


def test_all_pages_of_nodes_are_asked_for() -> None:
    with told_cluster(30) as nodes:
        found = value_of(run("ring", "--json", node=address(nodes[0])))
    assert [each["id"] for each in found["nodes"]] == [node.member.id for node in nodes]
    assert found["version"] == nodes[0].ring.version
    assert found["agreed"] is True
    shares = nodes[0].ring.shares()
    for each in found["nodes"]:
        assert each["share"] == pytest.approx(shares[each["id"]])
        assert each["of_fair"] == pytest.approx(30 * each["share"])
        assert sum(each["worker_shares"]) == pytest.approx(each["share"])
        assert len(each["worker_shares"]) == each["workers"] == 2


@pytest.mark.parametrize("columns", [1, 44, 300])
def test_no_line_is_longer_than_the_terminal_if_that_is_at_all_wide(columns: int) -> None:
    with told_cluster(5) as nodes:
        screen = run("ring", node=address(nodes[0]), COLUMNS=str(columns)).stdout.decode()
    assert max(map(len, screen.splitlines())) <= max(columns, 40)
    names = [row["name"] for row in ROW.finditer(screen)]
    assert names == [f"node{number}" for number in range(1, 6)]


# Who sees another ring.


def test_nodes_that_are_gone_silent_or_see_another_ring_are_named() -> None:
    with told_cluster(5) as nodes:
        alone = Snapshot([nodes[1].member])
        nodes[1].ring = alone
        nodes[2].silent = True
        nodes[3].hello = {"node": "somebody else"}
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        gone = dataclasses.replace(nodes[4].member, address=Address("127.0.0.1", port))
        nodes[0].ring = Snapshot([*(node.member for node in nodes[:4]), gone])
        asked = ("ring", "--timeout", "500ms")
        ran = run(*asked, node=address(nodes[0]))
        as_json = value_of(run(*asked, "--json", node=address(nodes[0])))
    assert ran.returncode == 0
    screen = ran.stdout.decode()
    assert "1 of 5 nodes use this ring" in screen
    other = re.search(r"^  node2 \(.*\) uses another ring, (\S+): (.*)$", screen, re.MULTILINE)
    assert other, screen
    assert other[1] == alone.version
    assert "node1" in other[2]
    assert "left, and owned" in other[2]
    assert re.search(rf"node3 \({address(nodes[2])}\) did not answer: .* it hangs, or is not a node", screen)
    assert f"node4 ({address(nodes[3])}) is not who answers at its address" in screen
    assert re.search(rf"node5 \(127.0.0.1:{port}\) did not answer: .*refused", screen)
    assert as_json["agreed"] is False
    seen = {each["name"]: each["ring"] for each in as_json["nodes"]}
    assert seen == {"node1": as_json["version"], "node2": alone.version, "node3": None, "node4": None, "node5": None}
    assert all((each["problem"] is None) == (each["name"] == "node1") for each in as_json["nodes"])


def test_silent_nodes_are_waited_for_together_and_not_for_long() -> None:
    with told_cluster(40) as nodes:
        for node in nodes[1:]:
            node.silent = True
        found = json.loads(run("ring", "--json", "--timeout", "500ms", node=address(nodes[0])).stdout)
    assert found["value"]["agreed"] is False
    assert 500 <= found["ms"] < 39 * 500 / 4


# What is no cluster.


@pytest.mark.parametrize("command", [["ring"], ["route", "jobs"]])
@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ([], "the node lists none: it is leaving, and knows no other"),
        ([{"id": "x"}], "of the 1 nodes that the node lists, 1 make no sense"),
        ([None], "the node's answer is not one to :nodes"),
    ],
)
def test_a_node_that_lists_nonsense_is_told_of(command: list[str], lists: list[Any], words: str) -> None:
    with told_cluster(1) as (node,):
        node.lists = lists
        ran = run(*command, node=address(node))
        as_json = run(*command, "--json", node=address(node))
    assert ran.returncode == as_json.returncode == 1
    assert ran.stderr.decode().startswith(f"skywalker: {words}")
    ended = json.loads(as_json.stdout)
    assert ended["status"] == "failed"
    assert ended["message"].startswith(words)


@pytest.mark.parametrize("command", [["ring"], ["route", "jobs"]])
def test_an_older_node_refuses_the_question(command: list[str]) -> None:
    with told_cluster(1) as (node,):
        node.knows_nodes = False
        ran = run(*command, node=address(node))
    assert ran.returncode == 5
    assert ran.stderr == b"skywalker: there is no such method\n"


# route.


@pytest.mark.parametrize(
    ("arguments", "topic"),
    [
        (["jobs"], "jobs"),
        (['{"user": 17}'], {"user": 17}),
        (["17"], 17),
        (["--raw", "17"], "17"),
        (["--msgpack", "cd0005"], 5),  # written at length, and the same topic
        (["--msgpack", "c40101"], b"\x01"),
    ],
)
def test_a_topic_is_routed_to_its_owner(arguments: list[str], topic: Any) -> None:
    with told_cluster(7, workers=3) as nodes:
        found = value_of(run("route", "--json", *arguments, node=address(nodes[0])))
        text = run("route", *arguments, node=address(nodes[6])).stdout.decode()
    ring = nodes[0].ring
    token = token_of(values.pack(topic))
    place = ring.ring.owner(token)
    owner = ring.by_id[place.node]
    assert (found["token"], found["worker"], found["version"]) == (token, place.worker, ring.version)
    assert found["node"] == {key: value for key, value in owner.as_map().items() if key != "tokens"}
    assert text.splitlines() == [
        f"token   {token}",
        f"node    {owner.name} ({owner.address})",
        f"id      {owner.id}",
        f"worker  {place.worker}, of 0 to 2",
    ]


def test_the_example_in_the_docs_has_the_right_token() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "cluster.md").read_text()
    example = re.search(r"\$ skywalker route '(.*)'\ntoken +(-?\d+)\n", page)
    assert example
    assert token_of(values.pack(json.loads(example[1]))) == int(example[2])


# A real node.


def test_a_real_node_is_a_ring_of_itself(node: Node) -> None:
    found = value_of(run("ring", "--json", node=node.address))
    (alone,) = found["nodes"]
    assert (alone["share"], alone["of_fair"], alone["problem"], found["agreed"]) == (1.0, 1.0, None, True)
    assert alone["workers"] == len(alone["worker_shares"]) == 2
    assert sum(alone["worker_shares"]) == pytest.approx(1.0)
    with node.connect() as junction:
        assert alone["id"] == junction.hello()["node"]
        assert alone["tokens"] == junction.tokens()
    screen = run("ring", node=node.address).stdout.decode()
    assert "the node uses this ring" in screen
    assert [row["share"] for row in ROW.finditer(screen)] == ["100.00"]


def test_route_names_the_worker_that_a_real_node_has_the_topic_at(node: Node, topic: str) -> None:
    found = value_of(run("route", topic, "--json", node=node.address))
    with node.connect() as junction:
        workers = junction.hello()["workers"]
    assert found["worker"] == worker_of(found["token"], workers)
    assert found["node"]["port"] == node.port


# The picture.


def test_the_picture_is_what_its_name_says(tmp_path: Path) -> None:
    names = ["plain", "$x_{1}$", "\N{SNOWMAN}\U00020000"]
    with told_cluster(3, names=names) as nodes:
        for name in ("ring.png", "ring.svg"):
            ran = run("ring", "--plot", str(tmp_path / name), node=address(nodes[0]))
            assert (ran.returncode, ran.stderr) == (0, b"")
            assert b"all nodes use this ring" in ran.stdout
    assert (tmp_path / "ring.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(tmp_path / "ring.svg").getroot().tag.endswith("svg")
    assert "$x_{1}$" in (tmp_path / "ring.svg").read_text()


@pytest.mark.parametrize("count", [1, 41])
def test_a_ring_of_any_size_is_drawn(count: int, tmp_path: Path) -> None:
    from skywalker.cli.ring.picture import draw

    luck = random.Random(count)
    draw(ring_of(*(list(tokens(luck)) for _ in range(count))), tmp_path / "ring.svg")
    words = (tmp_path / "ring.svg").read_text()
    assert "a fair share" in words
    assert f"{count} node" in words


def test_nodes_are_awaited_until_they_are_there_and_agree() -> None:
    with told_cluster(2) as nodes:
        both, alone = nodes[0].ring, Snapshot([nodes[0].member])
        assert run("ring", "--await", "2", node=address(nodes[0])).returncode == 0
        nodes[0].ring = alone
        ran = run("ring", "--await", "2", "--timeout", "0.3", node=address(nodes[0]))
        assert (ran.returncode, ran.stdout) == (3, b"")
        assert b"after 0.3 s 1 of 2 nodes are there and agree" in ran.stderr
        later = threading.Timer(0.3, lambda: setattr(nodes[0], "ring", both))
        later.start()
        ran = run("ring", "--await", "2", "--timeout", "30", node=address(nodes[0]))
        later.join()
        assert ran.returncode == 0
        assert b"2 nodes" in ran.stdout


def test_nodes_are_awaited_that_are_only_about_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for longer than any other command would try to connect."""
    monkeypatch.setattr(options, "CONNECT_S", 0.1)
    [port] = free_ports(1)
    asked = ["ring", "--await", "1", "--timeout", f"{60 * time_factor()}", "--node", f"127.0.0.1:{port}"]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(CliRunner().invoke, skywalker_command, asked)
        time.sleep(0.5)
        assert not waiting.done()
        with embedded(port=port):
            assert waiting.result().exit_code == 0
