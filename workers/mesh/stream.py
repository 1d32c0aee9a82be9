"""The way between workers of two nodes: a TCP connection, whose other end may be anything."""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Final

from skywalker.dialling import cause_of
from skywalker.limits import KIB, MAX_FRAME, MAX_TOPIC
from workers.engine.loop import Turn
from workers.engine.transport import Transport
from workers.mesh.messages import Messages

READ_BYTES: Final = 64 * KIB

MAX_MESSAGE: Final = MAX_FRAME + MAX_TOPIC + KIB
"""Bytes of one message: a value, a topic, and some more for the rest."""

PATIENCE: Final = 4
"""How many times the limit of queued bytes may wait for a node that asks and does not read: then it is cut off."""


class Stream(Messages):
    """Our end of it."""

    __slots__ = ("_heard", "_most_unsent", "_socket", "_tail")

    def __init__(self, sock: Transport, limit: int, turn: Turn, first: bytes | None = None, heard: bytes = b"") -> None:
        """Take over a connection; that of one that asks us if there is a `first` that is still to be written.

        What was read from it before and is `heard` is the first that read() has.
        """
        Messages.__init__(self, limit, turn, b"")
        self._socket = sock
        self._heard = heard
        self._tail = b""
        self._most_unsent = 0
        if first is not None:
            self._most_unsent = PATIENCE * limit  # of what we ask, the calls themselves are limited
            self._sealed.append(first)
            self.unsent = len(first)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        if self.closed:
            return
        Messages.close(self)
        try:
            # With unread input, a close would have the kernel destroy what was just written.
            while self._socket.recv(READ_BYTES):
                pass
        except OSError:
            pass  # nothing more is there, or the connection is gone: either way it is to be closed
        self._socket.close()

    def finish(self) -> None:
        # A close would have the kernel destroy, once more comes in, what was just written.
        with contextlib.suppress(OSError):  # it is dead, which its end says too
            self._socket.shutdown(socket.SHUT_WR)

    def flush(self) -> None:
        if self._batch:
            self._seal()
        sealed = self._sealed
        try:
            while sealed:
                batch = sealed[0]
                sent = self._socket.send(batch)
                self.unsent -= sent
                if sent < len(batch):
                    sealed[0] = batch[sent:]
                else:
                    sealed.popleft()
        except BlockingIOError:
            pass
        except OSError:
            # It is dead. What it said before is still to be read, and then its end.
            sealed.clear()
            self.unsent = 0

    def read(self) -> list[Any]:
        if self._most_unsent and self.unsent > self._most_unsent:
            raise EOFError("the other end asks, and does not read the answers")
        data, self._heard = self._heard, b""
        if not data:
            try:
                data = self._socket.recv(READ_BYTES)
            except BlockingIOError:
                raise
            except OSError as error:
                raise EOFError(f"cannot read: {cause_of(error)}") from error
        if not data:
            raise EOFError
        messages, self._tail = self.cut(self._tail + data if self._tail else data)
        if len(self._tail) > MAX_MESSAGE:
            raise ValueError(f"a message of more than {MAX_MESSAGE} bytes")
        return messages
