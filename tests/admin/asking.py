"""Nodes that show what they do, admin servers of no node, and who asks them, in any way that HTTP has."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import psutil
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse

import skywalker
from skywalker.access.access import Access
from skywalker.address import Address
from skywalker.embedding import Node
from skywalker.members import Member
from tests.helpers import eventually, time_factor, written_to
from tests.workers.staged import config_of
from workers.agent.admin import transport
from workers.agent.admin.server import Admin
from workers.stats.log import Log
from workers.stats.shared import SharedCounters

OPEN = "application/openmetrics-text; version=1.0.0"

Labels = dict[str, str]

IDLE_S: Final = 0.5
"""Seconds that an admin server of no node waits for a request, and for its answer to be read."""


class Asker:
    """Asks the admin server at one address, by TLS if there is a `context`; `headers` go with every request."""

    def __init__(self, address: str, context: ssl.SSLContext | None = None, headers: Labels | None = None) -> None:
        self.address = Address.parse(address)
        self.context = context
        self._headers = headers or {}

    def connect(self) -> socket.socket:
        """Return a connection to it."""
        return socket.create_connection((self.address.host, self.address.port), 10 * time_factor())

    def ask(
        self, path: str, method: str = "GET", headers: Labels | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Return status, headers and body."""
        host, port, timeout = self.address.host, self.address.port, 10 * time_factor()
        connection = (
            http.client.HTTPConnection(host, port, timeout=timeout)
            if self.context is None
            else http.client.HTTPSConnection(host, port, timeout=timeout, context=self.context)
        )
        with contextlib.closing(connection):
            connection.request(method, path, headers=self._headers | (headers or {}))
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def json(self, path: str) -> Any:
        """Return the document there."""
        status, headers, body = self.ask(path)
        assert status == 200, body
        assert headers["content-type"] == "application/json"
        return json.loads(body)

    def once(self, path: str, is_so: Callable[[Any], object], within: float = 5.0) -> Any:
        """Return the document there, once it is as it should be."""

        def look() -> list[Any]:
            document = self.json(path)
            return [document] if is_so(document) else []

        return eventually(look, within)[0]

    def problem(self, path: str, status: int) -> str:
        """Return what is said of a request that is refused with this status."""
        found, headers, body = self.ask(path)
        assert (found, headers["content-type"]) == (status, "application/json")
        text: str = json.loads(body)["error"]
        return text

    def metrics(self, accept: str = "") -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Return the value of each series, by its name and labels."""
        status, _, body = self.ask("/metrics", headers={"Accept": accept})
        assert status == 200
        families = (parse_open if accept else parse)(body.decode())
        found = {}
        for family in families:
            for sample in family.samples:
                series = sample.name, tuple(sorted(sample.labels.items()))
                assert series not in found
                found[series] = sample.value
        return found

    def metric(self, metric: str, **labels: str) -> float:
        """Return the sum of all series of a metric that have these labels."""
        series = self.metrics()
        chosen = [key for key in series if key[0] == metric and labels.items() <= dict(key[1]).items()]
        assert chosen, f"{metric} {labels} is not among {sorted(series)}"
        return sum(series[key] for key in chosen)

    @contextlib.contextmanager
    def events(self) -> Iterator[Iterator[Any]]:
        """Listen to the events; yield an iterator over what they hold."""
        with self.connect() as sock, sock.makefile("rb") as lines:
            sock.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert lines.readline() == b"HTTP/1.1 200 OK\r\n"
            yield (json.loads(line[6:]) for line in lines if line.startswith(b"data: "))


@contextlib.contextmanager
def node(workers: int = 1, context: ssl.SSLContext | None = None, **settings: Any) -> Iterator[tuple[Node, Asker]]:
    """Run a node that answers at its admin port, which is asked with the `context` where it speaks TLS."""
    with skywalker.embedded(workers, admin=True, **settings) as found:
        asker = Asker(found.admin_address, context)
        eventually(lambda: asker.ask("/ready")[0] == 200, within=15)
        yield found, asker


class Well:
    """Finds a node well that is not there."""

    def is_answered(self) -> bool:
        return True


def access_of(tables: str) -> Access | None:
    """Return what the tables of a config file say of who may what."""
    return config_of({}, tables).access


@contextlib.contextmanager
def served(
    *, tls: Callable[[], ssl.SSLContext] | None = None, access: Access | None = None, context: Any = None
) -> Iterator[tuple[Asker, Callable[[], str]]]:
    """Run an admin server of no node, in this process; yield who asks it with the `context`, and what it has logged."""
    me = Member("id", "name", Address("127.0.0.1", 1), 1, False, (1,))
    over = threading.Event()
    with (
        tempfile.TemporaryFile() as file,
        socket.create_server(("127.0.0.1", 0), backlog=1000) as listener,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(transport, "IDLE_S", IDLE_S)
        patch.setattr(transport, "UNREAD_S", IDLE_S)
        well: Any = Well()
        address = Address(*listener.getsockname()[:2])
        bind, doors, log = (address.host, address.port), {"admin": str(address)}, Log(time.time, file.fileno())
        admin = Admin(bind, listener, me, well, doors, SharedCounters(1), log, tls=tls, access=access)
        admin.start(over.set)
        try:
            yield Asker(str(address), context), lambda: written_to(file)
        finally:
            loop = admin._loop
            loop.call_soon_threadsafe(_cancel_all, loop)
            assert over.wait(10 * time_factor())
            loop.run_until_complete(asyncio.sleep(0))
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def agent_of(found: Node) -> int:
    """Return the process of a node's agent."""
    children = psutil.Process(found.pid).children()
    [agent] = [child.pid for child in children if child.name() == "skywalker-agent"]
    return agent


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Have a process hang for a while."""
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
