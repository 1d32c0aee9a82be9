"""What a peer that does not read fast enough is still to get."""

from __future__ import annotations

from collections import deque
from typing import Final

from workers.calls.call import ClientCall

WRITE_BYTES: Final = 256 * 1024
"""Bytes offered to the kernel at once."""

JOINED_BYTES: Final = 16 * 1024
"""Bytes of chunks that are joined: each of a great many small ones would be looked at whenever some can be written."""


class WriteBuffer:
    """Chunks in their order, and for those that are values, the listeners that were given them."""

    __slots__ = ("_begun", "_chunks", "_loose", "_loose_bytes", "size")

    def __init__(self) -> None:
        self._chunks: deque[tuple[bytes, ClientCall | None]] = deque()
        self._loose: list[bytes] = []  # behind all others, not yet joined
        self._loose_bytes = 0
        self._begun = 0  # bytes at the head of which some part may have left
        self.size = 0  # in bytes

    def add(self, chunk: bytes) -> None:
        """Put a chunk behind all others."""
        self._loose.append(chunk)
        self._loose_bytes += len(chunk)
        self.size += len(chunk)
        if self._loose_bytes >= JOINED_BYTES:
            self._join()

    def add_value(self, listener: ClientCall) -> None:
        """Put a listener's chunk there. Its sender's time runs until it is written."""
        self._join()
        send = listener.sender()
        send.hold()
        send.remember(listener)  # whoever asks the value back is to hear whether some of it has left
        self._chunks.append((listener.chunk, listener))
        self.size += len(listener.chunk)

    def add_all(self, chunks: list[bytes], values: list[ClientCall]) -> None:
        """Put chunks there, among which are those of these listeners, in the same order."""
        at = 0
        for chunk in chunks:
            if at < len(values) and values[at].chunk is chunk:
                self.add_value(values[at])
                at += 1
            else:
                self.add(chunk)

    def _join(self) -> None:
        if self._loose:
            self._chunks.append((b"".join(self._loose), None))
            self._loose, self._loose_bytes = [], 0

    def listeners(self) -> list[ClientCall]:
        """Return the listeners whose value is not written."""
        return [listener for _, listener in self._chunks if listener is not None]

    def begin(self, count: int) -> None:
        """So many bytes at the head are on their way, at least, though they do not count as written."""
        self._begun = max(self._begun, count)

    def has_begun(self, listener: ClientCall) -> bool:
        """Return whether some part of this listener's value may have left."""
        begun = self._begun
        for chunk, each in self._chunks:
            if begun <= 0:
                break
            if each is listener:
                return True
            begun -= len(chunk)
        return False

    def withdraw(self) -> list[ClientCall]:
        """Take out values whose sender's time is over, unless they are begun; return who loses them."""
        self._join()
        begun = self._begun
        kept: deque[tuple[bytes, ClientCall | None]] = deque()
        withdrawn: list[ClientCall] = []
        for item in self._chunks:
            chunk, listener = item
            if listener is None or begun > 0 or not listener.sender().abandoned:
                kept.append(item)
            else:
                withdrawn.append(listener)
                self.size -= len(chunk)
            begun -= len(chunk)
        self._chunks = kept
        return withdrawn

    def batch(self) -> tuple[bytes, list[ClientCall]]:
        """Return what to write next, and the listeners whose values it has."""
        self._join()
        chunks: list[bytes] = []
        listeners: list[ClientCall] = []
        size = 0
        for chunk, listener in self._chunks:
            chunks.append(chunk)
            if listener is not None:
                listeners.append(listener)
            size += len(chunk)
            if size >= WRITE_BYTES:
                break
        return b"".join(chunks), listeners

    def written(self, sent: int) -> list[ClientCall]:
        """Take off bytes that are written; return the listeners whose values are written whole."""
        assert sent <= self.size, "no more is written than there was"
        self._join()
        self.size -= sent
        done: list[ClientCall] = []
        while sent:
            chunk, listener = self._chunks.popleft()
            if sent < len(chunk):
                self._chunks.appendleft((chunk[sent:], listener))
                self._begun = len(chunk) - sent
                return done
            self._begun = 0
            sent -= len(chunk)
            if listener is not None:
                done.append(listener)
        return done
