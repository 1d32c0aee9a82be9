"""Nodes that show what they do, and who asks them, in any way that HTTP has."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import psutil
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse

import skywalker
from skywalker.address import Address
from skywalker.embedding import Node
from tests.helpers import eventually, time_factor

OPEN = "application/openmetrics-text; version=1.0.0"

Labels = dict[str, str]


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
