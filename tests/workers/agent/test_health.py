"""The health server, in front of real nodes, and in front of what is none."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import HTTPServer
from unittest import mock

from skywalker.address import Address
from tests.clients.scripted import ScriptedNode
from tests.helpers import eventually, time_factor
from tests.workers.agent.lone_agent import Blocked, agent
from tests.workers.processes import node
from tests.workers.told_node import HOST, ToldNode, framed
from workers.agent.health import MAX_REQUESTS, REQUEST_S, Health
from workers.agent.ping import Ping
from workers.ipc.control import Drain

OK = (200, b'{"status":"OK"}')
ERROR = (503, b'{"status":"ERROR"}')


def get(at: Address, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(at.host, at.port, timeout=10 * time_factor())
    with contextlib.closing(connection):
        connection.request(method, path)
        reply = connection.getresponse()
        return reply.status, reply.read()


@contextlib.contextmanager
def health_of(node: Address, host: str = HOST) -> Iterator[tuple[Health, Address]]:
    health = Health(Address(host, 0), Ping(node))
    at = health.open()
    try:
        yield health, at
    finally:
        health.close()


def test_a_node_is_well_while_a_worker_answers() -> None:
    with node(workers=1) as found, health_of(Address(HOST, found.port)) as (_, at):
        assert get(at, "/health") == OK
        assert get(at, "/health?by=consul") == OK
        [worker] = found.workers()
        os.kill(worker, signal.SIGSTOP)
        start = time.monotonic()
        assert get(at, "/health") == ERROR
        assert 0.9 < time.monotonic() - start < 1.3 * time_factor()
        os.kill(worker, signal.SIGCONT)
        assert get(at, "/health") == OK
        os.killpg(found.pid, signal.SIGKILL)
        eventually(lambda: get(at, "/health") == ERROR)


def test_a_node_that_starts_or_drains_is_well_and_not_ready() -> None:
    with ToldNode() as told, health_of(told.address) as (health, at):
        assert (get(at, "/health"), get(at, "/ready")) == (OK, ERROR)
        health.ready = True
        assert (get(at, "/health"), get(at, "/ready")) == (OK, OK)
        told.die()
        assert (get(at, "/health"), get(at, "/ready")) == (ERROR, ERROR)


def test_what_answers_otherwise_is_not_well() -> None:
    others = framed([":hello", 2, {}]), framed([":ping", 1, True]), framed([":error", 1])
    with ScriptedNode() as scripted, health_of(Address(HOST, scripted.port)) as (_, at), ThreadPoolExecutor(1) as pool:
        for answer in (b"", b"HTTP/1.1 200 OK\r\n\r\n", *others):
            asking = pool.submit(get, at, "/health")
            connection = scripted.next_connection()
            assert connection.read() == [":hello", 1, {}]
            connection.write_bytes(answer)
            if not answer:
                connection.close()
            assert asking.result() == ERROR


def test_other_paths_and_methods_are_refused() -> None:
    with ToldNode() as told, health_of(told.address) as (_, at):
        status, body = get(at, "/")
        assert status == 404
        assert "/health" in json.loads(body)["error"]
        assert get(at, "/health", "DELETE")[0] == 501
        assert told.options == []


def test_a_crowd_that_asks_nothing_silences_nobody() -> None:
    with ToldNode() as told, health_of(told.address) as (_, at), contextlib.ExitStack() as stack:
        began = time.monotonic()
        crowd = []
        for number in range(3 * MAX_REQUESTS):
            sock = stack.enter_context(socket.create_connection((at.host, at.port), 10 * time_factor()))
            if number % 2:
                sock.sendall(b"GET /hea")
            crowd.append(sock)
        for _ in range(10):
            assert get(at, "/health") == OK
        assert time.monotonic() - began < REQUEST_S
        for sock in crowd[: 2 * MAX_REQUESTS]:  # those that came first had to go
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""


def test_who_comes_when_all_get_answers_is_turned_away_until_some_have_one() -> None:
    with ScriptedNode() as silent, health_of(Address(HOST, silent.port)) as (_, at), contextlib.ExitStack() as stack:
        asking = []
        for _ in range(MAX_REQUESTS):
            sock = stack.enter_context(socket.create_connection((at.host, at.port), 10 * time_factor()))
            sock.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            asking.append(sock)
            silent.next_connection()  # that asks it: a request that is not read yet has the place of one that is late
        late = stack.enter_context(socket.create_connection((at.host, at.port), 10 * time_factor()))
        with contextlib.suppress(ConnectionResetError):
            assert late.recv(1) in (b"", b"H")  # by then the first of them may have theirs
        assert all(b" 503 " in sock.recv(4096) for sock in asking)


def test_who_comes_when_no_thread_is_to_be_had_takes_no_room() -> None:
    with ToldNode() as told, health_of(told.address) as (_, at):
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            for _ in range(MAX_REQUESTS):
                with socket.create_connection((at.host, at.port)) as sock:
                    assert sock.recv(1) == b""
        assert get(at, "/health") == OK


def test_without_descriptors_it_looks_for_who_waits_now_and_then() -> None:
    with ToldNode() as told, health_of(told.address) as (_, at):
        error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        with (
            mock.patch.object(HTTPServer, "get_request", side_effect=error) as looks,
            socket.create_connection((at.host, at.port)),
        ):
            eventually(lambda: looks.called)
            time.sleep(0.5)
            assert looks.call_count < 10
        assert get(at, "/health") == OK


def test_ipv6_will_do() -> None:
    with ToldNode() as told, health_of(told.address, "::1") as (_, at):
        assert get(at, "/health") == OK


def test_an_agent_serves_health_however_blocked_its_source_is_and_is_ready_while_its_node_serves() -> None:
    with ToldNode() as told, socket.create_server((HOST, 0)) as taken:
        bind = Address(*taken.getsockname())
        with agent(told.member, Blocked(), health=bind) as found:
            eventually(lambda: found.events("cannot-serve-health"))
            found.wait_for(told.member)
            taken.close()
            eventually(lambda: get(bind, "/ready") == OK, within=10.0)
            assert get(bind, "/health") == OK
            found.say(Drain())
            eventually(lambda: get(bind, "/ready") == ERROR)
            assert get(bind, "/health") == OK
