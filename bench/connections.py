"""The connections of a plan, two for each of its pairs."""

from __future__ import annotations

import contextlib
import re
import socket

from bench import servers
from bench.errors import Unreachable
from bench.lanes import Script
from bench.plan import Plan

Connection = tuple[socket.socket, Script]
"""A socket, and what is to be said and heard on it."""


class Connections(contextlib.ExitStack):
    """Open connections, one of each list for each pair; closed on leaving."""

    def __init__(self) -> None:
        super().__init__()
        self.receivers: list[Connection] = []
        self.senders: list[Connection] = []

    def open(self, plan: Plan) -> None:
        """Connect for all pairs of `plan`. Raises Unreachable."""
        for number in range(plan.first_pair, plan.first_pair + plan.pairs):
            pair = servers.find(plan.server).encode(plan.name, number, plan.in_flight, plan.value_bytes)
            # The receiver first: where it has to subscribe, nothing can be sent before.
            self.receivers.append((self._connect(plan, pair.receiver), pair.receiver))
            self.senders.append((self._connect(plan, pair.sender), pair.sender))

    def _connect(self, plan: Plan, script: Script) -> socket.socket:
        try:
            sock = socket.create_connection((plan.host, plan.port), plan.patience_s)
        except OSError as error:
            raise Unreachable(f"cannot connect to {plan.host}:{plan.port}: {error.strerror or error}") from error
        self.enter_context(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if script.opening:
            _open(sock, script)
        return sock


def _open(sock: socket.socket, script: Script) -> None:
    """Say what a connection begins with, and hear the server out. Raises Unreachable."""
    heard = b""
    try:
        sock.sendall(script.opening)
        while not re.search(script.opened, heard):
            data = sock.recv(65536)
            if not data:
                raise Unreachable(f"the server closed a new connection; it said {heard[-200:]!r}")
            heard += data
    except OSError as error:
        raise Unreachable(f"a new connection came to nothing: {error}; the server said {heard[-200:]!r}") from error
