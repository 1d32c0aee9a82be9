"""The source port of a connection chooses the worker; those that choose nothing spread evenly."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
from collections import Counter
from collections.abc import Iterator

import msgpack
import pytest

import skywalker
from skywalker import reuseport
from skywalker.dialling import source_port
from skywalker.embedding import Node
from workers.engine import steering

BINDS = ["127.0.0.1", "::1"]
WORKERS = 3


@pytest.fixture(scope="module", params=BINDS)
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    with skywalker.embedded(bind=request.param, workers=WORKERS) as node:
        yield node


def connect(node: Node, port: int = 0) -> socket.socket:
    """Connect from this port; 0 leaves it to the kernel, in connect() and not before."""
    family = socket.AF_INET6 if ":" in node.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(10)
        if port:
            sock.bind((node.host, port))
        sock.connect((node.host, node.port))
    except OSError:
        sock.close()
        raise
    return sock


def hello(sock: socket.socket) -> dict[str, object]:
    body = msgpack.packb([":hello", 1, {}])
    sock.sendall(len(body).to_bytes(2, "big") + body)
    size = int.from_bytes(sock.recv(2, socket.MSG_WAITALL), "big")
    answer: dict[str, object] = msgpack.unpackb(sock.recv(size, socket.MSG_WAITALL), strict_map_key=False)[2]
    return answer


def connect_to_steer(node: Node, worker: int) -> socket.socket:
    for _ in range(50):
        try:
            return connect(node, source_port(worker, WORKERS, random.random()))
        except OSError:  # the port is in use
            pass
    raise AssertionError("no source port is free")


def test_a_source_port_meets_its_worker(node: Node) -> None:
    for worker in [*range(WORKERS)] * 5:
        with connect_to_steer(node, worker) as sock:
            answer = hello(sock)
            assert answer["steering"] is True
            assert answer["worker"] == worker
            assert (sock.getsockname()[1] >> 1) % WORKERS == worker


def test_whatever_port_the_kernel_chooses_says_which_worker_it_will_be(node: Node) -> None:
    met: Counter[object] = Counter()
    socks = [connect(node) for _ in range(48 * WORKERS)]
    for sock in socks:
        with sock:
            worker = hello(sock)["worker"]
            assert (sock.getsockname()[1] >> 1) % WORKERS == worker
            met[worker] += 1
    # If they were thrown at random, fewer than 20 of 48 would happen to one node in 100,000.
    assert all(met[worker] >= 20 for worker in range(WORKERS)), met


def test_a_worker_that_is_replaced_is_met_by_the_same_ports(node: Node) -> None:
    for pid in node.worker_pids():
        os.kill(pid, signal.SIGKILL)
    for worker in range(WORKERS):
        with connect_to_steer(node, worker) as sock:
            assert hello(sock)["worker"] == worker


def test_where_the_system_cannot_steer_the_hash_goes_on_choosing(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        pair = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        monkeypatch.setattr(reuseport, "SO_ATTACH_REUSEPORT_CBPF", 9999)
        assert steering.steer(pair) is False
        assert steering.steer(pair[:1]) is True, "there is nothing to choose"
