"""What answers as Consul's API, but only what a test tells it to, and keeps what it was asked."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from skywalker.address import Address
from skywalker.discovery.consul import ConsulAccess


def instance(address: Address) -> dict[str, Any]:
    """Return what Consul says of an instance, as far as we look at it."""
    return {"Node": {"Address": "10.0.0.1"}, "Service": {"Address": address.host, "Port": address.port}}


class ToldConsul:
    """Gives the answers that say() put in line; for a `with` block."""

    def __init__(self) -> None:
        self._answers: queue.Queue[tuple[int, dict[str, str], bytes]] = queue.Queue()
        self.asked: list[dict[str, str]] = []
        """The options of every request."""
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                told.asked.append(dict(parse_qsl(urlsplit(self.path).query)))
                status, headers, body = told._answers.get(timeout=10)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_PUT(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        self.access = ConsulAccess(Address("127.0.0.1", self._server.server_port))

    def __enter__(self) -> ToldConsul:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def say(self, index: int | str, *addresses: Address) -> None:
        """Answer with these instances."""
        body = json.dumps([instance(address) for address in addresses]).encode()
        self.answer(200, body, {"X-Consul-Index": str(index)})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Answer with this."""
        self._answers.put((status, headers or {}, body))
