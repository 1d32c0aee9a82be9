"""The health server, in front of real nodes, and in front of what is none."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from skywalker.address import Address
from tests.clients.scripted import ScriptedNode
from tests.helpers import eventually, time_factor
from tests.workers.agent_process import agent
from tests.workers.processes import node
from tests.workers.told_node import HOST, ToldNode, framed
from workers.control import Drain, Serving
from workers.health import MAX_REQUESTS, Health

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
    health = Health(Address(host, 0), node)
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


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\n\r\n", framed([":ping", 1, False]), framed([":ping", 2, True]), framed([":error", 1])],
)
def test_what_answers_otherwise_is_not_well(answer: bytes) -> None:
    with ScriptedNode() as scripted, health_of(Address(HOST, scripted.port)) as (_, at):
        replies: list[tuple[int, bytes]] = []
        asking = threading.Thread(target=lambda: replies.append(get(at, "/health")))
        asking.start()
        connection = scripted.next_connection()
        assert connection.read() == [":ping", 1]
        connection.write_bytes(answer)
        if not answer:
            connection.close()
        asking.join()
        assert replies == [ERROR]


def test_other_paths_and_methods_are_refused() -> None:
    with ToldNode() as told, health_of(told.address) as (_, at):
        status, body = get(at, "/")
        assert status == 404
        assert "/health" in json.loads(body)["error"]
        assert get(at, "/health", "DELETE")[0] == 501
        assert told.pings == 0


def test_those_who_ask_slowly_hold_up_nobody() -> None:
    with ToldNode() as told, health_of(told.address) as (_, at), contextlib.ExitStack() as stack:
        for _ in range(MAX_REQUESTS - 1):
            slow = stack.enter_context(socket.create_connection((at.host, at.port)))
            slow.sendall(b"GET /hea")
        assert get(at, "/health") == OK


def test_who_comes_when_there_are_too_many_is_turned_away_until_some_have_gone() -> None:
    with ToldNode() as told, health_of(told.address) as (_, at):
        with contextlib.ExitStack() as stack:
            for _ in range(MAX_REQUESTS):
                slow = stack.enter_context(socket.create_connection((at.host, at.port)))
                slow.sendall(b"GET /hea")

            def is_turned_away() -> bool:
                with socket.create_connection((at.host, at.port), 10 * time_factor()) as late:
                    try:
                        return late.recv(1) == b""
                    except ConnectionResetError:
                        return True

            assert is_turned_away()
        eventually(lambda: get(at, "/health") == OK)


def test_ipv6_will_do() -> None:
    with ToldNode() as told, health_of(told.address, "::1") as (_, at):
        assert get(at, "/health") == OK


def test_an_agent_serves_health_however_blocked_its_source_is_and_is_ready_while_its_node_serves() -> None:
    with ToldNode() as told, socket.create_server((HOST, 0)) as taken:
        bind = Address(*taken.getsockname())
        with agent(told.member, "blocked", health=bind) as found:
            eventually(lambda: found.events("cannot-serve-health"))
            found.wait_for(told.member)
            found.say(Serving())
            taken.close()
            eventually(lambda: get(bind, "/ready") == OK, within=10.0)
            assert get(bind, "/health") == OK
            found.say(Drain())
            eventually(lambda: get(bind, "/ready") == ERROR)
            assert get(bind, "/health") == OK
