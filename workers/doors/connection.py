"""A client's connection: what comes in, and how it ends. How it is written to, outlet.py has."""

from __future__ import annotations

import socket
from time import monotonic
from typing import Any, Final

from skywalker.address import Address
from skywalker.errors import RequestError
from skywalker.journal.record import CANCELLED, GONE
from workers.access.bucket import Bucket
from workers.access.strangers import Stranger
from workers.calls.call import ClientCall
from workers.doors.commons import Commons
from workers.doors.outlet import Outlet
from workers.engine.alarm import Alarm
from workers.engine.loop import BROKEN
from workers.engine.secure_socket import Transport
from workers.engine.turn import SHARE_S
from workers.stats import metrics
from workers.stats.closes import Close

READ_BYTES: Final = 64 * 1024
DEAR_BYTES: Final = 8 * 1024
"""Bytes read from a connection in a turn: enough for many calls, not so much that others wait. Of a dear one fewer."""

RECEIVED: Final = metrics.RECEIVED.at

LINGER_S: Final = 2.0
"""Seconds for a peer to read the last words to it. A close with unread input would destroy them."""

GOODBYE: Final = (Close.DRAINING, "the worker ends")


class Connection(Outlet):
    """One accepted socket. A dialect derives from it and says what bytes from the peer mean."""

    __slots__ = (
        "_bucket", "_ending", "_is_dear", "_is_put_off", "_is_resting", "_recv", "_tail", "_todo", "_unfinished",
        "heard_at", "paced", "proved", "stranger",
    )  # fmt: skip

    knows_tokens = False
    """Whether the dialect has a word by which a client says who it is."""
    tls_wanted = b""
    """How one that speaks no TLS is told that it should, if there is a word for it."""

    def __init__(self, sock: Transport, peer: str, commons: Commons) -> None:
        Outlet.__init__(self, sock, peer, commons)
        self.stranger: Stranger | None = None  # its place among those of whom that is not known
        self.proved = False  # that it is a node's
        rate = commons.limits.max_rate
        self._bucket = Bucket(rate, self.turn.now) if rate else None
        self.paced = self._bucket is not None  # what it asks is counted by the second
        self._recv = sock.recv
        self.heard_at = 0.0
        self._tail = b""  # the beginning of what the peer still has to say
        self._unfinished: Alarm | None = None  # for the rest of it
        self._todo: list[Any] = []  # what is read and waits for its turn, the first of it last
        self._is_dear = False  # what it said last took more than its share of a turn
        self._is_put_off = False  # and nothing more is read before
        self._is_resting = False  # for a while, or until the next turn
        self._ending: tuple[Close, str] | None = None  # why, of one that only has its last words written

    def open(self) -> None:
        """Read from now on."""
        self.commons.loop.add(self._socket.fileno(), self)

    # What a dialect says.

    def received(self, data: bytes) -> None:
        """Deal with bytes from the peer."""
        raise NotImplementedError

    def obey(self, todo: list[Any]) -> None:
        """Do what is asked, from the last of the list on, and keep what has to wait for its turn."""
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

    @property
    def subscriptions(self) -> int:
        """How many it has."""
        raise NotImplementedError

    @property
    def in_flight(self) -> int:
        """How many calls of it wait, with its subscriptions: what its principal may have so many of."""
        return self.subscriptions

    def leave(self) -> None:
        """This worker is about to end: learn what became of calls that wait at others."""
        raise NotImplementedError

    def is_owed(self) -> bool:
        """Return whether another worker is still to say so, or the peer that it has what it was given."""
        raise NotImplementedError

    def worker_drains(self) -> None:
        """This worker serves nobody new from now on."""

    def reached(self) -> Address | None:
        """Return to which address of this machine it was made, None by a Unix socket."""
        name = self._socket.getsockname()
        return Address(*name[:2]) if isinstance(name, tuple) else None

    def hung_up(self) -> None:
        """The peer sends nothing more."""
        self.close(Close.PEER, "the peer closed it")

    def hold_back(self) -> None:
        """Publish nothing more before all that was is acked: it may go another way, and overtake that."""

    def ring_changed(self) -> None:
        """Tell the peer, if it wants to know, that the ring is another, or that this node is leaving it."""
        raise NotImplementedError

    # Input.

    def ready(self, events: int) -> None:
        """Read or write: the socket says it can."""
        if self._unwritten is not None:
            self._drain()
        elif not self.paused:
            self._read()
        elif events & BROKEN:
            self.close(Close.BROKEN, "the connection is broken")

    def _read(self) -> None:
        try:
            data = self._recv(DEAR_BYTES if self._is_dear else READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(Close.BROKEN, f"cannot read: {error.strerror or error}")
            return
        self.counters.cells[RECEIVED + self.door] += len(data)
        if not data:
            self.hung_up()
        elif not self.gone:
            # A turn may take long, and what arrives in its middle has all its time before it.
            self.turn.now = monotonic()
            self.received(data)
            self._see_end()

    def _see_end(self) -> None:
        if self._secure is not None and self._secure.ended and not self._todo and not self.gone:
            # It has said so already: nothing more will come to tell of it. What it asked just before is answered first.
            self.flush()
            self.hung_up()

    def take(self, todo: list[Any], share: int) -> None:
        """Do what was just read; who says much, or was dear, waits for the next turn if this one is long."""
        was_dear, self._is_dear = self._is_dear, False
        if self.standing.opening:
            self._take_early(todo)
        elif (was_dear or len(todo) > share) and self.turn.is_long():
            self.rest(todo)
        else:
            self.obey(todo)

    def _take_early(self, todo: list[Any]) -> None:
        while todo and not self.gone and self.may_be_early(todo[-1]):
            self.obey([todo.pop()])
        if todo and not self.gone:
            self.put_off(todo)
            self._is_resting = True
            self.commons.connections.came_early(self)

    def may_be_early(self, item: Any) -> bool:
        """Whether this can be done before the worker has opened."""
        return False

    def put_off(self, todo: list[Any]) -> None:
        """Read nothing until this is done, which has to wait."""
        self._todo = todo
        self._is_put_off = True
        self.pause()

    def has_had_its_share(self) -> bool:
        """Whether what was done for it since it was read, or went on, is as much as one may have done in a turn."""
        now = monotonic()
        if now - self.turn.now < SHARE_S:
            return False
        self.turn.now = now
        self._is_dear = True
        return True

    def rest(self, todo: list[Any], seconds: float = 0.0) -> None:
        """Go on with this in the next turn, or in so many seconds."""
        self.put_off(todo)
        self._is_resting = True
        if seconds:
            Alarm().set(self.turn, self.turn.now + seconds, self.rested)
        else:
            self.turn.resting.append(self)

    def rested(self) -> None:
        """Go on now."""
        self._is_resting = False
        self.defer()

    def may_go_on(self) -> bool:
        """Whether something was put off, and nothing holds it up any more."""
        return self._is_put_off and not self._is_resting and self._unwritten is None

    def attend(self) -> None:
        Outlet.attend(self)
        if not self.gone and self.may_go_on():
            self.turn.now = monotonic()
            todo, self._todo = self._todo, []
            self._is_put_off = False
            self.go_on()
            self.obey(todo)
            self._see_end()

    def _roomy(self) -> None:
        Outlet._roomy(self)
        if self._is_put_off and not self.gone:
            self.defer()

    def delay(self) -> tuple[float, str]:
        """Count one more thing that is asked; return 0, or the seconds until there may be more, and by what limit."""
        now = self.turn.now
        own, account = self._bucket, self.account
        seconds = 0.0 if own is None else own.delay(now)
        if seconds:
            return seconds, "max_rate"
        if account is not None and account.bucket is not None:
            seconds = account.bucket.delay(now)
            if seconds and own is not None:
                own.put_back()
        return seconds, "access.rate"

    def watch_tail(self, *, fresh: bool) -> None:
        """See that what has begun goes on; `fresh` says that something was completed meanwhile."""
        alarm = self._unfinished
        if alarm is None:
            alarm = self._unfinished = Alarm()
        if not self._tail:
            alarm.off(self.turn)
        elif fresh or alarm.at is None:
            alarm.set(self.turn, self.turn.now + self.commons.limits.half_frame_s, self._tail_is_old)

    def _tail_is_old(self) -> None:
        if self.is_read:
            self.counters.limited("half_frame_s")
            self.half_is_old(self.commons.limits.half_frame_s)
        else:
            # It is us who do not read: the rest may long be there.
            self.watch_tail(fresh=True)

    def watch_no_more(self) -> None:
        """Nothing more is expected."""
        if self._unfinished is not None:
            self._unfinished.off(self.turn)

    # The end.

    def half_is_old(self, seconds: float) -> None:
        """The rest of what has begun did not come within so many seconds."""
        raise NotImplementedError

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        """Say why, in this dialect, and then close; nothing more is read or answered."""
        raise NotImplementedError

    def last_words(self, chunk: bytes, reason: Close, text: str) -> None:
        """Write `chunk` and then close; nothing more is read or answered."""
        self.commons.admission.turned_away.note(self.peer, text)
        self.finish(chunk, reason, text)

    def finish(self, chunk: bytes, reason: Close, text: str) -> None:
        """Do the same without a word in the log."""
        self.gone = True
        self.commons.admission.known(self)  # nobody waits any more to hear who it is
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
        self._alarm = Alarm()
        self._alarm.set(
            self.turn, self.turn.now + LINGER_S, lambda: self.close(Close.BROKEN, "it has had its last words")
        )

    def goodbye(self) -> None:
        """Close, once the peer has taken in what was written."""
        if not self.gone:
            self.finish(b"", *GOODBYE)

    def detach(self) -> tuple[Transport, bytes]:
        """Give the socket away, with what is still to be written to it. Only for one that has no calls."""
        self.gone = self.closed = True
        self.commons.loop.remove(self._socket.fileno())
        self.forget()
        unwritten = b"".join(self._out)
        self._out, self._out_bytes = [], 0
        self._ended(Close.BECAME_LINK, "it is the link to another node's worker now")
        return self._socket, unwritten

    def close(self, reason: Close, text: str) -> None:
        """Close at once. Calls that wait are cancelled, and values that were not written go to others."""
        if self.closed:
            return
        self.gone = self.closed = True
        self.commons.loop.remove(self._socket.fileno())
        self._socket.close()
        if self._alarm:
            self._alarm.off(self.turn)
        unwritten = [*self._values]
        if self._unwritten is not None:
            unwritten += self._unwritten.listeners()
            self._not_choked()
        self._values, self._parked = [], {}
        self._lost([*self.forget(), *unwritten])
        self._ended(*(self._ending or (reason, text)))

    def _ended(self, reason: Close, text: str) -> None:
        self.commons.admission.gone(self)
        self.commons.connections.closed(self, reason, text)

    def _lost(self, listeners: list[ClientCall]) -> None:
        for listener in listeners:
            listener.close(GONE if self.gone else CANCELLED)
            self.junction.lost(listener.decided())
