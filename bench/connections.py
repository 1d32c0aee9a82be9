"""The connections of a plan, two for each of its pairs."""

from __future__ import annotations

import contextlib
import socket

from bench.errors import Unreachable
from bench.lanes import Pair, Script
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
            pair = Pair.encode(plan.name, number, plan.in_flight, plan.value_bytes)
            self.receivers.append((self._connect(plan), pair.receiver))
            self.senders.append((self._connect(plan), pair.sender))

    def _connect(self, plan: Plan) -> socket.socket:
        try:
            sock = socket.create_connection((plan.host, plan.port), plan.patience_s)
        except OSError as error:
            raise Unreachable(f"cannot connect to {plan.host}:{plan.port}: {error.strerror or error}") from error
        self.enter_context(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
