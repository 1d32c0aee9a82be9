"""Where nodes listen: TCP and IPC, IPv6, any address, and places that are taken."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zmq

from skywalker import silk
from skywalker.address import Address
from skywalker.errors import ConfigError, LocalProtocolError, Unreachable
from skywalker.silk.endpoints import address_of, beside, endpoint, is_endpoint
from skywalker.wire.silk import MAX_NAME
from tests.silk.driving import hear_each_other, keepalive, met, run

REAL = True
"""What only real sockets, threads or clocks show."""


async def talk(one: silk.Node, other: silk.Node) -> None:
    """Have two nodes meet, and use every kind of way between them."""
    await one.join(other.info.router)
    await met(one, other)
    other.handle("echo", lambda data: data)
    assert await one.request(other.id, "echo", "ü") == "ü"
    await hear_each_other(one, other)


def free_port(host: str = "127.0.0.1") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])


def test_a_port_of_0_becomes_the_one_that_it_is() -> None:
    async def main() -> None:
        port = free_port()
        async with silk.Node() as one, silk.Node("tcp://127.0.0.1:*", f"127.0.0.1:{port}") as other:
            for endpoint in (one.info.router, one.info.pub, other.info.router):
                host, _, found = endpoint.removeprefix("tcp://").rpartition(":")
                assert (host, int(found) > 0) == ("127.0.0.1", True)
            assert other.info.pub == f"tcp://127.0.0.1:{port}"
            await talk(one, other)

    run(main())


def test_nodes_meet_by_ipv6() -> None:
    async def main() -> None:
        async with (
            silk.Node("tcp://[::1]:0", "tcp://[::1]:0") as one,
            silk.Node("[::1]:7444", "tcp://[::1]:*") as other,
        ):
            assert one.info.router.startswith("tcp://[::1]:")
            assert other.info.router == "tcp://[::1]:7444"
            await talk(one, other)
            assert [info.router for info in await asyncio.to_thread(silk.ask, "[::1]:7444")] == [
                other.info.router,
                one.info.router,
            ]

    run(main())


def test_a_node_is_joined_by_name() -> None:
    async def main() -> None:
        async with silk.Node(keepalive=keepalive()) as one, silk.Node(keepalive=keepalive()) as other:
            port = other.info.router.rpartition(":")[2]
            await one.join(f"localhost:{port}")
            await met(one, other)
            # By that other name of its own endpoint, too.
            await other.join(f"tcp://localhost:{port}")
            assert {info.id for info in await asyncio.to_thread(silk.ask, f"localhost:{port}")} == {one.id, other.id}

    run(main())


@pytest.mark.parametrize("wildcard", ["tcp://0.0.0.0:0", "tcp://*:0", "tcp://[::]:0"])
def test_a_node_on_all_addresses_says_where_others_reach_it(wildcard: str) -> None:
    async def main() -> None:
        host = "::1" if "[" in wildcard else "127.0.0.1"
        shown = f"[{host}]" if ":" in host else host
        async with silk.Node(wildcard, wildcard, advertise=host) as one, silk.Node() as other:
            for endpoint in (one.info.router, one.info.pub):
                assert endpoint.startswith(f"tcp://{shown}:")
                assert int(endpoint.rpartition(":")[2]) > 0
            await talk(other, one)

    run(main())


@pytest.mark.parametrize("wildcard", ["tcp://0.0.0.0:0", "tcp://*:0", "tcp://[::]:0"])
@pytest.mark.parametrize("place", ["router", "pub"])
def test_a_node_on_all_addresses_has_to_say_where_it_is_reached(wildcard: str, place: str) -> None:
    async def main() -> None:
        with pytest.raises(LocalProtocolError, match="say by advertise="):
            await silk.Node(**{place: wildcard}).open()

    run(main())


def test_a_name_to_be_reached_by_may_be_any(tmp_path: Path) -> None:
    async def main() -> None:
        async with silk.Node("tcp://127.0.0.1:0", f"ipc://{tmp_path}/pub", advertise="localhost") as one:
            assert one.info.router.startswith("tcp://localhost:")
            assert one.info.pub == f"ipc://{tmp_path}/pub"
            async with silk.Node() as other:
                await talk(other, one)

    run(main())


@pytest.mark.parametrize("kind", ["tcp", "ipc"])
@pytest.mark.parametrize("place", ["router", "pub"])
def test_an_endpoint_that_is_taken_is_named_and_its_owner_keeps_it(kind: str, place: str, tmp_path: Path) -> None:
    async def main() -> None:
        mine = f"tcp://127.0.0.1:{free_port()}" if kind == "tcp" else f"ipc://{tmp_path}/mine"
        async with silk.Node(mine, keepalive=keepalive()) as owner:
            by_us = rf"cannot listen at {mine}: Address already in use by .*process {os.getpid()} "
            with pytest.raises(ConfigError, match=by_us):
                await silk.Node(**{place: mine}).open()
            async with silk.Node(keepalive=keepalive()) as other:
                await talk(other, owner)

    run(main())


@pytest.mark.parametrize(
    "endpoint",
    ["ipc:///nowhere/at/all", f"ipc:///tmp/{'x' * 200}", "tcp://203.0.113.1:0", "tcp://nowhere.invalid:0"],
)
def test_an_endpoint_that_cannot_be_had_is_named(endpoint: str) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match=f"cannot listen at {endpoint}: "):
            await silk.Node(endpoint).open()

    run(main())


def test_the_path_of_a_node_that_was_killed_is_free(tmp_path: Path) -> None:
    path = tmp_path / "left"
    program = f"""
