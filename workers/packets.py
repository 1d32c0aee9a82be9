"""Messages between two workers, batched into packets that a death cannot cut in half.

A message is a frame as clients send them, with a length of 32 bits: an array of a kind, the
number that the asking side gave to the call, and what the kind needs. What clients sent is in
it as the very bytes that came. Both ends are the same program, started together, so what is
read is trusted to be what was written.

    to the owner of the topic                       to the worker of the caller
      SEND no since topic value                       GIVE no value       for this listener
      LISTEN no since topic group-or-nil              ALSO no             the value given last, for this one too
      WITHDRAW no final unless it met somebody        MET no              a send has been taken
      TOOK no           the listener has its value    WITHDRAWN no        it had met nobody, if that was not final
      LOST no           the listener is gone          BUSY no             no room for it to wait
      CENSUS no topic                                 COUNTED no info
                                                      RECALL no           unless its client has the value
"""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from skywalker.wire.frames import split

if TYPE_CHECKING:
    from workers.mesh import Link
    from workers.turn import Turn

PACKET_BYTES: Final = 32 * 1024
"""Bytes of messages after which a packet is full. One more message of any size still goes into it."""

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
CENSUS: Final = 6
GIVE: Final = 7
ALSO: Final = 8
MET: Final = 9
WITHDRAWN: Final = 10
BUSY: Final = 11
COUNTED: Final = 12
RECALL: Final = 13

_ELEMENTS: Final = {SEND: 5, LISTEN: 5, WITHDRAW: 3, CENSUS: 3, GIVE: 3, COUNTED: 3}
"""Elements of the messages that have more than a kind and a number."""


def _head(kind: int, size: int) -> bytes:
    """Return what a message of `size` bytes begins with."""
    return size.to_bytes(LENGTH_BYTES, "big") + bytes((0x90 | _ELEMENTS.get(kind, 2), kind))


# By kind and size, since nearly all messages are short.
_HEADS: Final = [[_head(kind, size) for size in range(256)] for kind in range(RECALL + 1)]


class Packets:
    """Our end of the socket between two workers. It never blocks: what the kernel does not take now stays queued."""

    __slots__ = ("_batch", "_batch_bytes", "_limit", "_link", "_sealed", "_socket", "_turn", "closed", "unsent")

    def __init__(self, sock: socket.socket, limit: int, turn: Turn, link: Link) -> None:
        self._socket = sock
        self._limit = limit  # bytes that may be queued
        self._turn = turn
        self._link = link  # is told to flush at the end of a turn in which something was said
        self._batch: list[bytes] = []
        self._batch_bytes = 0
        self._sealed: deque[bytes] = deque()
        self.unsent = 0  # bytes that are queued
        self.closed = False

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; the other reads what is there already, and then the end."""
        self.closed = True
        self._socket.close()

    def congested(self) -> bool:
        """Return whether the sibling is so far behind that it is asked nothing new."""
        return self.unsent > self._limit

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
            self._turn.batches.append(self._link)
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
        if self._batch_bytes >= PACKET_BYTES:
            self._seal()

    def _seal(self) -> None:
        self._sealed.append(b"".join(self._batch))
        self._batch, self._batch_bytes = [], 0

    def flush(self) -> None:
        """Write what the kernel takes."""
        if self._batch:
            self._seal()
        sealed = self._sealed
        try:
            while sealed:
                self._socket.send(sealed[0])
                self.unsent -= len(sealed.popleft())
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            # The other end is dead. What it said before is still to be read, and then its end.
            sealed.clear()
            self.unsent = 0

    def read(self) -> list[Any]:
        """Return the messages of the next packet, each a list of its elements.

        Raises BlockingIOError if there is none now, EOFError at the end.
        """
        try:
            packet = self._socket.recv(MAX_PACKET_BYTES)
        except ConnectionResetError:
            return []  # the other end died with packets of ours unread; its own are still here
        if not packet:
            raise EOFError
        messages, _ = split(packet, LENGTH_BYTES)
        return messages
