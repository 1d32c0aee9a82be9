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
from skywalker.journal.record import METHODS, OUTCOMES
from workers.agent.admin import console
from workers.stats.metrics import CLOSES, LIMITS, RESTARTS

START_S = 400_000.0
"""Seconds for which the node has been up."""


def worker(slot: int, **changed: Any) -> dict[str, Any]:
    """Return what /api/state says of a worker that is well."""
    return {
        "slot": slot,
        "pid": 4000 + slot,
        "state": "serving",
        "serving": True,
        "beat_age": 0.012,
        "cpu": 0.31 + 0.07 * slot,
        "rss": 41_500_000 + slot * 1_000_000,
        "connections": 53 + slot,
        "waiting": {"send": 3 * slot, "recv": 240 + slot, "take": 16, "subscription": 4},
        "calls": 12_700.0 + 400 * slot,
        "share": 0.25,
        "forwarded": 0.031,
        "held_bytes": 1_204_000,
        "unread_bytes": 0,
        "unsent_bytes": {"siblings": 0, "nodes": 0},
        "choked": 0,
        "topics": 212,
        "turn_p99": 0.00041,
        **changed,
    }


class FakeNode:
    """What it answers, free to be changed while it serves: `state`, `topics`, `connections`, `ring` and `history`."""

    def __init__(self, workers: int = 4, members: int = 1) -> None:
        now = time.time()
        self.period_s = 0.1
        self.silent = False  # takes requests, and says nothing
        self.paths: list[str] = []
        self.listeners = 0
        self.page = console.page()
        names = ["red", "green", "blue", "yellow", "white", "black", "brown", "grey"][:members]
        self.state: dict[str, Any] = {
            "time": now,
            "node": {
                "id": "0",
                "name": names[0],
                "version": "0.8.0",
                "address": "10.0.0.1:3443",
                "pid": 3999,
                "started": now - START_S,
                "compiled": True,
                "steering": "kernel",
                "draining": False,
                "ready": True,
                "workers": workers,
            },
            "ring": {"version": "3f9a01c2", "nodes": members, "unproven": []},
            "rates": {"calls": 51_240.0, "met": 50_870.0, "bytes_received": 3.1e6, "bytes_sent": 2.9e6},
            "latency": {"hand_off": {"p50": 0.000061, "p99": 0.00041}, "wait": {"p50": 0.012, "p99": 0.27}},
            "waiting": {"send": 18, "recv": 966, "take": 64, "subscription": 16},
            "connections": 218,
            "calls": {
                method: dict.fromkeys(OUTCOMES[1:], 0) | {"met": 1_204_402, "prompt": 8_800_231}
                for method in METHODS[1:]
            },
            "routed": {"here": 9_204_000, "sibling": 288_000, "node": 91_000},
            "closes": dict.fromkeys(CLOSES, 0) | {"peer": 1204},
            "limits_hit": dict.fromkeys(LIMITS, 0),
            "errors": dict.fromkeys(BY_CODE, 0) | {"TIMEOUT": 12},
            "restarts": {**dict.fromkeys(RESTARTS, 0), "agent": 0},
            "reloads": {"done": 0, "refused": 0},
            "workers": [worker(slot) for slot in range(workers)],
            "processes": [
                {"name": "supervisor", "pid": 3999, "cpu": 0.001, "rss": 22_000_000, "open_files": 31},
                {"name": "agent", "pid": 4100, "cpu": 0.012, "rss": 58_000_000, "open_files": 24},
                *(
                    {"name": f"worker-{slot}", "pid": 4000 + slot, "cpu": 0.3, "rss": 41_500_000, "open_files": 80}
                    for slot in range(workers)
                ),
            ],
        }
        self.topics: dict[str, Any] = {"topics_in_all": 0, "looked_at": 0, "silent": [], "topics": []}
        self.connections: dict[str, Any] = {
            "connections_in_all": 0, "looked_at": 0, "silent": [], "connections": [], "closed": [],
        }  # fmt: skip
        self.ring = ring(names)
        self.history = history(now)

    def topic(self, name: str, **changed: Any) -> None:
        """Add a topic on which somebody waits."""
        row = {"topic": name, "worker": 0, "senders": 0, "receivers": 3, "takers": 0, "subscribers": 0}
        self.topics["topics"].append({**row, "since": 41.5, "rate": 12.5, **changed})
        self.topics["topics_in_all"] = self.topics["looked_at"] = len(self.topics["topics"])

    def client(self, **changed: Any) -> None:
        """Add a connection."""
        number = len(self.connections["connections"])
        row = {
            "worker": 0,
            "peer": f"10.0.1.7:{40_000 + number}",
            "name": "",
            "door": "junction",
            "age": 3700.0 + number,
        }
        row |= {"waiting": 12, "subscriptions": 0, "unread_bytes": 0, "choked": False}
        self.connections["connections"].append({**row, **changed})
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


def history(now: float, seconds: int = 300) -> dict[str, Any]:
    """Return five minutes of calm traffic."""

    def wave(height: float, swing: float, pace: float) -> list[float]:
        noise = (math.sin(at * 12.9898) * 43758.5453 % 1 - 0.5 for at in range(seconds))
        return [height * (1 + swing * math.sin(at / pace) + 0.06 * rough) for at, rough in enumerate(noise)]

    calls = wave(51_000, 0.08, 31)
    return {
        "step": 1.0, "time": now, "calls": calls, "met": [0.99 * rate for rate in calls],
        "hand_off_p50": wave(61e-6, 0.1, 17), "hand_off_p99": wave(410e-6, 0.3, 13), "wait_p99": wave(0.27, 0.2, 23),
        "connections": [218.0] * seconds, "waiting": wave(1064, 0.1, 40), "cpu": wave(1.6, 0.1, 20),
    }  # fmt: skip


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
