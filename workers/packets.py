"""Messages between two workers, batched into packets that a death cannot cut in half.

A packet is a MessagePack array of messages, and a message is an array too. Both ends are the
same program, started together, so what is read is trusted to be what was written.
"""

from __future__ import annotations

import enum
import socket
from collections import deque
from typing import Any, Final

import msgpack

PACKET_BYTES: Final = 64 * 1024
"""Bytes of messages after which a packet is full. One more message of any size still goes into it."""

MAX_PACKET_BYTES: Final = 256 * 1024
"""Bytes to read a packet with: more than the longest, since the rest of a longer one would be lost."""

MESSAGE_BYTES: Final = 24
"""Bytes counted for a message besides its topic and value."""

Message = tuple[Any, ...]


class Kind(enum.IntEnum):
    """What a message says; mesh.py has their meanings."""

    SEND = 1
    LISTEN = 2
    WITHDRAW = 3
    TOOK = 4
    LOST = 5
    CENSUS = 6
    GIVE = 7
    MET = 8
    WITHDRAWN = 9
    BUSY = 10
    COUNTED = 11
    RECALL = 12


class Packets:
    """One end of a SOCK_SEQPACKET socket. It never blocks: what the kernel does not take now stays queued."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._batch: list[Message] = []
        self._batch_bytes = 0
        self._sealed: deque[bytes] = deque()
        self.unsent = 0  # bytes that are queued

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; the other reads what is there already, and then the end."""
        self._socket.close()

    def is_settled(self) -> bool:
        """Return whether nothing is queued."""
        return not self._batch and not self._sealed

    def add(self, message: Message, size: int) -> None:
        """Queue a message; `size` is that of the bytes in it that vary much."""
        size += MESSAGE_BYTES
        self._batch.append(message)
        self._batch_bytes += size
        self.unsent += size
        if self._batch_bytes >= PACKET_BYTES:
            self._seal()

    def grow(self, size: int) -> None:
        """Count so many bytes more for the latest message: something was added to it."""
        self._batch_bytes += size
        self.unsent += size
        if self._batch_bytes >= PACKET_BYTES:
            self._seal()

    def is_last(self, message: Message) -> bool:
        """Return whether `message` is the latest, and not on its way yet: what it holds may still be changed."""
        return bool(self._batch) and self._batch[-1] is message

    def _seal(self) -> None:
        packet = msgpack.packb(self._batch)
        self.unsent += len(packet) - self._batch_bytes
        self._sealed.append(packet)
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

    def read(self) -> list[Message]:
        """Return the messages of the next packet. Raises BlockingIOError if there is none now, EOFError at the end."""
        try:
            packet = self._socket.recv(MAX_PACKET_BYTES)
        except ConnectionResetError:
            return []  # the other end died with packets of ours unread; its own are still here
        if not packet:
            raise EOFError
        messages: list[Message] = msgpack.unpackb(packet, use_list=False)
        return messages
