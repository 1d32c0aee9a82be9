"""A client's connection: what comes in, what is written, what a written value is worth, and how it ends.

A sender may be told `true` only once the kernel has taken the value for a listener. So a connection remembers which
of the chunks in its output are values. One write a turn usually takes all, and every value in it is confirmed. If it
does not, the connection is *choked*: nothing is read from it and no value is given to it until the rest is written,
what has not been begun can still be taken back, and a peer that reads nothing for too long is cut off. A subscriber
gets its values nevertheless, up to a limit. Past that it is cut off as well.
"""

from __future__ import annotations

import socket
from typing import Any, Final

from skywalker.errors import RequestError
from skywalker.journal.record import CANCELLED, GONE
from workers.access.account import Bucket, let_through
from workers.access.admission import Stranger
from workers.calls.call import ClientCall
from workers.calls.ledger import Ledger
from workers.doors import states
from workers.doors.commons import Commons
from workers.doors.states import CLOSED, HEARD, LEAVING, OPEN, PUT_OFF, RESTING
from workers.doors.subscription import Delivery, Subscribing
from workers.doors.write_buffer import WriteBuffer
from workers.engine.loop import BROKEN, READ, SHARE_S, WRITE, Alarm
from workers.engine.points import reached
from workers.engine.transport import Transport
from workers.stats import metrics
from workers.stats.close_reasons import GOODBYE, Close

READ_BYTES: Final = 64 * 1024
DEAR_BYTES: Final = 8 * 1024
"""Bytes read from a connection in a turn: enough for many calls, not so much that others wait. Of a dear one fewer."""

RECEIVED: Final = metrics.RECEIVED.at
SENT: Final = metrics.SENT.at
MAX_AT_ONCE: Final = 1024 * 1024
"""Bytes more than its buffer holds that a subscriber may be given before it can be written to."""

LINGER_S: Final = 2.0
"""Seconds for a peer to read the last words to it. A close with unread input would destroy them."""


