"""What two workers say to each other, of one node or of two: kinds of messages, gathered into batches.

A message is a frame as clients send them, with a length of 32 bits: an array of a kind, the
number that the asking side gave to the call, and what the kind needs. What clients sent is in
it as the very bytes that came. `since` is on the clock that workers of one node share; between
nodes it counts from now, and is never above 0.

    to the owner of the topic                       to the worker of the caller
      SEND no since topic value                       GIVE no value       for this listener
      LISTEN no since topic group-or-nil              ALSO no             the value given last, for this one too
      WITHDRAW no final unless it met somebody        MET no              a send has been taken, a publish handed out
      TOOK no           the listener has its value    WITHDRAWN no        it had met nobody, if that was not final
      LOST no           the listener is gone          BUSY no             no room for it to wait
      LONG no limit     it takes no more than that    REFUSED no limit    who listens takes no more than that
      UNACKED no is-so  its client is to acknowledge the value that it has; false, if that was given back
      CENSUS no topic                                 COUNTED no info
                                                      RECALL no           unless its client has the value
      PUBLISH no topic value form-or-nil
      SUBSCRIBE topic count                           SUBSCRIBED topic    so many subscribe now
      SETTLED nil       that was all from before      RETIRED nil       no more is handed out here, but by a successor
                                                      OFFER topic no-or-nil value form-or-nil
                                                      LAGGED topic        some values were too many, and are lost
                                                      PARTING nil         this end goes, as is planned
      VISIT no whom     it is being replaced, and is to go to that new worker of another node: COUNTED once it has

Within a node, it is said whose the value is that is given next, so that whoever gives it to a client tells the
sender's worker; and who asks for what became of a dead one's is COUNTED once that is told. `life` is a worker's.

      OF no life        the next value is of that call, which is of a client of the worker of that life
      TAKEN no life     somebody has the value of the send which waits by that number at the worker of that life
      DOUBT no life     somebody may have it, of whom nobody will hear; nil is who says so, which goes to another node,
                        too, where a release that does not know the word passes over it
      OUT no            the value was given to another node, or to a client of ours that is to acknowledge it: nobody
                        else would hear what becomes of that
      INQUIRE no life   that worker is dead

The values that subscribers get are OFFERs; one whose sender waits for an outcome has a number, of
ours, and TOOK or LOST answer it. One that the other end published has the number of that PUBLISH.
`form` is the hint and the flags that something was published with, and the payload if that is
compressed; the value is nil then.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Any, Final, Protocol

from skywalker.limits import MAX_FRAME
from skywalker.wire import pubsub, values
from skywalker.wire.frames import split
from skywalker.wire.junction import NIL
from workers.engine.loop import Turn

BATCH_BYTES: Final = 32 * 1024
"""Bytes of messages after which a batch is full. One more message of any size still goes into it."""

MAX_PACKET_BYTES: Final = 112 * 1024
"""Bytes to read a packet with: more than the longest, since the rest of a longer one would be lost.

