"""Whether a worker of this node answers: a connection of one ping, or of a handshake, which is an answer too."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from typing import Final

from skywalker.address import Address
from skywalker.errors import ConfigError
from skywalker.wire import frames, values
from skywalker.wire import junction as wire

ANSWER_S: Final = 1.0
"""Seconds for a worker to answer."""

_ID: Final = values.pack(1)
_HELLO: Final = wire.frame(wire.HELLO, _ID, values.pack({}))


class Ping:
    """`node` is where it is pinged; `tls` returns how that is spoken there, if it is."""

    def __init__(self, node: Address, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._node = node
        self._tls = tls

    def is_answered(self) -> bool:
        """Return whether a worker answers; takes as long as it may take."""
        try:
            with socket.create_connection((self._node.host, self._node.port), ANSWER_S) as sock:
                if self._tls is None:
                    return _answers(sock)
                with self._tls().wrap_socket(sock):
                    return True
        except (OSError, ConfigError):
            return False


def _answers(sock: socket.socket) -> bool:
    deadline = time.monotonic() + ANSWER_S
    sock.sendall(_HELLO)
    data = b""
    while True:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        more = sock.recv(4096)
        data += more
        answers, _ = frames.split(data)
        if answers or not more:
            return bool(answers) and _is_alive(answers[0])


def _is_alive(answer: frames.Frame | frames.BadFrame) -> bool:
    """Whether a frame is what a worker says to a greeting; one that would know first who asks is alive."""
    match answer:
        case [method, id, result] if (method, id) == (wire.HELLO, _ID):
            return True
        case [wire.ERROR, _, result]:
            return wire.refusal(values.unpack(result)) is not None
    return False