class Connection(Subscribing):
    """One accepted socket. A dialect derives from it and says what bytes from the peer mean."""

    __slots__ = (
        "_alarm", "_bucket", "_counted", "_ending", "_is_dear", "_is_deferred", "_ledger", "_max_out_bytes",
        "_max_unread", "_out", "_out_bytes", "_parked", "_recv", "_socket", "_tail", "_todo", "_unfinished",
        "_unwritten", "_values", "_was_flooded", "_write", "acks", "heard_at", "hearing", "life", "opened_at", "paced",
        "peer", "proved", "stranger",
    )  # fmt: skip

    knows_tokens = False
    """Whether the dialect has a word by which a client says who it is."""
    tls_wanted = b""
    """How one that speaks no TLS is told that it should, if there is a word for it."""

    def __init__(self, sock: Transport, peer: str, commons: Commons) -> None:
        Subscribing.__init__(self, commons)
        self._ledger: Ledger = commons.ledger
        if commons.journal is not None:
            self.journal = commons.journal
            self.connection = self.journal.number()
        self.peer = peer
        self.opened_at = self.turn.now
        self.life = OPEN  # of what is written to it; `gone` says that it is LEAVING, or further on
        self.hearing = HEARD
        self._socket = sock
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
        self.stranger: Stranger | None = None  # its place among those of whom that is not known
        self.proved = False  # that it is a node's
        self.acks = False  # its client says so when it has what was given to one of its calls
        rate = commons.limits.max_rate
        self._bucket = Bucket(rate, self.turn.now) if rate else None
        self.paced = self._bucket is not None  # what it asks is counted by the second
        self._recv = sock.recv
        self.heard_at = 0.0
        self._tail = b""  # the beginning of what the peer still has to say
        self._unfinished: Alarm | None = None  # for the rest of it
        self._todo: list[Any] = []  # what is read and waits for its turn, the first of it last
        self._is_dear = False  # what it said last took more than its share of a turn
        self._ending: tuple[Close, str] | None = None  # why, of one that only has its last words written

    def open(self) -> None:
        """Read from now on."""
        self.commons.loop.add(self._socket.fileno(), self)

    def _becomes(self, event: int) -> None:
        self.life = states.CONNECTION.after(self.life, event)
        self.gone = self.life >= LEAVING

    def _hears(self, event: int) -> None:
        self.hearing = states.INPUT.after(self.hearing, event)
        self._wait()

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
        elif self.hearing == HEARD:
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
            self.turn.now = self.turn.clock()
            self.received(data)
            self._see_end()

    def _see_end(self) -> None:
        if self._socket.ended and not self._todo and not self.gone:
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
            self.hold(todo, states.PACED)
            self.commons.connections.came_early(self)

    def may_be_early(self, item: Any) -> bool:
        """Whether this can be done before the worker has opened."""
        return False

    def hold(self, todo: list[Any], event: int) -> None:
        """Read nothing until this is done, which has to wait: for its turn or its time, if it is PACED, or DELAYED."""
        self._todo = todo
        self._hears(event)

    def has_had_its_share(self) -> bool:
        """Whether what was done for it since it was read, or went on, is as much as one may have done in a turn."""
        now = self.turn.clock()
        if now - self.turn.now < SHARE_S:
            return False
        self.turn.now = now
        self._is_dear = True
        return True

    def rest(self, todo: list[Any], seconds: float = 0.0) -> None:
        """Go on with this in the next turn, or in so many seconds."""
        self.hold(todo, states.PACED)
        if seconds:
            Alarm().set(self.turn, self.turn.now + seconds, self.rested)
        else:
            self.turn.resting.append(self)

    def rested(self) -> None:
        """Go on now, unless it has gone on before its time, or is closed, or its worker opens: then hear_all() does."""
        if self.hearing == RESTING and not (self._todo and self.standing.opening):
            self._hears(states.DUE)
            self.defer()

    def may_go_on(self) -> bool:
        """Whether something was put off, and nothing holds it up any more."""
        return self.hearing == PUT_OFF and self._unwritten is None

    def take_up(self) -> list[Any]:
        """Return what was put off, and is to be done now; what comes is read again."""
        todo, self._todo = self._todo, []
        self._hears(states.TAKEN_UP)
        return todo

    def delay(self) -> tuple[float, str]:
        """Count one more thing that is asked; return 0, or the seconds until there may be more, and by what limit."""
        return let_through(self._bucket, self.account, self.turn.now)

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
        if self.hearing == HEARD and self._unwritten is None:
            self.counters.limited("half_frame_s")
            self.half_is_old(self.commons.limits.half_frame_s)
        else:
            # It is us who do not read: the rest may long be there.
            self.watch_tail(fresh=True)

    def watch_no_more(self) -> None:
        """Nothing more is expected."""
        if self._unfinished is not None:
            self._unfinished.off(self.turn)

    # Output.

    def write_down(self, listener: ClientCall) -> None:
        """The value that was given to `listener` is about to be written, which is all that its sender waits for."""
        listener.sender().write_down(self.turn.hand)

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
        unwritten = 0 if self._unwritten is None else self._unwritten.size  # and there is no output besides
        if self._out_bytes > self._max_out_bytes or unwritten > self._max_unread:
            self.defer()

    def defer(self) -> None:
        """Have attend() called once the event that is being dealt with is done."""
        if not self._is_deferred:
            self._is_deferred = True
            self.turn.later.append(self)

    def attend(self) -> None:
        """Write now what has become much in this turn, close if the peer does not read fast enough, or go on."""
        self._is_deferred = False
        if self.gone:
            return
        self.flush()
        if self._was_flooded or (self._unwritten is not None and self._unwritten.size > self._max_unread):
            self.cut_off("subscriber_buffer", f"it has not read {self._max_unread} bytes of what it subscribes to")
        if not self.gone and self.may_go_on():
            self.turn.now = self.turn.clock()
            self.obey(self.take_up())
            self._see_end()

    def cut_off(self, limit: str, text: str) -> None:
        if self.life < CLOSED:
            self.commons.connections.subscribers_cut_off += 1
            so_far = self.commons.connections.subscribers_cut_off
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
        if self._unwritten is not None or not self._out or self.life >= CLOSED:
            return
        out, values = self._out, self._values
        hand = self.turn.hand
        written_down = hand.count
        for listener in values:
            self.write_down(listener)
        sent = self._send(out[0] if len(out) == 1 else b"".join(out))
        if sent < 0:
            return
        complete = sent == self._out_bytes
        self._out, self._values, self._out_bytes = [], [], 0
        if values:
            # What these values bring about is answered now, and not when the turn began.
            self.turn.now = self.turn.clock()
            assert reached("a value is written")
        if complete:
            if not self.acks:
                hand.taken(written_down)
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
        self._becomes(states.CHOKES)
        assert self._unwritten is None, "what is written before that is"
        unwritten = self._unwritten = WriteBuffer()
        unwritten.add_all(out, values)
        self._ledger.add(unwritten.size)
        self._counted = unwritten.size
        self.commons.connections.choked[self] = None
        self._wait()
        self._alarm = Alarm()
        self._expect_reading(self._alarm)
        self._written(unwritten, sent)

    def _drain(self) -> None:
        """Write more of what is unwritten, except values whose sender's time is over meanwhile."""
        unwritten = self._unwritten
        assert unwritten is not None, "it is choked"
        for listener in unwritten.withdraw():
            self.junction.lost(listener.decided())
            listener.listen_again()
        data, listeners = unwritten.batch()
        for listener in listeners:
            self.write_down(listener)
        sent = self._send(data)
        if sent >= 0:
            self._written(unwritten, sent)

    def _written(self, unwritten: WriteBuffer, sent: int) -> None:
        """Take written bytes off the buffer; confirm the values among them; go back to normal when it is empty."""
        if sent and self._alarm:
            self._expect_reading(self._alarm)
        for listener in unwritten.written(sent):
            self.delivered(listener)
        unwritten.begin(self._socket.begun)
        if not unwritten.size and self.life < CLOSED:
            self._becomes(states.WRITTEN_OUT)
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
                self._say_no_more()
        elif self._parked and not self.congested():
            parked, self._parked = self._parked, {}
            for listener in parked:
                listener.listen_again()
        if self.hearing == PUT_OFF and not self.gone:
            self.defer()

    def _expect_reading(self, alarm: Alarm) -> None:
        alarm.set(self.turn, self.turn.now + self.commons.limits.unread_output_s, self._unread)

    def _unread(self) -> None:
        # A socket counts as writable once a third of its buffer is free: who reads slowly may have made some room
        # nevertheless, and gets its time again.
        self._drain()
        if self._unwritten is None or (self._alarm and self._alarm.at is not None):
            return
        self.commons.log.info("connection-closed", peer=self.peer, reason="the peer does not read its replies")
        self.counters.limited("unread_output_s")
        self.close(Close.UNREAD, "the peer does not read its replies")

    def unwritten(self) -> list[ClientCall]:
        """Return the listeners whose value is not written yet, or not all of it."""
        return [*self._values, *(self._unwritten.listeners() if self._unwritten is not None else ())]

    @property
    def unread(self) -> int:
        """Bytes that it does not read as fast as they come, while it is choked."""
        return 0 if self._unwritten is None else self._unwritten.size

    def _wait(self) -> None:
        if self.life < CLOSED:
            wanted = WRITE if self._unwritten is not None else READ if self.hearing == HEARD else 0
            self.commons.loop.change(self._socket.fileno(), wanted)

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
        self._becomes(states.FINISHED)
        self.commons.admission.known(self)  # nobody waits any more to hear who it is
        self._ending = reason, text
        self._parked = {}
        self._lost(self.forget())
        assert not self.in_flight, "nobody waits for what is never answered"
        if self.hearing in (PUT_OFF, RESTING):
            self._hears(states.TAKEN_UP)  # what still comes is read, or the close would destroy the last words
        self.push(chunk)

    def _say_no_more(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.close(Close.BROKEN, f"cannot shut down: {error.strerror}")
            return
        self._becomes(states.SHUT)
        self._alarm = Alarm()
        until = self.turn.now + LINGER_S
        self._alarm.set(self.turn, until, lambda: self.close(Close.BROKEN, "it has had its last words"))

    def goodbye(self) -> None:
        """Close, once the peer has taken in what was written."""
        if not self.gone:
            self.finish(b"", *GOODBYE)

    def detach(self) -> tuple[Transport, bytes]:
        """Give the socket away, with what is still to be written to it. Only for one that has no calls."""
        assert not self._values, "it asks nothing, and is given nothing"
        self._becomes(states.GIVEN_AWAY)
        self._hears(states.ENDED)
        self.commons.loop.remove(self._socket.fileno())
        self.forget()
        unwritten = b"".join(self._out)
        self._out, self._out_bytes = [], 0
        self._ended(Close.BECAME_LINK, "it is the link to another node's worker now")
        return self._socket, unwritten

    def close(self, reason: Close, text: str) -> None:
        """Close at once. Calls that wait are cancelled, and values that were not written go to others."""
        if self.life >= CLOSED:
            return
        self._becomes(states.CLOSES)
        self._hears(states.ENDED)
        self.commons.loop.remove(self._socket.fileno())
        self._socket.close()
        if self._alarm:
            self._alarm.off(self.turn)
        unwritten = self.unwritten()
        if self._unwritten is not None:
            self._not_choked()
        self._values, self._parked = [], {}
        self._lost([*self.forget(), *unwritten])
        self._ended(*(self._ending or (reason, text)))

    def _ended(self, reason: Close, text: str) -> None:
        assert not self.in_flight, "forget() has given up all"
        self.commons.admission.gone(self)
        self.commons.connections.closed(self, reason, text)

    def _lost(self, listeners: list[ClientCall]) -> None:
        for listener in listeners:
            listener.close(GONE if self.gone else CANCELLED)
            self.junction.lost(listener.decided())
