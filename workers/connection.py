"""A client's socket: what is to be written to it, and what a written value is worth.

A sender may be told `true` only once the kernel has taken the value for a listener. So a
connection remembers which of the chunks in its output are values. One write a turn usually
takes all, and every value in it is confirmed. If it does not, the connection is *choked*:
nothing is read from it and no value is given to it until the rest is written, what has not
been begun can still be taken back, and a peer that reads nothing for too long is cut off.
"""

from __future__ import annotations

import socket
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Final

from skywalker.errors import RequestError
from workers.alarm import Alarm
from workers.calls import Caller, ClientCall
from workers.loop import READ, WRITE

if TYPE_CHECKING:
    from workers.router import Router

READ_BYTES: Final = 64 * 1024
"""Bytes read from one connection in a turn: enough for many calls, not so much that others wait."""

WRITE_BYTES: Final = 256 * 1024
"""Bytes offered to the kernel at once for a choked connection."""

LINGER_S: Final = 2.0
"""Seconds for a peer to read the last words to it. A close with unread input would destroy them."""


class Connection(Caller):
    """One accepted socket. A dialect derives from it and says what bytes from the peer mean."""

    __slots__ = (
        "_alarm", "_backlog", "_begun", "_max_out_bytes", "_out", "_out_bytes", "_parked", "_recv", "_socket",
        "_values", "_write", "closed", "peer", "turn",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, peer: str, router: Router) -> None:
        Caller.__init__(self, router)
        self.turn = router.turn
        self.peer = peer
        self.closed = False  # one that is gone and not yet closed has its last words written
        self._socket = sock
        self._recv, self._write = sock.recv, sock.send
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._max_out_bytes = router.limits.output_bytes
        self._values: list[ClientCall] = []  # those whose value is in `_out`, in the same order
        self._backlog: deque[tuple[bytes, ClientCall | None]] | None = None  # what is unwritten, while choked
        self._begun = False  # whether part of its first chunk is written
        self._parked: dict[ClientCall, None] = {}  # those that a value came for while there was no room
        self._alarm: Alarm | None = None  # for a peer that does not read

    def open(self) -> None:
        """Read from now on."""
        self.router.loop.add(self._socket.fileno(), self)

    # What a dialect says.

    def received(self, data: bytes) -> None:
        """Deal with bytes from the peer."""
        raise NotImplementedError

    def delivered(self, listener: ClientCall) -> None:
        """The kernel has taken the whole value that was given to `listener`."""
        router = self.router
        router.junction.confirm(listener.decided())

    def forget(self) -> list[ClientCall]:
        """The peer expects nothing more: give up its calls; return those whose value was written, not yet confirmed."""
        raise NotImplementedError

    def fail_all(self, error: RequestError) -> None:
        """Answer every waiting call with `error`."""
        raise NotImplementedError

    def waiting(self) -> list[ClientCall]:
        """Return the calls that are held."""
        raise NotImplementedError

    def ring_changed(self) -> None:
        """Tell the peer, if it wants to know, that the ring is another, or that this node is leaving it."""
        raise NotImplementedError

    # Input.

    def ready(self, events: int) -> None:
        """Read or write: the socket says it can."""
        if self._backlog is None:
            self._read()
        else:
            self._drain()

    def _read(self) -> None:
        try:
            data = self._recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(f"cannot read: {error.strerror}")
            return
        if not data:
            self.close("the peer closed it")
        elif not self.gone:
            # A turn may take long, and what arrives in its middle has all its time before it.
            self.turn.now = monotonic()
            self.received(data)

    # Output.

    def push(self, chunk: bytes) -> None:
        """Write `chunk` at the end of this turn."""
        if not self._out:
            self.turn.replies.append(self)
        self._out.append(chunk)
        self._out_bytes += len(chunk)

    def push_value(self, listener: ClientCall) -> None:
        if not self._values:
            self.turn.values.append(self)
        self._values.append(listener)
        self.push(listener.chunk)

    def congested(self) -> bool:
        return self._backlog is not None or self._out_bytes > self._max_out_bytes

    def park(self, listener: ClientCall) -> None:
        self._parked[listener] = None

    def unpark(self, listener: ClientCall) -> bool:
        if listener not in self._parked:
            return False
        del self._parked[listener]
        return True

    def take_back(self, listener: ClientCall) -> None:
        # Of what is choked, _drain() takes back the same, and more cheaply for many.
        if listener in self._values:
            self._values.remove(listener)
            self._out = [chunk for chunk in self._out if chunk is not listener.chunk]
            self._out_bytes -= len(listener.chunk)
            self.router.junction.lost(listener.decided())
            self.router.listen_again(listener)

    def flush(self) -> None:
        """Write what there is to write; never waits."""
        if self.closed or self._backlog is not None or not self._out:
            return
        out, values = self._out, self._values
        sent = self._send(out[0] if len(out) == 1 else b"".join(out))
        if sent is None:
            return
        complete = sent == self._out_bytes
        self._out, self._values, self._out_bytes = [], [], 0
        if complete:
            for listener in values:
                self.delivered(listener)
            self._roomy()
        else:
            self._choke(out, values, sent)

    def _send(self, data: bytes) -> int | None:
        """Return how many bytes the kernel took; None if that closed the connection."""
        try:
            return self._write(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.close(f"cannot write: {error.strerror}")
            return None

    def _choke(self, out: list[bytes], values: list[ClientCall], sent: int) -> None:
        listeners = iter(values)
        listener = next(listeners, None)
        self._backlog = deque()
        self._begun = False
        for chunk in out:
            if listener is not None and listener.chunk is chunk:
                listener.sender().hold()
                self._backlog.append((chunk, listener))
                listener = next(listeners, None)
            else:
                self._backlog.append((chunk, None))
        self.router.bytes_held += sum(map(len, out))
        self.router.loop.change(self._socket.fileno(), WRITE)
        self._alarm = Alarm(self._unread)
        self._expect_reading(self._alarm)
        self._written(self._backlog, sent)

    def _drain(self) -> None:
        """Write more of the backlog, except values whose sender was told meanwhile that nobody came."""
        assert self._backlog is not None
        first = self._backlog[0]
        backlog: deque[tuple[bytes, ClientCall | None]] = deque()
        withdrawn: list[ClientCall] = []
        for item in self._backlog:
            listener = item[1]
            if listener is None or not listener.sender().abandoned or (item is first and self._begun):
                backlog.append(item)
            else:
                withdrawn.append(listener)
        self._backlog = backlog
        for listener in withdrawn:
            self.router.bytes_held -= len(listener.chunk)
            self.router.junction.lost(listener.decided())
            self.router.listen_again(listener)
        batch: list[bytes] = []
        size = 0
        for chunk, _ in backlog:
            batch.append(chunk)
            size += len(chunk)
            if size >= WRITE_BYTES:
                break
        sent = self._send(b"".join(batch))
        if sent is not None:
            self._written(backlog, sent)

    def _written(self, backlog: deque[tuple[bytes, ClientCall | None]], sent: int) -> None:
        """Take written bytes off the backlog; confirm the values among them; go back to normal when it is empty."""
        if sent and self._alarm:
            self._expect_reading(self._alarm)
        self.router.bytes_held -= sent
        while sent:
            chunk, listener = backlog.popleft()
            if sent < len(chunk):
                backlog.appendleft((chunk[sent:], listener))
                self._begun = True
                return
            self._begun = False
            sent -= len(chunk)
            if listener is not None:
                self.delivered(listener)
        if not backlog and not self.closed:
            self._backlog = None
            self.router.loop.change(self._socket.fileno(), READ)
            if self._alarm:
                self._alarm.off(self.turn)
            if self._out:
                self.turn.replies.append(self)
            self._roomy()

    def _roomy(self) -> None:
        if self.gone:
            if not self._out:
                self._half_close()
        elif self._parked and not self.congested():
            parked, self._parked = self._parked, {}
            for listener in parked:
                self.router.listen_again(listener)

    # The end.

    def turn_away(self, error: RequestError, reason: str) -> None:
        """Say why, in this dialect, and then close; nothing more is read or answered."""
        raise NotImplementedError

    def last_words(self, chunk: bytes, reason: str) -> None:
        """Write `chunk` and then close; nothing more is read or answered."""
        self.gone = True
        self._parked = {}
        self._lost(self.forget())
        self.push(chunk)
        self.router.log.info("connection-refused", peer=self.peer, reason=reason)

    def _half_close(self) -> None:
        # A full close with unread input would have the kernel destroy the last words on their way.
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.close(f"cannot shut down: {error.strerror}")
            return
        self._alarm = Alarm(lambda: self.close("it has had its last words"))
        self._alarm.set(self.turn, self.turn.now + LINGER_S)

    def _expect_reading(self, alarm: Alarm) -> None:
        alarm.set(self.turn, self.turn.now + self.router.limits.unread_output_s)

    def _unread(self) -> None:
        # The socket is said to be writable only once a third of its buffer is free: a slow reader may have made
        # some room nevertheless, and then gets its time again.
        self._drain()
        if self._backlog is None or (self._alarm and self._alarm.at is not None):
            return
        self.router.log.info("connection-closed", peer=self.peer, reason="the peer does not read its replies")
        self.close("the peer does not read its replies")

    def goodbye(self) -> None:
        """Close without destroying what was just written: first take in whatever the peer has sent."""
        try:
            while not self.closed and self._socket.recv(READ_BYTES):
                pass
        except OSError:
            pass  # nothing more is there, or the connection is gone: either way it is to be closed
        self.close("the worker ends")

    def detach(self) -> tuple[socket.socket, bytes]:
        """Give the socket away, with what is still to be written to it. Only for one that has no calls."""
        self.gone = self.closed = True
        self.router.loop.remove(self._socket.fileno())
        self.forget()
        unwritten = b"".join(self._out)
        self._out, self._out_bytes = [], 0
        self.router.closed(self)
        return self._socket, unwritten

    def close(self, reason: str) -> None:
        """Close at once. Calls that wait are cancelled, and values that were not written go to others."""
        if self.closed:
            return
        self.gone = self.closed = True
        self.router.loop.remove(self._socket.fileno())
        self._socket.close()
        if self._alarm:
            self._alarm.off(self.turn)
            self._alarm = None  # the two refer to each other
        unwritten = [*self._values]
        if self._backlog is not None:
            unwritten += [listener for _, listener in self._backlog if listener is not None]
            self.router.bytes_held -= sum(len(chunk) for chunk, _ in self._backlog)
            self._backlog = None
        self._values, self._parked = [], {}
        self._lost([*self.forget(), *unwritten])
        self.router.closed(self)

    def _lost(self, listeners: list[ClientCall]) -> None:
        for listener in listeners:
            self.router.junction.lost(listener.decided())
