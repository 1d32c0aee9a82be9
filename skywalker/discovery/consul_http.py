"""The HTTP beneath python-consul2, in place of its own.

A request has a time that it may take, and can be ended from another thread; and it goes where we
were told to go, whatever CONSUL_HTTP_* or proxy variables the environment has.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from skywalker.discovery.consul_access import ConsulAccess
from skywalker.errors import DiscoveryError

CONNECT_S: Final = 3.0
"""Seconds for a connection to Consul, whose agent is as a rule on this machine."""

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of one answer: some 40,000 instances of a service."""


class ConsulHttp:
    """What python-consul2 asks of an HTTP client: a connection for each request, as few as there are."""

    def __init__(self, access: ConsulAccess, patience_s: float) -> None:
        """`patience_s` is how long Consul may be silent before it answers."""
        self._access = access
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._closed = False

    def get(
        self,
        callback: Callable[[Any], Any],
        path: str,
        params: Iterable[tuple[str, object]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        return callback(self._answer("GET", f"{quote(path)}?{urlencode([*params])}", "", headers))

    def put(
        self, callback: Callable[[Any], Any], path: str, data: str = "", headers: Mapping[str, str] | None = None
    ) -> Any:
        return callback(self._answer("PUT", quote(path), data, headers))

    def close(self) -> None:
        """End all requests that are under way with an error, from any thread. There can be no more."""
        with self._lock:
            self._closed = True
            for each in self._sockets:
                with contextlib.suppress(OSError):  # its peer has gone already
                    # Not what TLS makes of it, which takes the session away from under the thread that reads.
                    socket.socket.shutdown(each, socket.SHUT_RDWR)

    def _answer(self, method: str, target: str, data: str, headers: Mapping[str, str] | None) -> Any:
        from consul.base import Response

        connection = self._connection()
        try:
            connection.connect()
            with self._registered(connection.sock):
                connection.sock.settimeout(self._patience_s)
                connection.request(method, target, data.encode(), {**(headers or {}), "Connection": "close"})
                answer = connection.getresponse()
                with answer:
                    content = answer.read(MAX_ANSWER + 1)
        finally:
            connection.close()
        if len(content) > MAX_ANSWER:
            raise ValueError(f"an answer of more than {MAX_ANSWER} bytes")
        return Response(answer.status, answer.headers, content.decode(), content)

    def _connection(self) -> http.client.HTTPConnection:
        access = self._access
        host, port = access.address.host, access.address.port
        if not access.tls:
            return http.client.HTTPConnection(host, port, timeout=CONNECT_S)
        # Read anew each time, as certificates are replaced while a node runs.
        try:
            context = ssl.create_default_context(cafile=access.ca_file or None)
            if access.cert_file:
                context.load_cert_chain(access.cert_file, access.key_file or None)
        except OSError as error:
            files = ", ".join(filter(None, (access.ca_file, access.cert_file, access.key_file)))
            raise DiscoveryError(f"{access}: cannot use the TLS files {files}: {error.strerror or error}") from error
        return http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=context)

    @contextlib.contextmanager
    def _registered(self, sock: socket.socket) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise ConnectionAbortedError("closed")
            self._sockets.add(sock)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(sock)
