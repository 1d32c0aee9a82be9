"""An admin server that says what a test tells it to."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Document = dict[str, Any]


class ToldAdmin:
    """What is said by path, and what was asked: paths with their parameters."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        host, port = server.server_address[:2]
        self.host, self.port = str(host), port
        self.address = f"{self.host}:{port}"
        self.says: dict[str, Document | bytes | Callable[[], Document]] = documents(f"{self.host}:3443")
        self.asked: list[tuple[str, dict[str, str]]] = []


@contextmanager
def told_admin(host: str = "127.0.0.1", port: int = 0) -> Iterator[ToldAdmin]:
    """Serve for the length of a `with` block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            told.asked.append((url.path, {name: values[0] for name, values in parse_qs(url.query).items()}))
            said = told.says.get(url.path)
            said = said() if callable(said) else said
            status = 200 if said is not None else 404
            body = said if isinstance(said, bytes) else json.dumps(said or {"error": "nothing here"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server((host, port), Handler) as server:
        told = ToldAdmin(server)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


def documents(address: str, name: str = "red", workers: int = 2, topics: int = 3) -> dict[str, Any]:
    """Return all documents of a node that serves."""
    return {
        "/api/state": state(address, name, workers),
        "/api/history": history(),
        "/api/topics": {
            "order": "waiting",
            "topics_in_all": topics,
            "looked_at": topics,
            "silent": [],
            "topics": [topic(number) for number in range(topics)],
        },
        "/api/connections": {
            "connections_in_all": 2,
            "looked_at": 2,
            "silent": [],
            "connections": [connection(41000), connection(41002, worker=1, name="slow-reader", unread_bytes=300_000)],
            "closed": [
                {
                    "time": time.time(),
                    "worker": 1,
                    "peer": "10.0.0.9:5555",
                    "reason": "half-frame",
                    "text": "the rest of a frame did not come within 10 s",
                }
            ],
        },
        "/api/ring": {
            "version": "c0ffee12",
            "here": f"id-{name}",
            "members": [{"id": f"id-{name}", "name": name, "address": address, "share": 1.0, "workers": workers}],
            "arcs": [[0.0, 1.0, 0]],
        },
    }


def state(address: str, name: str = "red", workers: int = 2) -> Document:
    """Return what /api/state says of a node that serves."""
    now = time.time()
    waiting = {"send": 3, "recv": 120, "take": 40, "subscription": 8}
    return {
        "time": now,
        "node": {
            "id": f"id-{name}",
            "name": name,
            "version": "0.1.0",
            "address": address,
            "pid": 4711,
            "started": now - 11_540,
            "steering": True,
            "draining": False,
            "ready": True,
            "workers": workers,
        },
        "ring": {"version": "c0ffee12", "nodes": 1},
        "rates": {"calls": 51_240.0, "met": 50_913.5, "bytes_received": 4_100_000.0, "bytes_sent": 3_900_000.0},
        "latency": {"hand_off": {"p50": 0.000012, "p99": 0.000084}, "wait": {"p50": 0.0021, "p99": 1.31}},
        "waiting": waiting,
        "connections": 312,
        "calls": {"send": {"met": 1_204_000, "timed-out": 17}, "recv": {"met": 1_204_000, "error": 0}},
        "routed": {"here": 1_300_000, "sibling": 1_100_000, "node": 8_000},
        "closes": {"peer": 5_204, "half-frame": 1, "bug": 0},
        "moves": {"out": 5, "in": 5, "refused": 1},
        "limits_hit": {"max_connections": 2, "mesh_bytes": 0},
        "errors": {"bad-frame": 4, "busy": 0},
        "restarts": {"signal": 1, "hung": 0, "agent": 0},
        "reloads": {"done": 2, "refused": 0},
        "workers": [worker(slot, workers) for slot in range(workers)],
        "processes": [
            {"name": "supervisor", "pid": 4711, "cpu": 0.001, "rss": 31_000_000, "open_files": 24},
            {"name": "agent", "pid": 4712, "cpu": 0.013, "rss": 62_000_000, "open_files": 31},
            *(
                {"name": f"worker-{slot}", "pid": 4720 + slot, "cpu": 0.6, "rss": 88_000_000, "open_files": 190}
                for slot in range(workers)
            ),
        ],
    }


def worker(slot: int, workers: int, **fields: Any) -> Document:
    """Return what /api/state says of one worker."""
    return {
        "slot": slot,
        "pid": 4720 + slot,
        "state": "serving",
        "beat_age": 0.2,
        "cpu": 0.61 - 0.05 * slot,
        "rss": 88_000_000 + slot,
        "connections": 156,
        "waiting": {"send": 1, "recv": 60, "take": 20, "subscription": 4},
        "calls": 25_620.0 - 100 * slot,
        "share": 1 / workers,
        "forwarded": 0.46,
        "held_bytes": 1_300_000,
        "unread_bytes": 0,
        "unsent_bytes": {"siblings": 0, "nodes": 2048},
        "choked": 0,
        "topics": 61,
        "turn_p99": 0.0009,
    } | fields


def topic(number: int) -> Document:
    """Return what /api/topics says of one topic."""
    return {
        "topic": f"orders.{number}",
        "worker": number % 2,
        "senders": number % 3,
        "receivers": 4,
        "takers": 12,
        "subscribers": 1,
        "since": 12.5 + number,
        "rate": 910.0 / (number + 1),
        "share": 0.75 / (number + 1),
    }


def connection(port: int, **fields: Any) -> Document:
    """Return what /api/connections says of one connection."""
    return {
        "worker": 0,
        "peer": f"10.0.0.7:{port}",
        "name": "billing",
        "door": "junction",
        "age": 4_200.0,
        "waiting": 12,
        "subscriptions": 0,
        "unread_bytes": 0,
        "choked": False,
    } | fields


def history() -> Document:
    """Return what /api/history says of five minutes."""
    curve = [50_000 + 20_000 * math.sin(at / 12) + 3_000 * math.sin(at) for at in range(300)]
    return {
        "step": 1.0,
        "time": time.time(),
        "calls": curve,
        "met": [0.99 * value for value in curve],
        "hand_off_p50": [0.000012] * 300,
        "hand_off_p99": [None] * 40 + [0.00008 + 0.00003 * math.sin(at / 9) for at in range(260)],
        "wait_p99": [1.3 + 0.4 * math.sin(at / 20) for at in range(300)],
        "connections": [300 + at // 25 for at in range(300)],
        "waiting": [160 + 20 * math.sin(at / 15) for at in range(300)],
        "cpu": [1.2] * 300,
    }
