"""Whether the node is well, over HTTP: for Consul, load balancers and people.

GET /health  200 {"status":"OK"} if a worker answers a ping, else 503 {"status":"ERROR"}
GET /ready   the same, and 503 while the node starts or drains
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Final

from skywalker.address import Address
from skywalker.wire import frames, values
from skywalker.wire import junction as wire

ANSWER_S: Final = 1.0
"""Seconds for a worker to answer the ping of a request."""

REQUEST_S: Final = 5.0
"""Seconds for the rest of a request to arrive, and for a reply to be read."""

MAX_REQUESTS: Final = 32
"""Requests at a time, each of which has a thread; who comes when there are more is turned away."""

_PING_ID: Final = values.pack(1)


class Health:
    """The server. `node` is where the node itself is pinged."""

    def __init__(self, bind: Address, node: Address) -> None:
        self.bind = bind
        self._node = node
        self._server: _Server | None = None
        self.ready = False  # whether the node has started and does not drain

    def open(self) -> Address:
        """Serve from now on, in threads; return where. Raises OSError if that address cannot be had."""
        self._server = server = _Server(self.bind, self)
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
        return Address(*server.server_address[:2])  # type: ignore[arg-type]  # of a TCP socket

    def close(self) -> None:
        """End it, if it was opened."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def is_well(self) -> bool:
        """Return whether a worker answers; takes as long as it may take."""
        deadline = time.monotonic() + ANSWER_S
        try:
            with socket.create_connection((self._node.host, self._node.port), ANSWER_S) as sock:
                sock.sendall(wire.frame(wire.PING, _PING_ID))
                data = b""
                while True:
                    sock.settimeout(max(0.001, deadline - time.monotonic()))
                    more = sock.recv(4096)
                    data += more
                    answers, _ = frames.split(data)
                    if answers or not more:
                        return answers[:1] == [[wire.PING, _PING_ID, wire.TRUE]]
        except OSError:
            return False


class _Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = 4 * MAX_REQUESTS  # of its usual 5, a crowd would wait for the kernel to try again

    def __init__(self, bind: Address, health: Health) -> None:
        self.health = health
        found = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM)
        self.address_family, _, _, _, address = found[0]
        self._room = threading.Semaphore(MAX_REQUESTS)
        super().__init__((str(address[0]), bind.port), _Request)

    def server_bind(self) -> None:
        # HTTPServer's own asks a name server for a name that nobody needs, for as long as that takes.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "", 0

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Somebody closed before the reply: nothing that we would want to know."""


class _Request(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_S
    server_version, sys_version = "skywalker", ""

    def do_GET(self) -> None:
        health = self.server.health
        path = self.path.partition("?")[0]
        if path == "/health":
            self._reply(health.is_well())
        elif path == "/ready":
            self._reply(health.ready and health.is_well())
        else:
            self._answer(404, {"error": f"there is nothing at {path}, but at /health and /ready"})

    def _reply(self, well: bool) -> None:
        self._answer(200 if well else 503, {"status": "OK" if well else "ERROR"})

    def _answer(self, code: int, content: dict[str, str]) -> None:
        body = json.dumps(content, separators=(",", ":")).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: whoever checks every few seconds would fill the log."""
