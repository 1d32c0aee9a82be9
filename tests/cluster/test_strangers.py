"""Whoever is named where nodes of a cluster are looked for, and is none of them: they own nothing, and get nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker.access import token
from skywalker.silk import Keys
from tests.admin.asking import Asker
from tests.cli.running import run
from tests.cluster.clusters import Cluster, ClusterNode, Consul, Discovery, Silk
from tests.cluster.meeting import begin, meet
from tests.cluster.secured import BY_CERTIFICATE, secured
from tests.cluster.test_tls import trouble
from tests.discovery import consul_agent
from tests.discovery.consul_agent import ConsulAgent
from tests.helpers import eventually
from tests.workers.dialled import Dialled
from tests.workers.told_node import ToldNode
from tests.workers.wire_client import ConnectionEnded, refusal

SECRET, TOKEN = token.new(), token.new()
TOPICS = 60

ACCESS = f"""
[access.nodes]
token = "{token.hash_of(SECRET)}"
node = true
[access.web]
token = "{token.hash_of(TOKEN)}"
send = ["*"]
recv = ["*"]
[access.clients]
network = "127.0.0.0/8"
send = ["*"]
recv = ["*"]
admin = true
"""

NOT_LET_IN = "what is there does not let this node in: it said: "
NOT_PROVEN = "what is there does not prove to be a node of this cluster"


class Guarded:
    """A way to find each other, by which those are found, too, that have no part in the secret."""

    def __init__(self, way: Discovery, directory: Path, strangers: frozenset[str], **more: object) -> None:
        self.where = way.where
        self._way = way
        self._strangers = strangers
        self._access = directory / "access.toml"
        self._access.write_text(ACCESS)
        self._more = more

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        told = {**self._way.settings(node), **self._more}
        return told if node.name in self._strangers else {**told, "config_file": self._access, "secret": SECRET}


def guard(way: str, cluster: Cluster, directory: Path, closing: contextlib.ExitStack, **more: object) -> None:
    """Have all find each other, of whom the last is no node of the others' cluster."""
    if way == "consul":
        consul_agent.require()
        cluster.discovery = Consul(closing.enter_context(ConsulAgent()).address, "skywalker-cluster")
    elif way == "silk":
        # They have to be there where access is limited; whoever has them is a member, and no node for that.
        keys = directory / "silk.keys"
        Keys.generate().save(keys)
        cluster.discovery = Silk(cluster.nodes, keys=keys)
    cluster.discovery = Guarded(cluster.discovery, directory, frozenset({cluster.nodes[-1].name}), **more)


def meet_without(stranger: ClusterNode, a: ClusterNode, b: ClusterNode) -> None:
    """Have two nodes' clients meet on many topics, and a stranger's, who waits on all of them, get nothing."""
    topics = [f"topic-{number}" for number in range(TOPICS)]
    with a.client() as sends, b.client() as receives, stranger.client() as listens:
        begin(listens, ":recv!", topics)
        meet(sends, receives, topics)
        assert not listens.has_input()


