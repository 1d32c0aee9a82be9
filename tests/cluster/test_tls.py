"""A cluster that speaks TLS, whose nodes show that they are some: it goes on as any does, and keeps others out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import psutil

from skywalker.access import token
from tests.authority import Authority
from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.meeting import LONG_MS, meet
from tests.cluster.secured import CLIENT, secured
from tests.helpers import eventually
from tests.workers.wire_client import SECURE, TIMED_OUT, WireClient

LARGE = 60_000


def value_of(topic: str) -> str:
    return (topic * LARGE)[:LARGE]


def begin_large(sender: WireClient, receiver: WireClient, topics: Sequence[str]) -> None:
    for topic in topics:
        receiver.call(":recv!", topic, LONG_MS, topic)
    for topic in topics:
        sender.call(":send!", topic, LONG_MS, topic, value_of(topic))


def assert_large_met(sender: WireClient, receiver: WireClient, topics: Sequence[str]) -> None:
    assert_large_got(receiver, topics)
    assert_large_taken(sender, topics)


def assert_large_got(receiver: WireClient, topics: Sequence[str]) -> None:
    got = {topic: value for _, topic, value in receiver.replies(len(topics), 20.0)}
    assert got.keys() == {*topics}
    assert all(value == value_of(topic) for topic, value in got.items())


def assert_large_taken(sender: WireClient, topics: Sequence[str]) -> None:
    assert {topic for _, topic, result in sender.replies(len(topics), 20.0) if result is True} == {*topics}


def test_large_values_cross_links_whole_and_survive_the_death_of_one_end(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with Cluster(3) as cluster, secured(tmp_path, cluster):
        cluster.start()
        a, b = (closing.enter_context(node.client()) for node in cluster.nodes[:2])
        ring = cluster.snapshot()
        of_each = [[*islice(cluster.topics_of(node, "large", ring), 60)] for node in cluster.nodes]
        every = [topic for topics in of_each for topic in topics]
        begin_large(a, b, every)
        assert_large_met(a, b, every)
        # Those of the third wait there when it is killed; whoever sent them has them still.
        waiting = [*islice(cluster.topics_of(cluster.nodes[2], "waits", ring), 60)]
        for topic in waiting:
            a.call(":send!", topic, LONG_MS, topic, value_of(topic))
        for topic in waiting:
            b.wait_until(topic, senders=1)
        begin_large(a, b, every)
        cluster.nodes[2].kill()
        assert_large_got(b, every)
        # Between handing on a value and saying so it may have died: then that is sent again.
        for topic in of_each[2]:
            b.call(":recv!", topic, 5000, topic)
        assert_large_taken(a, every)
        again = {topic: value for _, topic, value in b.replies(len(of_each[2]), 20.0)}
        assert all(value in (value_of(topic), TIMED_OUT) for topic, value in again.items())
        cluster.settle()
        for topic in waiting:
            b.call(":recv!", topic, LONG_MS, topic)
        assert_large_met(a, b, waiting)


def trouble(node: ClusterNode, words: str) -> None:
    """Wait until a node has said so of its cluster, and assert that it does so once."""
    eventually(lambda: words in node.log, 10.0)
    [line] = [line for line in node.log.splitlines() if words in line]
    assert "event=cluster-trouble" in line


def busy_s(node: ClusterNode) -> float:
    """Return the processor time that a node has used."""
    supervisor = psutil.Process(node.pid)
    return sum(sum(process.cpu_times()[:2]) for process in (supervisor, *supervisor.children()))


def test_one_that_does_not_belong_is_kept_out_and_its_operator_is_told_why(tmp_path: Path) -> None:
    with Cluster(4, workers=1) as cluster:
        first, wrong, plain, hopeful = cluster.nodes
        with secured(tmp_path, cluster, join=first.address) as secure:
            secret = token.new()
            secure.flaws = {
                wrong.name: {"secret": secret},
                plain.name: dict.fromkeys(("tls_cert", "tls_key", "tls_ca")),
                hopeful.name: {"join": plain.address},
            }
            for node in cluster.nodes:
                cluster.revive(node)
            kept_out = "what is there does not let this node in: it said: "
            proves_nothing = "what is there does not prove to be a node of this cluster: it proves nothing, and says: "
            trouble(wrong, f"{proves_nothing}node ")
            for node in (first, wrong):
                assert "knows no secret of this one's: give both the same cluster.secret" in node.log
            trouble(plain, f"{kept_out}this node speaks TLS here, and nothing else")
            trouble(hopeful, "no TLS with what is there: it speaks no TLS")
            assert "it speaks no TLS" in first.log
            for node in (first, wrong):
                assert node.sees() == {node.name}
            # They go on to try, and not without a pause.
            before = {node.name: busy_s(node) for node in cluster.nodes}
            began = time.monotonic()
            eventually(lambda: time.monotonic() - began > 1.5)
            used = {node.name: busy_s(node) - before[node.name] for node in cluster.nodes}
            assert max(used.values()) < 0.4 * (time.monotonic() - began), used
            for node in cluster.nodes:
                assert "Traceback" not in node.log
                assert secret not in node.log
            wrong.end()
            secure.flaws = {}
            cluster.revive(wrong)
            cluster.settle([first, wrong])


def replace(source: str, file: str) -> None:
    """Put what is in one file in the place of another, at once."""
    copied = Path(f"{file}.new")
    copied.write_bytes(Path(source).read_bytes())
    copied.rename(file)


def test_certificates_are_renewed_and_the_authority_changed_while_nodes_are_linked(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with Cluster(3, workers=1) as cluster, secured(tmp_path, cluster) as secure:
        (elsewhere := tmp_path / "later").mkdir()
        later = Authority(elsewhere)
        cert, key = later.sign("node.test", "127.0.0.1")
        both = tmp_path / "both.pem"
        both.write_text(Path(secure.authority.ca).read_text() + Path(later.ca).read_text())
        early, late = cluster.nodes[:2], cluster.nodes[2]
        secure.flaws = {node.name: {"tls_ca": str(both)} for node in early}
        secure.flaws[late.name] = {"tls_cert": cert, "tls_key": key, "tls_ca": later.ca}
        SECURE[late.machine.address, late.port] = later.context(*later.sign(CLIENT))
        cluster.start(*early)
        a, b = (closing.enter_context(node.client()) for node in early)
        meet(a, b, [f"before-{number}" for number in range(40)])
        replace(cert, secure.cert)
        replace(key, secure.key)
        secure.context.load_verify_locations(later.ca)
        # The new one trusts none but the later authority, so whoever it meets has to show what is new.
        cluster.revive(late)
        cluster.settle(within=15.0)
        c = closing.enter_context(late.client())
        for number, (sender, receiver) in enumerate(((a, b), (b, c), (c, a))):
            meet(sender, receiver, [f"after-{number}-{topic}" for topic in range(40)], 15.0)
        for node in early:
            assert "event=certificate-renewed" in node.log
            assert "event=peer-lost" not in node.log, "what is linked stays so"
