"""The writing half of a client's socket, and what a written value is worth.

A sender may be told `true` only once the kernel has taken the value for a listener. So a
connection remembers which of the chunks in its output are values. One write a turn usually
takes all, and every value in it is confirmed. If it does not, the connection is *choked*:
nothing is read from it and no value is given to it until the rest is written, what has not
been begun can still be taken back, and a peer that reads nothing for too long is cut off.

A subscriber gets its values nevertheless, up to a limit. Past that it is cut off as well.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from workers.calls.call import ClientCall
from workers.calls.ledger import Ledger
from workers.doors.commons import Commons
from workers.doors.subscription import Delivery, Subscribing
from workers.doors.write_buffer import WriteBuffer
from workers.engine.alarm import Alarm
from workers.engine.loop import READ, WRITE
from workers.engine.secure_socket import SecureSocket, Transport
from workers.stats import metrics
from workers.stats.closes import Close

SENT: Final = metrics.SENT.at

MAX_AT_ONCE: Final = 1024 * 1024
"""Bytes more than its buffer holds that a subscriber may be given before it can be written to."""


class Outlet(Subscribing):
    """What is to be written to one client."""

    __slots__ = (
        "_alarm", "_counted", "_is_deferred", "_ledger", "_max_out_bytes", "_max_unread", "_out", "_out_bytes",
        "_parked", "_secure", "_socket", "_unwritten", "_values", "_was_flooded", "_write", "closed", "opened_at",
        "paused", "peer",
    )  # fmt: skip

    def __init__(self, sock: Transport, peer: str, commons: Commons) -> None:
        Subscribing.__init__(self, commons)
        self._ledger: Ledger = commons.ledger
        if commons.journal is not None:
            self.journal = commons.journal
            self.connection = self.journal.number()
        self.peer = peer
        self.opened_at = self.turn.now
        self.closed = False  # one that is gone and not yet closed has its last words written
        self.paused = False  # nothing is read for now
        self._socket = sock
        self._secure = sock if isinstance(sock, SecureSocket) else None
        self._write = sock.send
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._max_out_bytes = commons.limits.output_bytes
        self._values: list[ClientCall] = []  # those whose value is in `_out`, in the same order
        self._unwritten: WriteBuffer | None = None  # what is unwritten, while choked
        self._counted = 0  # bytes of it, when that began
        self._max_unread = commons.limits.subscriber_buffer
        self._is_deferred = False  # attend() is about to be called
        self._was_flooded = False  # and it was not given all that it should
        self._parked: dict[ClientCall, None] = {}  # those that a value came for while there was no room
        self._alarm: Alarm | None = None  # for a peer that does not read

    def close(self, reason: Close, text: str) -> None:
        """Close at once. Calls that wait are cancelled, and values that were not written go to others."""
        raise NotImplementedError

    def drained(self) -> None:
        """All that there was is written, and nothing more is expected."""
        raise NotImplementedError

    def delivered(self, listener: ClientCall) -> None:
        """The kernel has taken the whole value that was given to `listener`."""
        listener.delivered()
        self.junction.confirm(listener.decided())

    def push(self, chunk: bytes) -> None:
        """Write `chunk` at the end of this turn, or once the peer has read what came before."""
        if self._unwritten is not None:
            self._unwritten.add(chunk)
            return
        if not self._out:
            self.turn.replies.append(self)
        self._out.append(chunk)
        self._out_bytes += len(chunk)

    def push_value(self, listener: ClientCall) -> None:
        if self._unwritten is not None:
            self._unwritten.add_value(listener)
            return
        if not self._values:
            self.turn.values.append(self)
        self._values.append(listener)
        self.push(listener.chunk)

    def push_message(self, chunk: bytes) -> None:
        """Write a value that a subscription of this connection was given, and whose sender does not wait for that."""
        self.push(chunk)
        self._see_that_it_is_read()

    def push_delivery(self, delivery: Delivery) -> None:
        self.push_value(delivery)
        self._see_that_it_is_read()

    def is_flooded(self) -> bool:
        unwritten = self._out_bytes if self._unwritten is None else self._unwritten.size
        if unwritten <= self._max_unread + MAX_AT_ONCE:
            return False
        self._was_flooded = True
        self.defer()
        return True

    def _see_that_it_is_read(self) -> None:
        if self._unwritten is None:
            is_much = self._out_bytes > self._max_out_bytes
        else:
            is_much = self._unwritten.size > self._max_unread
        if is_much:
            self.defer()

    def defer(self) -> None:
        """Have attend() called once the event that is being dealt with is done."""
        if not self._is_deferred:
            self._is_deferred = True
            self.turn.later.append(self)

    def attend(self) -> None:
        """Write now what has become much in this turn; close if the peer does not read fast enough."""
        self._is_deferred = False
        if self.gone:
            return
        self.flush()
        if self._was_flooded or (self._unwritten is not None and self._unwritten.size > self._max_unread):
            self.cut_off("subscriber_buffer", f"it has not read {self._max_unread} bytes of what it subscribes to")

    def cut_off(self, limit: str, text: str) -> None:
        if not self.closed:
            connections = self.commons.connections
            connections.subscribers_cut_off += 1
            so_far = connections.subscribers_cut_off
            self.commons.log.warning("subscriber-cut-off", peer=self.peer, reason=text, so_far=so_far)
            self.counters.limited(limit)
            self.close(Close.SLOW_SUBSCRIBER, text)

    def congested(self) -> bool:
        return self._unwritten is not None or self._out_bytes > self._max_out_bytes

    def park(self, listener: ClientCall) -> None:
        self._parked[listener] = None

    def unpark(self, listener: ClientCall) -> bool:
        if listener not in self._parked:
            return False
        del self._parked[listener]
        return True

    def take_back(self, listener: ClientCall, told: bool) -> bool:
        if self._unwritten is not None:
            # _drain() leaves it out, which is cheaper for many.
            return not self._unwritten.has_begun(listener)
        if not told or listener not in self._values:
            return False
        self._values.remove(listener)
        self._out = [chunk for chunk in self._out if chunk is not listener.chunk]
        self._out_bytes -= len(listener.chunk)
        self.junction.lost(listener.decided())
        listener.listen_again()
        return True

    def flush(self) -> None:
        """Write what there is to write; never waits."""
        if self.closed or self._unwritten is not None or not self._out:
            return
        out, values = self._out, self._values
        sent = self._send(out[0] if len(out) == 1 else b"".join(out))
        if sent < 0:
            return
        complete = sent == self._out_bytes
        self._out, self._values, self._out_bytes = [], [], 0
        if values:
            self.turn.now = monotonic()  # what these values bring about is answered now, and not when the turn began
        if complete:
            for listener in values:
                self.delivered(listener)
            self._roomy()
        else:
            self._choke(out, values, sent)

    def _send(self, data: bytes) -> int:
        """Return how many bytes the kernel took; -1 if that closed the connection."""
        try:
            sent = self._write(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.close(Close.BROKEN, f"cannot write: {error.strerror}")
            return -1
        self.counters.cells[SENT + self.door] += sent
        return sent

    def _choke(self, out: list[bytes], values: list[ClientCall], sent: int) -> None:
        unwritten = self._unwritten = WriteBuffer()
        listeners = iter(values)
        listener = next(listeners, None)
        for chunk in out:
            if listener is not None and listener.chunk is chunk:
                unwritten.add_value(listener)
                listener = next(listeners, None)
            else:
                unwritten.add(chunk)
        self._counted = unwritten.size
        self._ledger.add(self._counted)
        self.commons.connections.choked[self] = None
        self._wait()
        self._alarm = Alarm()
        self._expect_reading(self._alarm)
        self._written(unwritten, sent)

    def _drain(self) -> None:
        """Write more of what is unwritten, except values whose sender's time is over meanwhile."""
        unwritten = self._unwritten
        assert unwritten is not None
        for listener in unwritten.withdraw():
            self.junction.lost(listener.decided())
            listener.listen_again()
        sent = self._send(unwritten.batch())
        if sent >= 0:
            self._written(unwritten, sent)

    def _written(self, unwritten: WriteBuffer, sent: int) -> None:
        """Take written bytes off the buffer; confirm the values among them; go back to normal when it is empty."""
        if sent and self._alarm:
            self._expect_reading(self._alarm)
        for listener in unwritten.written(sent):
            self.delivered(listener)
        if self._secure is not None:
            unwritten.begin(self._secure.begun)
        if not unwritten.size and not self.closed:
            self._not_choked()
            self._wait()
            if self._alarm:
                self._alarm.off(self.turn)
            self._roomy()

    def _not_choked(self) -> None:
        self._unwritten = None
        self._ledger.remove(self._counted)
        del self.commons.connections.choked[self]

    def _roomy(self) -> None:
        if self.gone:
            if not self._out:
                self.drained()
        elif self._parked and not self.congested():
            parked, self._parked = self._parked, {}
            for listener in parked:
                listener.listen_again()

    def _expect_reading(self, alarm: Alarm) -> None:
        alarm.set(self.turn, self.turn.now + self.commons.limits.unread_output_s, self._unread)

    def _unread(self) -> None:
        # The socket is said to be writable only once a third of its buffer is free: a slow reader may have made
        # some room nevertheless, and then gets its time again.
        self._drain()
        if self._unwritten is None or (self._alarm and self._alarm.at is not None):
            return
        self.commons.log.info("connection-closed", peer=self.peer, reason="the peer does not read its replies")
        self.counters.limited("unread_output_s")
        self.close(Close.UNREAD, "the peer does not read its replies")

    @property
    def unread(self) -> int:
        """Bytes that it does not read as fast as they come, while it is choked."""
        return 0 if self._unwritten is None else self._unwritten.size

    @property
    def is_read(self) -> bool:
        """Whether what the peer sends is read."""
        return self._unwritten is None and not self.paused

    def pause(self) -> None:
        """Read nothing until told to go on."""
        self.paused = True
        self._wait()

    def go_on(self) -> None:
        """Read on."""
        self.paused = False
        self._wait()

    def _wait(self) -> None:
        if not self.closed:
            wanted = WRITE if self._unwritten is not None else 0 if self.paused else READ
            self.commons.loop.change(self._socket.fileno(), wanted)
