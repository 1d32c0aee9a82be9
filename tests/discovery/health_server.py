"""What Consul's health checks ask: well until told otherwise."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class HealthServer:
    """Answers 200 while it is `well`, else 503."""

    def __init__(self) -> None:
        self.well = True
        self.asked = 0
        health = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                health.asked += 1
                self.send_response(200 if health.well else 503)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        self.url = f"http://127.0.0.1:{self._server.server_port}/health"

    def __enter__(self) -> HealthServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
