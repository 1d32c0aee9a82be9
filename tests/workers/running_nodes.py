"""Embedded nodes, and what a test of the server wants to know of one beyond what its clients see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

import skywalker
from skywalker.ring import token_of, worker_of
from tests.authority import Authority
from tests.workers.wire_client import SECURE, Address, WireClient, packed


class Owners:
    """Which worker of a node owns which topics."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def owner(self, topic: Any) -> int:
        """Return the number of the worker that owns a topic."""
        return worker_of(token_of(packed(topic)), self.workers)

    def topic_of(self, worker: int, about: str) -> str:
        """Return a topic that this worker owns; the same one for the same `about`."""
        return next(topic for n in range(10_000) if self.owner(topic := f"{about}-{n}") == worker)


class Node(Owners):
    """A node that serves. Made by running()."""

    def __init__(self, embedded: Any) -> None:
        self._embedded = embedded
        self.pid: int = embedded.pid
        self.address: Address = (embedded.host, embedded.port)
        host, _, port = embedded.pubsub_address.rpartition(":")
        self.pubsub: Address = (host, int(port or 0))
        self.first_pids: list[int] = embedded.worker_pids()
        with WireClient.open(self.address) as client:
            self.tokens: list[int] = client.ask(":tokens", 1)
        super().__init__(len(self.first_pids))

    @property
    def log(self) -> str:
        """What was logged so far."""
        text: str = self._embedded.log
        return text

    def pids(self) -> list[int]:
        """Return the processes of the workers that live now."""
        pids: list[int] = self._embedded.worker_pids()
        return pids

    def resident(self) -> int:
        """Return the bytes of memory that the workers take for themselves."""
        return sum(psutil.Process(pid).memory_full_info().uss for pid in self.pids())

    def connections(self) -> int:
        """Return how many connections the workers have open."""
        sockets = (psutil.Process(pid).net_connections("tcp") for pid in self.pids())
        return sum(each.status != psutil.CONN_LISTEN for of_one in sockets for each in of_one)

    def assert_unharmed(self) -> None:
        """Assert that no worker has died, or said anything of an exception."""
        assert "Traceback" not in self.log, self.log
        assert self.pids() == self.first_pids, self.log


@contextmanager
def running(workers: int = 1, **settings: Any) -> Iterator[Node]:
    """Yield a node that serves; at the end it must be unharmed."""
    with skywalker.embedded(workers=workers, **settings) as embedded:
        node = Node(embedded)
        yield node
        node.assert_unharmed()


@contextmanager
def running_in_tls(directory: Path, workers: int = 1, **settings: Any) -> Iterator[Node]:
    """Yield a node that speaks TLS; every client of it does so as well. The certificates are put there."""
    authority = Authority(directory)
    cert, key = authority.sign("127.0.0.1")
    with skywalker.embedded(workers=workers, tls_cert=cert, tls_key=key, **settings) as embedded:
        pubsub = embedded.pubsub_address.rpartition(":")
        doors = [(embedded.host, embedded.port), (pubsub[0], int(pubsub[2] or 0))]
        SECURE.update(dict.fromkeys(doors, authority.context()))
        try:
            node = Node(embedded)
            yield node
            node.assert_unharmed()
        finally:
            for door in doors:
                del SECURE[door]


TLS = "tls"


@contextmanager
def running_by(param: int | str, directories: pytest.TempPathFactory, **settings: Any) -> Iterator[Node]:
    """Yield a node with so many workers, or for TLS one with two that speaks it."""
    if param == TLS:
        with running_in_tls(directories.mktemp("tls"), workers=2, **settings) as node:
            yield node
    else:
        with running(workers=int(param), **settings) as node:
            yield node