@pytest.mark.parametrize("way", ["silk", "consul"])
def test_who_does_not_know_the_secret_owns_nothing_and_gets_nothing(
    way: str, tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with Cluster(3) as cluster:
        guard(way, cluster, tmp_path, closing)
        a, b, stranger = cluster.nodes
        for node in cluster.nodes:
            cluster.revive(node)
        cluster.settle([a, b])
        for node in (a, b):
            eventually(lambda node=node: f'{stranger.address} reason="{NOT_PROVEN}' in node.log, 10.0)
        eventually(lambda: NOT_LET_IN in stranger.log, 10.0)
        eventually(lambda: "event=taken-for-no-node" in stranger.log, 10.0)
        meet_without(stranger, a, b)
        for node in (a, b):
            assert node.sees() == {a.name, b.name}
        for node in cluster.nodes:
            assert SECRET not in node.log
            assert "Traceback" not in node.log


def test_a_stranger_is_named_by_the_ring_the_figures_the_console_and_the_doctor(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with Cluster(2, workers=1) as cluster:
        guard("list", cluster, tmp_path, closing)
        a, stranger = cluster.nodes
        cluster.revive(stranger)
        settings = dict(cluster.discovery.settings(a))
        a.start(**settings, admin=True)
        asker = Asker(a.admin_address)
        named = eventually(lambda: asker.json("/api/ring")["unproven"], 10.0)
        assert [each["address"] for each in named] == [stranger.address]
        assert named[0]["reason"].startswith(NOT_PROVEN)
        assert asker.metric("skywalker_ring_unproven", address=stranger.address) == 1
        eventually(lambda: asker.json("/api/state")["ring"]["unproven"] == [stranger.address])
        ran = run("ring", "--node", a.address)
        assert f"not in the ring: {stranger.address}, as {a.name}".encode() in ran.stdout
        told = json.loads(run("ring", "--json", "--node", a.address).stdout)["value"]["nodes"]
        assert [*told[0]["unproven"]] == [stranger.address]
        config = tmp_path / "doctor.toml"
        config.write_text(
            f"port = {a.port}\nadmin_port = {a.admin_address.rpartition(':')[2]}\n"
            f'{ACCESS}\n[cluster]\njoin = "{settings["join"]}"\nsecret = "{SECRET}"\n'
        )
        ran = run("doctor", "--config", str(config), "--json")
        checks = json.loads(ran.stdout)["checks"]
        [found] = [check for check in checks if check["name"] == "cluster"]
        assert found["level"] == "fail"
        assert found["found"].startswith(f"{stranger.address}: {NOT_PROVEN}")
        assert "cluster.secret" in found["advice"]
        stranger.kill()
        eventually(lambda: asker.json("/api/ring")["unproven"] == [], 15.0)


def test_who_only_listens_where_a_node_should_be_hears_no_secret_no_token_and_no_value(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    class Spy(ToldNode):
        heard: list[Any]

        def _answer(self, message: list[Any]) -> bytes:
            self.heard.append(message)
            return super()._answer(message)

    with Spy() as spy, Cluster(2, workers=1) as cluster:
        spy.heard = []
        a, b = cluster.nodes
        cluster.discovery = Guarded(
            cluster.discovery, tmp_path, frozenset(), join=f"{a.address},{b.address},{spy.address}"
        )
        cluster.start()
        eventually(lambda: len(spy.heard) > 2)
        where = f"{a.address},{b.address}"
        with skywalker.connect(where, token=TOKEN) as sends, skywalker.connect(where, token=TOKEN) as receives:
            topics = [f"topic-{number}" for number in range(TOPICS)]
            got: list[Any] = []
            waits = threading.Thread(target=lambda: got.extend(receives.recv(topic, timeout=30) for topic in topics))
            waits.start()
            for topic in topics:
                sends.send(topic, topic, timeout=30)
            waits.join()
            assert got == topics
        methods = {message[0] for message in spy.heard}
        assert methods == {":challenge"}, "nothing is said but what has to be proved first"
        assert not any(secret in repr(message) for message in spy.heard for secret in (SECRET, TOKEN))


def test_a_certificate_of_the_same_authority_that_is_no_nodes_is_not_enough(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with Cluster(3, workers=1) as cluster, secured(tmp_path, cluster, BY_CERTIFICATE) as secure:
        a, b, stranger = cluster.nodes
        cert, key = secure.authority.sign("web.test", "127.0.0.1")
        secure.flaws = {stranger.name: {"tls_cert": cert, "tls_key": key}}
        for node in cluster.nodes:
            cluster.revive(node)
        cluster.settle([a, b], within=15.0)
        for node in (a, b):
            trouble(node, f"{NOT_PROVEN}: it shows no certificate of a node")
        eventually(lambda: NOT_LET_IN in stranger.log, 10.0)
        eventually(lambda: "event=taken-for-no-node" in stranger.log, 10.0)
        meet_without(stranger, a, b)
        assert stranger.sees() == {stranger.name}


class Tap(Dialled):
    """Somebody on the way to an address, who hands on all that is said there, and back, and keeps a copy."""

    def __init__(self, to: tuple[str, int]) -> None:
        super().__init__(self._between)
        self._to = to
        self.address = str(self.member.address)
        self.said: list[bytearray] = []  # by those who connect
        self.answered: list[bytearray] = []

    def _between(self, near: socket.socket) -> None:
        with socket.create_connection(self._to) as far:
            said, answered = bytearray(), bytearray()
            self.said.append(said)
            self.answered.append(answered)
            back = threading.Thread(target=_hand_on, args=[far, near, answered])
            back.start()
            _hand_on(near, far, said)
            back.join()

    def heard(self) -> bytes:
        """Return all of it."""
        return b"".join(map(bytes, (*self.said, *self.answered)))


def _hand_on(source: socket.socket, to: socket.socket, copy: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            copy += data
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)


def test_a_list_that_leads_to_a_node_by_another_address_makes_it_known_at_its_own(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with Cluster(2, workers=1) as cluster:
        a, b = cluster.nodes
        balancer = closing.enter_context(Tap((b.machine.address, b.port)))
        way = Guarded(cluster.discovery, tmp_path, frozenset(), join=balancer.address)
        for node in (b, a):
            node.start(**way.settings(node), admin=True)
        cluster.settle()
        asker = Asker(a.admin_address)
        assert {each["address"] for each in asker.json("/api/ring")["members"]} == {a.address, b.address}
        told = f"the node that answers there says that it is reached at {b.address}"
        trouble(a, f"a node is there that is reached elsewhere: {told}")
        assert not asker.json("/api/ring")["unproven"]
        sends, receives = (closing.enter_context(node.client()) for node in (a, b))
        balancer.said.clear()
        meet(sends, receives, [f"topic-{number}" for number in range(TOPICS)])
        assert b"topic-" not in balancer.heard(), "calls go to the node itself"


def test_whoever_is_on_the_way_between_two_nodes_hears_no_secret_and_poses_as_neither_later(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with Cluster(2, workers=1) as cluster:
        a, b = cluster.nodes
        tap = closing.enter_context(Tap((b.machine.address, b.port)))
        way = Guarded(cluster.discovery, tmp_path, frozenset(), join=tap.address)
        cluster.discovery = way
        b.start(**way.settings(b), advertise=tap.address)
        a.start(**way.settings(a))
        cluster.settle()
        sends, receives = (closing.enter_context(node.client()) for node in (a, b))
        for number in range(TOPICS):  # so that the link is made from there
            sends.ask(":recv!", number, 100, f"topic-{number}")
        meet(sends, receives, [f"topic-{number}" for number in range(TOPICS)])
        heard = tap.heard()
        assert b":challenge" in heard
        assert b":proof" in heard
        assert b"value of topic-" in heard, "without TLS it is as on any connection"
        assert SECRET.encode() not in heard
        assert SECRET[4:].encode() not in heard
        links = [bytes(said) for said in tap.said if b":peer" in said]
        assert len(links) >= 2, "of the agent and of the worker"
        for said in links:
            with b.client() as thief:
                thief.write(said)
                with contextlib.suppress(ConnectionEnded, ConnectionError):
                    first = thief.reply()
                    assert first[0] == ":challenge"
                    assert refusal(thief.reply()).code == "unauthorized"
                    thief.wait_for_end()
        assert "event=guest-left" not in b.log, "none of them has become a link, or ended one"


def test_the_secret_is_replaced_by_reloads_and_nobody_is_left_out(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    old, new = token.new(), token.new()

    def knows(node: ClusterNode, *secrets: str) -> Path:
        hashes = ", ".join(f'"{token.hash_of(each)}"' for each in secrets)
        file = tmp_path / f"{node.name}.toml"
        file.write_text(
            ACCESS.replace(f'"{token.hash_of(SECRET)}"', f"[{hashes}]")
            + f'[cluster]\njoin = "{cluster.discovery.where}"\nsecret = "{" ".join(secrets)}"\n'
        )
        return file

    with Cluster(2, workers=1, drain_timeout_s=0.5) as cluster:
        a, b = cluster.nodes
        for node in (a, b):
            node.start(config_file=knows(node, old))
        cluster.settle()
        for step, secrets in enumerate(((new, old), (new,))):
            for node in (a, b):
                knows(node, *secrets)
                os.kill(node.pid, signal.SIGHUP)
                eventually(lambda node=node, step=step: node.log.count("event=reloaded") > step, 15.0)
                cluster.settle(within=15.0)
                with a.client() as sends, b.client() as receives:
                    meet(sends, receives, [f"topic-{step}-{node.name}-{number}" for number in range(20)])
        b.kill()
        b.start(config_file=tmp_path / f"{b.name}.toml")
        cluster.settle(within=15.0)
        for node in (a, b):
            assert NOT_PROVEN not in node.log
            assert not any(secret in node.log for secret in (old, new))