From 128 KiB on, a buffer costs more than all that is done with it: malloc maps each one anew.
"""

LENGTH_BYTES: Final = 4

SEND: Final = 1
LISTEN: Final = 2
WITHDRAW: Final = 3
TOOK: Final = 4
LOST: Final = 5
PUBLISH: Final = 6
SUBSCRIBE: Final = 7
CENSUS: Final = 8
GIVE: Final = 9
ALSO: Final = 10
MET: Final = 11
WITHDRAWN: Final = 12
BUSY: Final = 13
COUNTED: Final = 14
RECALL: Final = 15
OFFER: Final = 16
SUBSCRIBED: Final = 17
LAGGED: Final = 18
SETTLED: Final = 19
PARTING: Final = 20
RETIRED: Final = 21
LONG: Final = 22
REFUSED: Final = 23
VISIT: Final = 24
OF: Final = 25
TAKEN: Final = 26
DOUBT: Final = 27
OUT: Final = 28
INQUIRE: Final = 29
UNACKED: Final = 30

_ELEMENTS: Final = {
    SEND: 5, LISTEN: 5, WITHDRAW: 3, PUBLISH: 5, SUBSCRIBE: 3, CENSUS: 3, GIVE: 3, COUNTED: 3, OFFER: 5, LONG: 3,
    REFUSED: 3, VISIT: 3, OF: 3, TAKEN: 3, DOUBT: 3, INQUIRE: 3, UNACKED: 3,
}  # fmt: skip
"""Elements of the messages that have more than a kind and a number."""


def _head(kind: int, size: int) -> bytes:
    """Return what a message of `size` bytes begins with."""
    return size.to_bytes(LENGTH_BYTES, "big") + bytes((0x90 | _ELEMENTS.get(kind, 2), kind))


# By kind and size, since nearly all messages are short.
_HEADS: Final = [[_head(kind, size) for size in range(256)] for kind in range(UNACKED + 1)]


def wrapped(value: bytes, form: bytes) -> tuple[bytes, bytes]:
    """Return a value, and the form in which it was published, as messages have them."""
    return NIL if len(form) > pubsub.FORM else value, pubsub.bus_value(form)


def unwrapped(value: bytes, form: bytes) -> tuple[bytes, bytes]:
    """Return what wrapped() was given. Raises ValueError for what no node says."""
    form = pubsub.payload_of(form)
    if len(form) < pubsub.FORM or (len(form) > pubsub.FORM) != bool(form[1] & pubsub.COMPRESSED):
        raise ValueError("a form that is none")
    if len(form) > pubsub.FORM:
        value = pubsub.bus_value(pubsub.inflate(form[pubsub.FORM :]))
    return value, form


def limit_of(packed: bytes) -> int:
    """Return how many bytes another worker says that somebody takes. Raises ValueError if that is no such number."""
    limit = values.unpack(packed)
    if type(limit) is not int or not 0 < limit <= MAX_FRAME:
        raise ValueError("no length of a value")
    return limit


class Way(Protocol):
    """Who says and hears them."""

    def flush(self) -> None:
        """Write what was said."""

    def catch_up(self) -> None:
        """Hear what has come."""


class Messages:
    """Our end of the way between two workers, as what is said over it; how it gets there, a subclass knows.

    Nothing here blocks: what the kernel does not take now stays queued.
    """

    __slots__ = (
        "_batch", "_batch_bytes", "_limit", "_sealed", "_turn", "abroad", "closed", "life", "link", "unsent",
    )  # fmt: skip

    def __init__(self, limit: int, turn: Turn, life: bytes) -> None:
        """`life` is that of the other end, if it is a sibling."""
        self._limit = limit  # bytes that may be queued
        self._turn = turn
        self._batch: list[bytes] = []
        self._batch_bytes = 0
        self._sealed: deque[bytes] = deque()
        self.link: Way  # is told to flush at the end of a turn in which something was said
        self.life = life
        self.abroad = not life  # the other end is on another node: it has another clock, and may be another program
        self.unsent = 0  # bytes that are queued
        self.closed = False

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        raise NotImplementedError

    def close(self) -> None:
        """Close this end; the other reads what is there already, and then the end."""
        self.closed = True
        self.link = None  # type: ignore[assignment]  # it refers to this, and has nothing more to flush

    def finish(self) -> None:
        """Say nothing more, and have the other end know; what it says is still read."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write what the kernel takes."""
        raise NotImplementedError

    def read(self) -> list[Any]:
        """Return the next messages that have come, each a list of its elements.

        Raises BlockingIOError if there is none now, EOFError at the end, ValueError for what is no message.
        """
        raise NotImplementedError

    def catch_up(self) -> None:
        """Have what the other end has said already heard now."""
        if not self.closed:
            self.link.catch_up()

    def congested(self) -> bool:
        """Return whether the other end is so far behind that it is asked nothing new."""
        return self.unsent > self._limit

    def cut(self, data: bytes) -> tuple[list[Any], bytes]:
        """Return the messages in `data`, each a list of its elements, and the rest that is not yet one."""
        return split(data, LENGTH_BYTES)

    def tell(
        self,
        kind: int,
        number: bytes,
        first: bytes | None = None,
        second: bytes | None = None,
        third: bytes | None = None,
    ) -> None:
        """Say something at the end of this turn."""
        if self.closed:
            return
        if not self.unsent:
            (self._turn.distant if self.abroad else self._turn.batches).append(self.link)
        size = 2 + len(number)
        if first is not None:
            size += len(first)
            if second is not None:
                size += len(second)
                if third is not None:
                    size += len(third)
        batch = self._batch
        heads = _HEADS[kind]
        batch.append(heads[size] if size < len(heads) else _head(kind, size))
        batch.append(number)
        if first is not None:
            batch.append(first)
            if second is not None:
                batch.append(second)
                if third is not None:
                    batch.append(third)
        size += LENGTH_BYTES
        self.unsent += size
        self._batch_bytes += size
        if self._batch_bytes >= BATCH_BYTES:
            self._seal()

    def _seal(self) -> None:
        self._sealed.append(b"".join(self._batch))
        self._batch, self._batch_bytes = [], 0


class Packets(Messages):
    """That between two workers of one node: a socket that keeps packets whole, so that a death cuts none in half.

    Each packet holds a batch. Both ends are one program, so what is read is what was written.
    """

    __slots__ = ("_is_behind", "_socket")

    def __init__(self, sock: socket.socket, limit: int, turn: Turn, life: bytes) -> None:
        Messages.__init__(self, limit, turn, life)
        self._socket = sock
        self._is_behind = False  # it does not take all that is said

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        Messages.close(self)
        self._socket.close()
        self._falls_behind(False)

    def _falls_behind(self, is_behind: bool) -> None:
        if self._is_behind != is_behind:
            self._is_behind = is_behind
            self._turn.behind += 1 if is_behind else -1

    def flush(self) -> None:
        if self._batch:
            self._seal()
        sealed = self._sealed
        try:
            while sealed:
                self._socket.send(sealed[0])
                self.unsent -= len(sealed.popleft())
            assert self.unsent == 0, "all that was said is written"
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            # The other end is dead. What it said before is still to be read, and then its end.
            sealed.clear()
            self.unsent = 0
        self._falls_behind(self.unsent > 0)

    def read(self) -> list[Any]:
        try:
            packet = self._socket.recv(MAX_PACKET_BYTES)
        except ConnectionResetError:
            return []  # the other end died with packets of ours unread; its own are still here
        if not packet:
            raise EOFError
        messages, _ = self.cut(packet)
        return messages
