"""`ping`, `hello`, `tokens` and `topic` against a real node."""

from __future__ import annotations

import json
import re

from skywalker.clients.blocking import Client
from skywalker.embedding import Node
from tests.cli.running import run


def test_ping_says_how_long_it_took(node: Node) -> None:
    ran = run("ping", node=node.address)
    assert ran.returncode == 0
    assert re.fullmatch(rf"{re.escape(node.address)} answered in [0-9]+\.[0-9]{{2}} ms\n", ran.stdout.decode())
    as_json = json.loads(run("ping", "--json", node=node.address).stdout)
    assert as_json["status"] == "answered"


def test_tokens_are_one_a_line_in_ascending_order(node: Node, junction: Client) -> None:
    printed = [int(line) for line in run("tokens", node=node.address).stdout.splitlines()]
    assert printed == sorted(junction.tokens())
    assert json.loads(run("tokens", "--json", node=node.address).stdout)["value"] == printed


def test_hello_is_json_about_the_node(node: Node, junction: Client) -> None:
    printed = json.loads(run("hello", node=node.address).stdout)
    assert printed["version"] == junction.hello()["version"]
    assert printed["workers"] == 2


def test_topic_tells_who_waits(node: Node, junction: Client, topic: str) -> None:
    waiting = junction.begin("take", topic, group="pool")
    printed = json.loads(run("topic", topic, node=node.address).stdout)
    assert printed["takers"] == {"pool": 1}
    assert printed["receivers"] == printed["senders"] == 0
    assert junction.cancel(waiting)


def test_the_node_is_named_by_option_before_variable(node: Node) -> None:
    assert run("ping", "--node", node.address, node="127.0.0.1:1").returncode == 0
