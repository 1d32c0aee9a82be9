"""A cluster of nodes in one process, moved by hand: a test says when each of them hears of another ring."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from skywalker.limits import Limits
from skywalker.members import Snapshot
from skywalker.ring import token_of
from tests.helpers import time_factor
from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import WireClient, packed

IDLE_ROUNDS: Final = 3
"""After so many in which nothing came to anybody, nothing is on its way: the kernel takes no time for that."""


class SeveralNodes:
    """Nodes of one worker each, by name; they see themselves alone at first."""

    def __init__(self, names: Iterable[str], limits: Limits | None = None) -> None:
        self.nodes = {name: OneWorker(limits, name) for name in names}
        self._dead: list[OneWorker] = []
        self._clients: list[WireClient] = []

    def close(self) -> None:
        """End them all."""
        for client in self._clients:
            client.close()
        for node in (*self.nodes.values(), *self._dead):
            node.close()

    def client(self, name: str, *, send_buffer: int | None = None) -> WireClient:
        """Return a client of a node, as connect() makes it; close() closes it too."""
        client = self.nodes[name].connect(send_buffer=send_buffer)
        self._clients.append(client)
        return client

    def snapshot(self, names: Iterable[str]) -> Snapshot:
        """Return the ring of these nodes."""
        return Snapshot(self.nodes[name].member for name in names)

    def follow(self, ring: Iterable[str], *, by: Iterable[str] | None = None) -> None:
        """Have nodes, all unless told otherwise, go by the ring of these."""
        snapshot = self.snapshot(ring)
        for name in self.nodes if by is None else by:
            self.nodes[name].core.follow(snapshot)

    def kill(self, name: str) -> None:
        """Have a node do nothing any more, and its connections end."""
        node = self.nodes.pop(name)
        self._dead.append(node)
        node.shut()
        for fd in node.loop._handlers:
            with socket.socket(fileno=os.dup(fd)) as copy, contextlib.suppress(OSError):
                copy.shutdown(socket.SHUT_RDWR)  # unless it is just being connected

    def turn(self) -> None:
        """Let all nodes do what there is to do, until nothing comes to any of them."""
        idle_rounds = 0
        while idle_rounds < IDLE_ROUNDS:
            came = [node.turn() for node in self.nodes.values()]
            idle_rounds = 0 if any(came) else idle_rounds + 1

    def until_reply(self, client: WireClient, within: float = 5.0) -> Any:
        """Let them work until this client has been answered; return the reply."""
        deadline = time.monotonic() + within * time_factor()
        while not client.has_input():
            assert time.monotonic() < deadline, "no reply came in time"
            for node in self.nodes.values():
                node.turn()
        return client.reply()

    def topic_of(self, owner: str, ring: Iterable[str], *, then: tuple[str, Iterable[str]] | None = None) -> str:
        """Return a topic that `owner` owns in the ring of these nodes, and `then` another in another ring."""
        wanted = [(name, self.snapshot(names)) for name, names in ((owner, ring), then or (owner, ring))]
        for number in range(100_000):
            topic = f"topic-{number}"
            token = token_of(packed(topic))
            if all(snapshot.ring.owner(token).node == name for name, snapshot in wanted):
                return topic
        raise AssertionError("there is no such topic")


@contextlib.contextmanager
def several(*names: str, limits: Limits | None = None) -> Iterator[SeveralNodes]:
    """Yield nodes of these names, each alone; at the end nothing may be left of any call."""
    nodes = SeveralNodes(names, limits)
    try:
        yield nodes
        nodes.turn()
    finally:
        nodes.close()