import asyncio, os
from skywalker import silk

async def main():
    async with silk.Node("ipc://{path}"):
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    assert path.exists()

    async def main() -> None:
        async with silk.Node(f"ipc://{path}") as one, silk.Node() as other:
            await talk(other, one)

    run(main())


NOT_ENDPOINTS = [
    *("tcp://nohost", "tcp://a:65536", "tcp://a:b", "tcp://::1:1", "tcp://[::1]", "tcp://a\x1b:1", "http://a:1"),
    *("a\n:1", "x" * MAX_NAME, "ipc://" + "x" * MAX_NAME),
]


@pytest.mark.parametrize("text", NOT_ENDPOINTS, ids=lambda text: ascii(text)[:40])
def test_what_no_node_may_say_of_itself_nobody_may_write_either(text: str) -> None:
    assert not is_endpoint(text)
    with pytest.raises(LocalProtocolError):
        endpoint(text)


@pytest.mark.parametrize(
    ("text", "found", "address", "beside_it"),
    [
        ("h", "tcp://h:3444", Address("h", 3444), "tcp://h:0"),
        ("h:1", "tcp://h:1", Address("h", 1), "tcp://h:0"),
        ("::1", "tcp://[::1]:3444", Address("::1", 3444), "tcp://[::1]:0"),
        ("tcp://[fe80::1%eth0]:5", "tcp://[fe80::1%eth0]:5", Address("fe80::1%eth0", 5), "tcp://[fe80::1%eth0]:0"),
        ("tcp://*:*", "tcp://*:*", Address("*", 0), "tcp://*:0"),
        ("ipc:///run/red", "ipc:///run/red", None, "ipc:///run/red.pub"),
    ],
)
def test_an_endpoint_is_host_and_port_or_a_path(text: str, found: str, address: Address | None, beside_it: str) -> None:
    assert endpoint(text) == found
    assert is_endpoint(found)
    assert address_of(found) == address
    assert beside(found) == beside_it


def test_asking_one_that_is_no_silk_node_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(Unreachable):
        silk.ask(f"127.0.0.1:{other.getsockname()[1]}", timeout=0.1)


def test_an_answer_of_one_that_is_no_node_is_none() -> None:
    member = {"id": "b", "endpoints": {"router": "tcp://h:1", "pub": "tcp://h:2"}}

    def answer() -> None:
        for me in ({"id": "a"}, member | {"id": "c"}):
            sender, frame = router.recv_multipart()
            question = json.loads(frame)
            data = {"me": me, "cluster": {"b": member}}
            reply = {"src": "a", "dest": question["src"], "id": "r", "type": "_reply", "reply": question["id"]}
            router.send_multipart([sender, json.dumps(reply | {"data": data}).encode()])

    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        port = router.bind_to_random_port("tcp://127.0.0.1")
        server = threading.Thread(target=answer)
        server.start()
        with pytest.raises(Unreachable, match="no node answered"):
            silk.ask(f"127.0.0.1:{port}", timeout=0.3)
        assert [info.id for info in silk.ask(f"127.0.0.1:{port}")] == ["c", "b"]
        server.join()


def test_who_has_no_descriptor_left_to_ask_by_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise zmq.ZMQError(errno.EMFILE)

    monkeypatch.setattr(zmq.Context, "socket", fail)
    with pytest.raises(ConfigError, match="no socket to ask by can be had: Too many open files"):
        silk.ask("127.0.0.1:9")
