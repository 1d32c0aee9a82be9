"""The way between two workers of one node: a socket that keeps packets whole, so that a death cuts none in half."""

from __future__ import annotations

import socket
from typing import Any, Final

from workers.engine.turn import Turn
from workers.mesh.messages import Messages

MAX_PACKET_BYTES: Final = 112 * 1024
"""Bytes to read a packet with: more than the longest, since the rest of a longer one would be lost.

From 128 KiB on, a buffer costs more than all that is done with it: malloc maps each one anew.
"""


class Packets(Messages):
    """Our end of it. Each packet holds a batch. Both ends are one program, so what is read is what was written."""

    __slots__ = ("_socket",)

    def __init__(self, sock: socket.socket, limit: int, turn: Turn) -> None:
        Messages.__init__(self, limit, turn, False)
        self._socket = sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        Messages.close(self)
        self._socket.close()

    def flush(self) -> None:
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
        try:
            packet = self._socket.recv(MAX_PACKET_BYTES)
        except ConnectionResetError:
            return []  # the other end died with packets of ours unread; its own are still here
        if not packet:
            raise EOFError
        messages, _ = self.cut(packet)
        return messages
