"""The connections of a plan, two for each of its pairs."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import Final

from bench import servers
from bench.errors import Unreachable
from bench.lanes import Script
from bench.plan import Plan
from bench.secure import Link, Secure
from skywalker.wire import junction as wire
from skywalker.wire import values

Connection = tuple[Link, Script]
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
            self.receivers.append((self.connect(plan, pair.receiver), pair.receiver))
            self.senders.append((self.connect(plan, pair.sender), pair.sender))

    def connect(self, plan: Plan, script: Script) -> Link:
        """Connect where `plan` says, and say what comes before all calls. Raises Unreachable."""
        try:
            sock = socket.create_connection((plan.host, plan.port), plan.patience_s)
        except OSError as error:
            raise Unreachable(f"cannot connect to {plan.host}:{plan.port}: {error.strerror or error}") from error
        self.enter_context(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link: Link = sock
        if plan.ca:
            link = Secure.connected(sock, plan.ca, plan.host)
            self.callback(link.close)
        if plan.token:
            script = greeting(plan.token)
        if script.opening:
            _open(link, script)
        return link


_FIRST, _SECOND = values.pack(1), values.pack(2)
_GREETED: Final = re.escape(wire.reply(wire.PING, _SECOND, wire.TRUE)) + rb"\Z"


def greeting(token: str = "") -> Script:
    """Return the script of a connection that says who it is, is answered, and makes no calls."""
    options = values.pack({"token": token} if token else {})
    # Nobody knows how long the answer to :hello is; that to :ping comes after it, and is always the same.
    opening = wire.frame(wire.HELLO, _FIRST, options) + wire.frame(wire.PING, _SECOND)
    return Script([], [], 0, opening, _GREETED)


def _open(sock: Link, script: Script) -> None:
    """Say what a connection begins with, and hear the server out. Raises Unreachable."""
    heard = b""
    try:
        sock.sendall(script.opening)
        while not re.search(script.opened, heard):
            try:
                data = sock.recv(65536)
            except BlockingIOError:  # of TLS: half a record
                continue
            if not data:
                raise Unreachable(f"the server closed a new connection; it said {heard[-200:]!r}")
            heard += data
    except OSError as error:
        raise Unreachable(f"a new connection came to nothing: {error}; the server said {heard[-200:]!r}") from error
