"""A client's connection: what comes in, and how it ends. How it is written to, outlet.py has."""

from __future__ import annotations

import socket
from time import monotonic
from typing import TYPE_CHECKING, Final

from skywalker.errors import RequestError
from skywalker.journal.record import CANCELLED, GONE
from workers import figures
from workers.alarm import Alarm
from workers.calls import ClientCall
from workers.closes import Close
from workers.loop import BROKEN
from workers.node_call import NodeCall
from workers.outlet import Outlet

if TYPE_CHECKING:
    from workers.router import Router
    from workers.subscription import Subscription, Unsubscribing

READ_BYTES: Final = 64 * 1024
"""Bytes read from one connection in a turn: enough for many calls, not so much that others wait."""

RECEIVED: Final = figures.RECEIVED.at

LINGER_S: Final = 2.0
"""Seconds for a peer to read the last words to it. A close with unread input would destroy them."""


GOODBYE: Final = (Close.DRAINING, "the worker ends")


class Connection(Outlet):
    """One accepted socket. A dialect derives from it and says what bytes from the peer mean."""

    __slots__ = ("_ending", "_recv", "_tail", "_unfinished")

    def __init__(self, sock: socket.socket, peer: str, router: Router) -> None:
        Outlet.__init__(self, sock, peer, router)
        self._recv = sock.recv
        self._tail = b""  # the beginning of what the peer still has to say
        self._unfinished: Alarm | None = None  # for the rest of it
        self._ending: tuple[Close, str] | None = None  # why, of one that only has its last words written

    def open(self) -> None:
        """Read from now on."""
        self.router.loop.add(self._socket.fileno(), self)

    # What a dialect says.

    def received(self, data: bytes) -> None:
        """Deal with bytes from the peer."""
        raise NotImplementedError

    def forget(self) -> list[ClientCall]:
        """The peer expects nothing more: give up its calls; return those whose value was written, not yet confirmed."""
        raise NotImplementedError

    def fail_all(self, error: RequestError) -> None:
        """Answer every waiting call with `error`."""
        raise NotImplementedError

    def waiting(self) -> list[ClientCall]:
        """Return the calls that are held."""
        raise NotImplementedError

    def worded(self, subscription: Subscription, send: NodeCall) -> bytes:
        """Return the message that gives a value to a subscription; empty if it cannot be given."""
        raise NotImplementedError

    def tell(self, subscription: Subscription, send: NodeCall) -> None:
        """Write that message, whose sender does not wait for it."""
        raise NotImplementedError

    def subscribed(self, subscription: Subscription) -> None:
        """It is in effect."""
        raise NotImplementedError

    def unsubscribed(self, by: Unsubscribing) -> None:
        """A subscription has ended."""
        raise NotImplementedError

    @property
    def subscriptions(self) -> int:
        """How many it has."""
        raise NotImplementedError

    def leave(self) -> None:
        """This worker is about to end: learn what became of calls that wait at others."""
        raise NotImplementedError

    def is_owed(self) -> bool:
        """Return whether another worker is still to say so, or the peer that it has what it was given."""
        raise NotImplementedError

    def hung_up(self) -> None:
        """The peer sends nothing more."""
        self.close(Close.PEER, "the peer closed it")

    def ring_changed(self) -> None:
        """Tell the peer, if it wants to know, that the ring is another, or that this node is leaving it."""
        raise NotImplementedError

    # Input.

    def ready(self, events: int) -> None:
        """Read or write: the socket says it can."""
        if self._backlog is not None:
            self._drain()
        elif not self.paused:
            self._read()
        elif events & BROKEN:
            self.close(Close.BROKEN, "the connection is broken")

    def _read(self) -> None:
        try:
            data = self._recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(Close.BROKEN, f"cannot read: {error.strerror}")
            return
        self.tally.cells[RECEIVED + self.door] += len(data)
        if not data:
            self.hung_up()
        elif not self.gone:
            # A turn may take long, and what arrives in its middle has all its time before it.
            self.turn.now = monotonic()
            self.received(data)

    def watch_tail(self, *, fresh: bool) -> None:
        """See that what has begun goes on; `fresh` says that something was completed meanwhile."""
        alarm = self._unfinished
        if alarm is None:
            alarm = self._unfinished = Alarm(self._tail_is_old)
        if not self._tail:
            alarm.off(self.turn)
        elif fresh or alarm.at is None:
            alarm.set(self.turn, self.turn.now + self.router.limits.half_frame_s)

    def _tail_is_old(self) -> None:
        if self.is_read:
            self.tally.limited("half_frame_s")
            self.half_is_old(self.router.limits.half_frame_s)
        else:
            # It is us who do not read: the rest may long be there.
            self.watch_tail(fresh=True)

    def watch_no_more(self) -> None:
        """Nothing more is expected."""
        if self._unfinished is not None:
            self._unfinished.off(self.turn)
            self._unfinished = None  # the two refer to each other

    # The end.

    def half_is_old(self, seconds: float) -> None:
        """The rest of what has begun did not come within so many seconds."""
        raise NotImplementedError

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        """Say why, in this dialect, and then close; nothing more is read or answered."""
        raise NotImplementedError

    def last_words(self, chunk: bytes, reason: Close, text: str) -> None:
        """Write `chunk` and then close; nothing more is read or answered."""
        self.router.log.info("connection-refused", peer=self.peer, reason=text)
        self.finish(chunk, reason, text)

    def finish(self, chunk: bytes, reason: Close, text: str) -> None:
        """Do the same without a word in the log."""
        self.gone = True
        self._ending = reason, text
        self._parked = {}
        self._lost(self.forget())
        self.push(chunk)

    def drained(self) -> None:
        # A full close with unread input would have the kernel destroy the last words on their way.
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.close(Close.BROKEN, f"cannot shut down: {error.strerror}")
            return
        self._alarm = Alarm(lambda: self.close(Close.BROKEN, "it has had its last words"))
        self._alarm.set(self.turn, self.turn.now + LINGER_S)

    def goodbye(self) -> None:
        """Close, once the peer has taken in what was written."""
        if not self.gone:
            self.finish(b"", *GOODBYE)

    def detach(self) -> tuple[socket.socket, bytes]:
        """Give the socket away, with what is still to be written to it. Only for one that has no calls."""
        self.gone = self.closed = True
        self.router.loop.remove(self._socket.fileno())
        self.forget()
        unwritten = b"".join(self._out)
        self._out, self._out_bytes = [], 0
        self.router.closed(self, Close.BECAME_LINK, "it is the link to another node's worker now")
        return self._socket, unwritten

    def close(self, reason: Close, text: str) -> None:
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
            unwritten += self._backlog.listeners()
            self._not_choked()
        self._values, self._parked = [], {}
        self._lost([*self.forget(), *unwritten])
        self.router.closed(self, *(self._ending or (reason, text)))

    def _lost(self, listeners: list[ClientCall]) -> None:
        for listener in listeners:
            listener.note(GONE if self.gone else CANCELLED)
            self.router.junction.lost(listener.decided())
