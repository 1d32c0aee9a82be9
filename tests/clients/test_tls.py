"""Clients by TLS, of both colours: what TLS may do to a connection, and how it is told that there will be none."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker import aio
from skywalker.embedding import Node, embedded
from skywalker.tls.contexts import server_context
from tests.authority import Authority
from tests.clients.driving import Driver, Place, background
from tests.clients.proxy import Proxy
from tests.clients.scripted import ScriptedNode
from tests.clients.spying import SOON, Spy, connections, meet, meet_until_direct
from tests.clients.tls_proxy import TlsProxy, usual_context
from tests.helpers import eventually, time_factor

BIG = 30_000

MakePlace = Callable[..., Place]


@pytest.fixture
def join(make_place: MakePlace, tls_node: Node, authority: Authority) -> Callable[..., Driver]:
    """Return a function that makes a client of the node by TLS."""
    return lambda **options: make_place(f"skywalkers://{tls_node.address}", tls=authority.context()).join(**options)


@pytest.fixture
def tls_proxy(node: Callable[[int], Node], authority: Authority) -> Iterator[TlsProxy]:
    """A proxy that speaks TLS in front of a node with one worker that does not."""
    at = node(1)
    with TlsProxy(at.host, at.port, usual_context(*authority.sign("127.0.0.1"))) as proxy:
        yield proxy


@pytest.fixture
def behind(make_place: MakePlace, tls_proxy: TlsProxy, authority: Authority) -> Driver:
    return make_place(tls_proxy.address, tls=authority.context()).join(direct=False)


# What it does.


def test_calls_go_straight_to_every_worker(join: Callable[..., Driver], tls_node: Node, spy: Spy, topic: str) -> None:
    junction = join()
    meet_until_direct(junction, spy, topic)
    assert connections(tls_node.port) >= 2


def test_direct_connections_are_held_to_the_name_that_was_dialled(
    make_place: MakePlace, authority: Authority, spy: Spy, topic: str
) -> None:
    cert, key = authority.sign("localhost", file="by-name")
    with embedded(workers=2, tls_cert=cert, tls_key=key) as node:
        junction = make_place(f"skywalkers://localhost:{node.port}", tls=authority.context()).join()
        meet_until_direct(junction, spy, topic)
        junction.close()


@pytest.mark.parametrize("turns", range(8))
def test_a_client_is_closed_just_as_its_connection_is_lost(tls_node: Node, authority: Authority, turns: int) -> None:
    async def close_late() -> None:
        junction = await aio.connect(tls_node.address, tls=authority.context(), direct=False)
        [link] = junction._driver._links
        link.transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        for _ in range(turns):
            await asyncio.sleep(0)
        await junction.close()

    asyncio.run(close_late())


def test_what_the_machine_trusts_is_trusted_unless_told_otherwise(
    make_place: MakePlace, tls_node: Node, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", authority.ca)
    assert make_place(f"skywalkers://{tls_node.address}").join().ping()
    assert make_place(tls_node.address, tls=True).join().ping()


def test_the_tickets_that_follow_a_handshake_end_no_waiting(behind: Driver, topic: str) -> None:
    # They come alone, and are no answer.
    began = time.monotonic()
    with pytest.raises(skywalker.TimedOut):
        behind.recv(topic, timeout=0.3)
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_calls_survive_the_end_of_their_connection_with_a_last_word_or_without(
    behind: Driver, tls_proxy: TlsProxy, node: Callable[[int], Node], topic: str, says_goodbye: bool
) -> None:
    tls_proxy.says_goodbye = says_goodbye
    with node(1).connect() as beside:
        call = behind.begin("recv", topic, timeout=SOON)
        for _ in range(2):
            eventually(lambda: beside.topic(topic)["receivers"] == 1, within=SOON)
            accepted = tls_proxy.accepted
            waiting = background(call.result)
            tls_proxy.cut()
            eventually(lambda accepted=accepted: tls_proxy.accepted > accepted, within=SOON)
        eventually(lambda: beside.topic(topic)["receivers"] == 1, within=SOON)
        assert beside.send(topic, "v", timeout=SOON)
    assert waiting.result(SOON * time_factor()) == "v"


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_blocking_client_knows_that_its_connection_has_ended_before_it_sends(
    tls_proxy: TlsProxy, authority: Authority, node: Callable[[int], Node], topic: str, says_goodbye: bool
) -> None:
    tls_proxy.says_goodbye = says_goodbye
    where, tls = tls_proxy.address, authority.context()
    with skywalker.connect(node(1).address) as other, skywalker.connect(where, tls=tls, resend=False) as junction:
        tls_proxy.cut()
        time.sleep(0.2)  # for the end to come
        received = other.begin("recv", topic, timeout=SOON)
        assert junction.send(topic, 1, timeout=SOON)
        assert received.result() == 1


def test_a_node_that_reads_no_more_holds_up_only_the_calls_to_it(
    behind: Driver, tls_proxy: TlsProxy, topic: str
) -> None:
    meet(behind, topic)
    tls_proxy.has_stopped_reading = True
    done = threading.Event()

    def flood() -> None:
        with contextlib.suppress(skywalker.SkywalkerError):
            for number in range(2000):
                behind.begin("send", [topic, number], "x" * BIG, timeout=4 * SOON)
        done.set()

    flooding = background(flood)
    assert not done.wait(1.0)  # it does not buffer sixty megabytes
    behind.close()
    flooding.result(SOON * time_factor())


def test_after_a_fork_parent_and_child_have_sessions_of_their_own(
    tls_node: Node, authority: Authority, spy: Spy, topic: str
) -> None:
    with skywalker.connect(f"skywalkers://{tls_node.address}", tls=authority.context()) as junction:
        meet_until_direct(junction, spy, topic)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                meet_until_direct(junction, spy, f"{topic} of the child")
                junction.close()
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        spy.forget()
        for number in range(50):
            meet(junction, [topic, number])
        assert spy.forwarded == 0


# Why it does not.


def refused(join: Callable[[], Driver]) -> str:
    """Return what is said where no connection can be had, or none that lasts for a call."""
    with pytest.raises((skywalker.Unreachable, skywalker.Unauthorized)) as caught:
        join().ping(timeout=0.5 * time_factor())
    return str(caught.value)


def dated(authority: Authority, days: int) -> tuple[str, str]:
    """Return the files of a certificate whose time began and ends so many days later than usual."""
    then = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    clock = types.SimpleNamespace(now=lambda zone: then)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skywalker.tls.authority.datetime", clock)
        return authority.sign("127.0.0.1", file=f"dated{days}")


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("other", "other names .*127.0.0.1"),
        ("stranger", "no authority that is trusted"),
        ("old", "has expired"),
        ("young", "not valid yet"),
    ],
)
def test_a_certificate_that_does_not_hold_is_told_with_what_to_do(
    make_place: MakePlace, node: Callable[[int], Node], authority: Authority, tmp_path: Path, what: str, says: str
) -> None:
    cert, key = {
        "other": lambda: authority.sign("other.example"),
        "stranger": lambda: Authority(tmp_path).sign("127.0.0.1"),
        "old": lambda: dated(authority, -9),
        "young": lambda: dated(authority, 9),
    }[what]()
    at = node(1)
    with TlsProxy(at.host, at.port, server_context(cert, key)) as proxy:
        text = refused(
            lambda: make_place(proxy.address, tls=authority.context()).join(connect_timeout=0.5 * time_factor())
        )
        assert f"127.0.0.1:{proxy.port}: its certificate" in text
        assert re.search(says, text), text
        assert proxy.shaken == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_node_that_wants_a_certificate_says_so_and_takes_one_of_its_authority(
    make_place: MakePlace, node: Callable[[int], Node], authority: Authority, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    context = server_context(*authority.sign("127.0.0.1"), authority.ca, minimum="1.2", required=True)
    context.maximum_version = version
    at = node(1)
    with TlsProxy(at.host, at.port, context) as proxy:

        def join(*files: str) -> Driver:
            tls = authority.context(*files)
            return make_place(proxy.address, tls=tls).join(connect_timeout=0.5 * time_factor())

        assert "wants a certificate" in refused(join)
        stranger = Authority(tmp_path).sign("client.example")
        assert "authority that it does not trust" in refused(lambda: join(*stranger))
        assert join(*authority.sign("client.example", file="client")).ping()


def test_a_node_that_speaks_no_tls_is_told_apart(
    make_place: MakePlace, node: Callable[[int], Node], scripted: ScriptedNode, authority: Authority
) -> None:
    def join(address: str) -> Driver:
        return make_place(address, tls=authority.context()).join(connect_timeout=0.5 * time_factor())

    assert "it speaks no TLS" in refused(lambda: join(node(1).address))

    def answer(data: bytes) -> None:
        connection = scripted.next_connection()
        if data:
            connection.write_bytes(data)
        connection.close()

    for data in (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x01\xc0"):
        background(lambda data=data: [answer(data) for _ in range(100)])  # type: ignore[misc]
        assert "speaks n" in refused(lambda: join(scripted.address))


def test_whom_it_has_trusted_before_it_tries_again_while_there_is_time(
    make_place: MakePlace, node: Callable[[int], Node], authority: Authority, tmp_path: Path, topic: str
) -> None:
    good = server_context(*authority.sign("127.0.0.1"))
    wrong = server_context(*Authority(tmp_path, "another").sign("127.0.0.1", file="wrong"))
    at = node(1)
    with TlsProxy(at.host, at.port, good) as proxy:
        junction = make_place(proxy.address, tls=authority.context()).join(direct=False)
        meet(junction, topic)
        proxy.context = wrong
        call = junction.begin("recv", topic, timeout=3 * SOON)
        waiting = background(call.result)
        proxy.cut()
        accepted = proxy.accepted
        eventually(lambda: proxy.accepted >= accepted + 2, within=SOON)  # which it does not trust
        proxy.context = good
        with node(1).connect() as beside:
            assert beside.send(topic, "v", timeout=3 * SOON)
        assert waiting.result(3 * SOON * time_factor()) == "v"
        junction.close()


def test_a_client_that_speaks_no_tls_is_told_at_once_that_the_node_does(make_place: MakePlace, tls_node: Node) -> None:
    began = time.monotonic()
    with pytest.raises(skywalker.Unauthorized, match=f"skywalkers://{tls_node.address}: .* tls=") as caught:
        make_place(tls_node.address).join().recv("t", timeout=SOON)
    assert caught.value.why is skywalker.errors.Why.TLS_WANTED
    with pytest.raises(skywalker.Unauthorized, match=f"skywalkers://{tls_node.address}: .* tls="):
        make_place(tls_node.address).join(name="plain")
    assert time.monotonic() - began < SOON / 2


def test_a_door_for_pub_sub_that_speaks_tls_is_not_taken_for_that_for_clients(
    make_place: MakePlace, tls_node: Node
) -> None:
    with pytest.raises(skywalker.Unauthorized, match="not the door for clients, usually port 3443, or it speaks TLS"):
        make_place(tls_node.pubsub_address).join()


def test_a_handshake_that_never_ends_takes_no_longer_than_an_attempt(
    make_place: MakePlace, node: Callable[[int], Node], authority: Authority
) -> None:
    began = time.monotonic()
    with Proxy(node(1).host, node(1).port) as proxy:
        proxy.stall()
        text = refused(lambda: make_place(proxy.address, tls=authority.context()).join(connect_timeout=0.3))
    assert "no answer by TLS" in text
    assert time.monotonic() - began < SOON


@pytest.mark.parametrize(
    ("where", "tls", "says"),
    [
        ("skywalkers://host", False, "tls=False forbids"),
        ("host", "yes", "type str, allowed"),
        ("host", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), "for servers"),
        ("unix:///run/door", True, "knows no TLS"),
    ],
)
def test_what_tls_cannot_be_is_refused(make_place: MakePlace, where: str, tls: Any, says: str) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match=says):
        make_place(where, tls=tls).join(connect_timeout=0)


def test_without_tls_no_openssl_is_loaded(node: Callable[[int], Node]) -> None:
    program = f"""
import sys, skywalker
with skywalker.connect({node(1).address!r}) as junction:
    assert junction.ping()
assert not {{"ssl", "_ssl"}} & sys.modules.keys()
"""
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
