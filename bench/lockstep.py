"""The latency: one rendezvous at a time, from the first byte written to both replies read.

The pairs take turns, so that with several workers some topics belong to the worker a
connection came to, and some to another.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Sequence

from bench.connections import Connection
from bench.errors import BenchError, Stalled, Unreachable, WrongReply
from bench.lanes import Script
from bench.plan import Tally, Window
from bench.secure import Link


class Caller:
    """One connection that makes its single call and waits for the reply."""

    __slots__ = ("_call", "_ping", "_pong", "_reply", "_room", "_socket", "answers")

    def __init__(self, sock: Link, script: Script, patience_s: float) -> None:
        if not isinstance(sock, socket.socket):
            raise BenchError("one rendezvous at a time is not measured over TLS")
        (self._call,), (self._reply,) = script.calls, script.replies
        self.answers = script.answers
        self._ping, self._pong = script.ping, script.pong
        # A byte more than the reply shows what comes twice; but behind it there may be a ping.
        self._room = len(self._reply) + (not script.ping)
        self._socket = sock
        # Unlike settimeout(), this costs no system call of its own at each read.
        sock.setblocking(True)
        seconds, fraction = divmod(patience_s, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(seconds), int(fraction * 1e6)))

    def call(self) -> None:
        """Write the call."""
        try:
            self._socket.sendall(self._call)
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error

    def wait(self) -> None:
        """Read the reply. Raises BenchError if it is wrong or does not come."""
        reply = b""
        while len(reply) < len(self._reply):
            try:
                data = self._socket.recv(self._room - len(reply))
            except BlockingIOError:
                raise Stalled(f"a call is not answered; came so far: {reply!r}") from None
            except OSError as error:
                raise Unreachable(f"a connection was lost: {error.strerror}") from error
            if not data:
                raise Unreachable("the node closed a connection")
            reply += data
            if self._ping and reply.startswith(self._ping):
                reply = reply.removeprefix(self._ping)
                self._socket.sendall(self._pong)
        if reply != self._reply:
            raise WrongReply(f"{reply!r} came where a correct node answers {self._reply!r}")


def run(receivers: Sequence[Connection], senders: Sequence[Connection], window: Window, patience_s: float) -> Tally:
    """Make one rendezvous after the other until the window ends, and return how long each in it took.

    Raises BenchError if anything is wrong, or not answered within `patience_s`.
    """
    pairs = [
        (Caller(*receiver, patience_s), Caller(*sender, patience_s))
        for receiver, sender in zip(receivers, senders, strict=True)
    ]
    latencies: list[float] = []
    total = 0
    began = end = window.start
    cpu = time.process_time()
    for receiver, sender in itertools.cycle(pairs):
        start = time.monotonic()
        if start >= window.stop:
            break
        if start < window.start:
            cpu = time.process_time()
        if receiver.answers:
            sender.call()
            receiver.wait()
            receiver.call()
            sender.wait()
        else:
            receiver.call()
            sender.call()
            sender.wait()
            receiver.wait()
        end = time.monotonic()
        total += 1
        if start >= window.start:
            began = began if latencies else start
            latencies.append((end - start) * 1e6)
    count = len(latencies)
    return Tally(end - began, count, count, total, total, time.process_time() - cpu, latencies)
