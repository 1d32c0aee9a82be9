"""Pub/sub by TLS, for both colours of client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker.access import token
from skywalker.embedding import Node, embedded
from skywalker.errors import Why
from skywalker.pubsub.exchange import MUTE_TRIES
from skywalker.tls.contexts import server_context
from tests.admin.asking import Asker
from tests.authority import Authority
from tests.clients.driving import background
from tests.clients.tls_proxy import TlsProxy, usual_context
from tests.helpers import eventually, time_factor
from tests.pubsub.driving import Broker, Connect

SOON = 10.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def tls_node(authority: Authority) -> Iterator[Node]:
    cert, key = authority.sign("127.0.0.1")
    with embedded(workers=2, tls_cert=cert, tls_key=key, pubsub=True, admin=True) as node:
        yield node


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, str]]:
    """A node that lets nobody in from here but who has the token that comes with it, to ask for its metrics."""
    secret, file = token.new(), tmp_path_factory.mktemp("closed") / "node.toml"
    file.write_text(
        f'[access.web]\nnetwork = "10.99.0.0/16"\npublish = ["*"]\n'
        f'[access.ops]\ntoken = "{token.hash_of(secret)}"\nadmin = true\n'
    )
    with embedded(workers=2, pubsub=True, admin=True, config_file=file) as node:
        yield node, secret


@pytest.fixture
def tls_broker(connect: Connect, tls_node: Node, authority: Authority) -> Broker:
    return connect(f"skywalkers://{tls_node.pubsub_address}", tls=authority.context())


@pytest.fixture
def proxy(node: Callable[[int], Node], authority: Authority) -> Iterator[TlsProxy]:
    """A proxy that speaks TLS in front of a node with one worker that does not."""
    host, _, port = node(1).pubsub_address.rpartition(":")
    with TlsProxy(host, int(port), usual_context(*authority.sign("127.0.0.1"))) as proxy:
        yield proxy


def test_what_is_published_arrives(tls_broker: Broker, topic: str) -> None:
    with tls_broker.subscribe(topic) as messages:
        for payload in (b"", b"one", b"x" * 65_535):
            tls_broker.publish(topic, payload)
            assert messages.get(SOON).payload == payload


def test_a_flood_arrives_whole_and_in_order_however_its_records_are_cut(
    connect: Connect, proxy: TlsProxy, authority: Authority, topic: str
) -> None:
    proxy.piece = 1000
    broker = connect(proxy.address, tls=authority.context())
    with broker.subscribe(topic) as messages:
        asked = [broker.begin(topic, b"%d " % number + b"x" * 5000, timeout=3 * SOON) for number in range(300)]
        got = [messages.get(SOON).payload.split()[0] for _ in asked]
        for each in asked:
            each.result()
    assert got == [b"%d" % number for number in range(300)]


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_subscription_outlives_its_connection(
    connect: Connect, proxy: TlsProxy, authority: Authority, topic: str, says_goodbye: bool
) -> None:
    proxy.says_goodbye = says_goodbye
    broker = connect(proxy.address, tls=authority.context())
    with broker.subscribe(topic) as messages:
        waiting = background(lambda: messages.get(2 * SOON))  # the blocking one reads only while somebody waits
        proxy.cut()
        eventually(lambda: messages.gaps == 1, within=SOON)
        broker.publish(topic, "after")
        assert waiting.result(2 * SOON * time_factor()).payload == b"after"


def refused(connect: Connect, where: str, **options: Any) -> str:
    """Return what is said where no publish can be acknowledged."""
    with pytest.raises((skywalker.Unreachable, skywalker.Unauthorized)) as caught:
        connect(where, connect_timeout=0.5 * time_factor(), **options).publish("t", "v", timeout=0.5 * time_factor())
    return str(caught.value)


def test_why_there_is_no_connection_is_told(
    connect: Connect, node: Callable[[int], Node], authority: Authority, tmp_path: Path
) -> None:
    tls = authority.context()
    host, _, port = node(1).pubsub_address.rpartition(":")
    assert "speaks n" in refused(connect, node(1).pubsub_address, tls=tls)
    for name, says in (("other.example", "for other names"), ("127.0.0.1", "no authority that is trusted")):
        signer = authority if name == "other.example" else Authority(tmp_path)
        with TlsProxy(host, int(port), server_context(*signer.sign(name, file="wrong"))) as proxy:
            assert says in refused(connect, proxy.address, tls=tls)
    with TlsProxy(host, int(port), server_context(*authority.sign("127.0.0.1"), authority.ca, required=True)) as proxy:
        assert "wants a certificate" in refused(connect, proxy.address, tls=tls)
        with_one = authority.context(*authority.sign("client.example", file="client"))
        connect(proxy.address, tls=with_one).publish("t", "v")


def ended_at_once(do: Callable[[], object]) -> skywalker.SkywalkerError:
    """Return how something ends that has far more time than it takes to be refused."""
    began = time.monotonic()
    with pytest.raises((skywalker.Unreachable, skywalker.Unauthorized)) as caught:
        do()
    assert time.monotonic() - began < 4.0 * time_factor()
    return caught.value


def asking(connect: Connect, where: str, **options: Any) -> tuple[Callable[[], object], ...]:
    """Return ways to ask something of a node, with time for many attempts."""
    return (
        lambda: connect(where, **options).publish("t", "v", timeout=6 * SOON),
        lambda: connect(where, **options).subscribe("t", timeout=6 * SOON),
    )


def more_than(before: float, asker: Asker, metric: str, **labels: str) -> float:
    """Return the metric, or 0 while it is no more than before: what is told may be a moment old."""
    now = asker.metric(f"skywalker_{metric}", **labels)
    return now if now > before else 0.0


def test_a_client_that_speaks_no_tls_is_told_at_once_that_the_node_does(
    connect: Connect, tls_node: Node, authority: Authority
) -> None:
    asker = Asker(tls_node.admin_address, authority.context())
    for ask in asking(connect, tls_node.pubsub_address):
        before = asker.metric("skywalker_handshakes_failed_total")
        error = ended_at_once(ask)
        assert isinstance(error, skywalker.Unauthorized)
        assert error.why is Why.TLS_WANTED
        assert f"skywalkers://{tls_node.pubsub_address}" in str(error)
        now = eventually(lambda was=before: more_than(was, asker, "handshakes_failed_total"))
        assert now <= before + 4  # some of the one before, which are just closed


def test_so_is_one_that_does_not_trust_the_node_or_lacks_a_certificate(
    connect: Connect, node: Callable[[int], Node], authority: Authority, tmp_path: Path
) -> None:
    host, _, port = node(1).pubsub_address.rpartition(":")
    stranger = Authority(tmp_path, "another").sign("127.0.0.1", file="stranger")
    for context, why in (
        (server_context(*stranger), Why.STRANGE_AUTHORITY),
        (server_context(*authority.sign("127.0.0.1"), authority.ca, required=True), Why.CERTIFICATE_WANTED),
    ):
        with TlsProxy(host, int(port), context) as proxy:
            for ask in asking(connect, proxy.address, tls=authority.context()):
                before = proxy.accepted
                error = ended_at_once(ask)
                assert error.why is why
                assert isinstance(error, skywalker.Unauthorized) == why.is_about_us
                assert proxy.accepted <= before + 2


def test_so_is_one_that_the_node_does_not_know_though_the_dialect_has_no_word_for_it(
    connect: Connect, closed: tuple[Node, str]
) -> None:
    node, secret = closed
    asker = Asker(node.admin_address, headers={"Authorization": f"Bearer {secret}"})
    for ask in asking(connect, node.pubsub_address):
        before = asker.metric("skywalker_errors_total", code="unauthorized")
        error = ended_at_once(ask)
        assert isinstance(error, skywalker.Unauthorized)
        assert error.why is Why.MUTE
        now = eventually(lambda was=before: more_than(was, asker, "errors_total", code="unauthorized"))
        assert now <= before + MUTE_TRIES + 1


def test_a_subscription_that_was_let_in_before_goes_on_until_it_is_again(
    connect: Connect, proxy: TlsProxy, authority: Authority, tmp_path: Path, topic: str
) -> None:
    good = proxy.context
    broker = connect(proxy.address, tls=authority.context())
    with broker.subscribe(topic) as messages:
        waiting = background(lambda: messages.get(6 * SOON))
        proxy.context = server_context(*Authority(tmp_path, "another").sign("127.0.0.1", file="renewed"))
        accepted = proxy.accepted
        proxy.cut()
        eventually(lambda: proxy.accepted >= accepted + 3, within=SOON)
        proxy.context = good
        eventually(lambda: messages.gaps == 1, within=SOON)
        broker.publish(topic, "after", timeout=3 * SOON)
        assert waiting.result(6 * SOON * time_factor()).payload == b"after"


@pytest.mark.parametrize("where", ["unix:///run/door", "skywalkers://me@host", "skywalkers://"])
def test_what_is_no_address_of_pub_sub_is_refused(connect: Connect, where: str) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="host:"):
        connect(where, connect_timeout=0)


def test_the_usual_port_is_that_of_pub_sub_by_tls_too(connect: Connect) -> None:
    with pytest.raises(skywalker.Unreachable, match=r"127\.0\.0\.1:61626"):
        connect("skywalkers://127.0.0.1", connect_timeout=0)
