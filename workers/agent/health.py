"""Whether the node is well, over HTTP: for Consul, load balancers and people.

GET /health  200 {"status":"OK"} if a worker answers a ping, else 503 {"status":"ERROR"}
GET /ready   the same, and 503 while the node starts or drains
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Final

from skywalker.address import Address
from skywalker.listeners import reason
from workers.agent.ping import Ping

REQUEST_S: Final = 5.0
"""Seconds for more of a request to arrive, and for a reply to be read."""

MAX_REQUESTS: Final = 32
"""Connections at a time, each of which has a thread. For one more, the one that has waited longest for its request to
be whole is closed; if all get answers, the new one is."""

LEAVE_S: Final = 0.5
"""Seconds for a connection that is closed to give up its thread."""

PAUSE_S: Final = 0.2
"""Seconds without accepting when this process has no descriptors left."""


class Health:
    """The server. By `ping` it finds out how the node is."""

    def __init__(self, bind: Address, ping: Ping) -> None:
        self.bind = bind
        self.is_well = ping.is_answered
        self._server: _Server | None = None
        self.ready = False  # whether the node has started and does not drain

    def open(self) -> Address:
        """Serve from now on, in threads; return where. Raises OSError if that address cannot be had."""
        assert self._server is None, "it serves already"
        self._server = server = _Server(self.bind, self)
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
        return Address(*server.server_address[:2])  # type: ignore[arg-type]  # of a TCP socket

    def close(self) -> None:
        """End it, if it was opened."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


_Connection = socket.socket | tuple[bytes, socket.socket]
"""What socketserver, which knows UDP too, says that a request comes by."""


class _Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = 4 * MAX_REQUESTS  # of its usual 5, a crowd would wait for the kernel to try again

    def __init__(self, bind: Address, health: Health) -> None:
        self.health = health
        found = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM)
        self.address_family, _, _, _, address = found[0]
        self._room = threading.Semaphore(MAX_REQUESTS)
        self._asking: dict[socket.socket, None] = {}  # whose request is not whole, the oldest first
        self._lock = threading.Lock()  # for those: none is closed once it is another's
        super().__init__((str(address[0]), bind.port), _Request)

    def server_bind(self) -> None:
        # HTTPServer's own asks a name server for a name that nobody needs, for as long as that takes.
        try:
            socketserver.TCPServer.server_bind(self)
        except OSError as error:
            host, port = self.server_address[:2]
            raise OSError(error.errno, reason(error, str(host), port)) from error
        self.server_name, self.server_port = "", 0

    def get_request(self) -> tuple[socket.socket, object]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(PAUSE_S)  # or who waits would be looked for again at once
            raise

    def process_request(self, request: _Connection, client_address: object) -> None:
        assert isinstance(request, socket.socket), "they come by TCP"
        if not self._room.acquire(blocking=False):
            self._close_oldest()
            if not self._room.acquire(timeout=LEAVE_S):
                self.shutdown_request(request)
                return
        with self._lock:
            self._asking[request] = None
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # there is no thread to be had
            self._room.release()
            raise

    def _close_oldest(self) -> None:
        with self._lock, contextlib.suppress(OSError):  # it may have left
            for oldest in self._asking:
                oldest.shutdown(socket.SHUT_RDWR)
                return

    def has_asked(self, request: socket.socket) -> None:
        """Its request is whole: it gets an answer, or has left."""
        with self._lock:
            self._asking.pop(request, None)

    def process_request_thread(self, request: _Connection, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def shutdown_request(self, request: _Connection) -> None:
        assert isinstance(request, socket.socket), "they come by TCP"
        self.has_asked(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Somebody closed before the reply: nothing that we would want to know."""


class _Request(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_S
    server_version, sys_version = "skywalker", ""

    def do_GET(self) -> None:
        self.server.has_asked(self.connection)
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
