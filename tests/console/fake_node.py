"""The admin server of a node that is whatever a test says it is."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from skywalker.errors import BY_CODE
from tests.cli import told_admin
from workers.agent.admin import console
from workers.stats.metrics import CLOSES, LIMITS, RESTARTS


def worker(slot: int, **changed: Any) -> dict[str, Any]:
    """Return what /api/state says of a worker that is well."""
    return told_admin.worker(slot, 4, serving=True, **changed)


class FakeNode:
    """What it answers, free to be changed while it serves: `state`, `topics`, `connections`, `ring` and `history`."""

    def __init__(self, workers: int = 4, members: int = 1) -> None:
        self.period_s = 0.1
        self.silent = False  # takes requests, and says nothing
        self.paths: list[str] = []
        self.listeners = 0
        self.page = console.page()
        names = ["red", "green", "blue", "yellow", "white", "black", "brown", "grey"][:members]
        self.state: dict[str, Any] = told_admin.state("10.0.0.1:3443", names[0], workers) | {
            "ring": {"version": "3f9a01c2", "nodes": members, "unproven": []},
            "closes": dict.fromkeys(CLOSES, 0) | {"peer": 1204},
            "limits_hit": dict.fromkeys(LIMITS, 0),
            "errors": dict.fromkeys(BY_CODE, 0) | {"TIMEOUT": 12},
            "restarts": {**dict.fromkeys(RESTARTS, 0), "agent": 0},
            "workers": [worker(slot) for slot in range(workers)],
        }
        self.topics: dict[str, Any] = {"topics_in_all": 0, "looked_at": 0, "silent": [], "topics": []}
        self.connections: dict[str, Any] = {
            "connections_in_all": 0, "looked_at": 0, "silent": [], "connections": [], "closed": [],
        }  # fmt: skip
        self.ring = ring(names)
        self.history = told_admin.history()

    def topic(self, name: str, **changed: Any) -> None:
        """Add a topic on which somebody waits."""
        row = {"topic": name, "worker": 0, "senders": 0, "receivers": 3, "takers": 0, "subscribers": 0}
        self.topics["topics"].append({**row, "since": 41.5, "rate": 12.5, "share": 0.25, **changed})
        self.topics["topics_in_all"] = self.topics["looked_at"] = len(self.topics["topics"])

    def client(self, **changed: Any) -> None:
        """Add a connection."""
        number = len(self.connections["connections"])
        row = told_admin.connection(40_000 + number, **({"name": "", "age": 3700.0 + number} | changed))
        self.connections["connections"].append(row)
        self.connections["connections_in_all"] = self.connections["looked_at"] = number + 1

    def close(self, reason: str, peer: str = "10.0.1.9:40123", text: str = "", ago: float = 10.0) -> None:
        """Add a connection that was closed."""
        row = {"time": time.time() - ago, "worker": 0, "peer": peer, "reason": reason, "text": text}
        self.connections["closed"].append(row)

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[str]:
        """Serve for the length of a `with` block; yield the page's URL."""
        server = _Server(("127.0.0.1", port), _Request)
        server.node = self
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.over.set()
            server.shutdown()
            server.server_close()
            thread.join()


def ring(names: list[str]) -> dict[str, Any]:
    """Return a ring whose nodes have 64 tokens each, the first one of them here."""
    count = 64 * len(names)
    # Any uneven lengths will do.
    lengths = [1.2 + math.sin(3.7 * number) for number in range(count)]
    whole, start, arcs = sum(lengths), 0.0, []
    shares = [0.0] * len(names)
    for number, length in enumerate(lengths):
        owner = (number * 7 + number // 5) % len(names)
        arcs.append([start, length / whole, owner])
        shares[owner] += length / whole
        start += length / whole
    members = [
        {"id": str(at), "name": name, "address": f"10.0.0.{at + 1}:3443", "share": shares[at], "workers": 4}
        for at, name in enumerate(names)
    ]
    arcs = arcs if len(names) > 1 else [[0.0, 1.0, 0]]
    return {"version": "3f9a01c2", "here": "0", "members": members, "arcs": arcs, "unproven": []}


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    node: FakeNode

    def __init__(self, *arguments: Any) -> None:
        self.over = threading.Event()
        super().__init__(*arguments)

    def handle_error(self, request: object, client_address: object) -> None:
        """The browser left."""


class _Request(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        node = self.server.node
        path = self.path.partition("?")[0]
        node.paths.append(self.path)
        while node.silent and not self.server.over.wait(0.02):
            pass
        if path == "/":
            body, policy = node.page
            self._answer(body, "text/html; charset=utf-8", policy)
        elif path == "/api/events":
            self._events(node)
        elif path.startswith("/api/"):
            self._answer(json.dumps(getattr(node, path.removeprefix("/api/"))).encode(), "application/json")
        else:
            self.send_error(404)

    def _answer(self, body: bytes, kind: str, policy: str = "default-src 'none'") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(body)

    def _events(self, node: FakeNode) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        node.listeners += 1
        with suppress(OSError):
            while True:
                if not node.silent:
                    node.state["time"] += 1.0  # time flies
                    state = node.state
                    self.wfile.write(f"event: state\ndata: {json.dumps(state)}\n\n".encode())
                    self.wfile.flush()
                if self.server.over.wait(node.period_s):
                    break
        node.listeners -= 1

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
