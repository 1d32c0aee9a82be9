"""One end of a TLS connection, in memory: ciphertext in, plaintext out, and back. Has no socket and no clock.

Whoever has the socket feeds what it read, and writes what output() returns whenever something
was done here: shaking hands and even reading make something to be written. Nothing is kept that
a selector could not know of: read() returns all that there is.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Mapping
from typing import Any, Final

READ_BYTES: Final = 64 * 1024

PIECE: Final = 17 * 1024
"""Bytes of ciphertext that OpenSSL is given at once: a whole record, and not much more.

The memory that it has for them stays as large as it ever was, for as long as the connection is there.
"""

MAX_UNASKED: Final = 64 * 1024
"""Bytes that the other end may have us write without our having said anything, while it reads nothing of them."""


class Records:
    """One end of one connection."""

    __slots__ = ("_fed", "_in", "_is_over", "_out", "_tls", "ended", "established")

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool = False, server_hostname: str | None = None
    ) -> None:
        """A client gives the name that the certificate of the other end must have."""
        self._fed = b""  # what OpenSSL is yet to be given
        self._is_over = False  # and whether it is yet to be told that this is all
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=server_side, server_hostname=server_hostname)
        self.established = False
        """Whether hands are shaken: from then on there may be plaintext both ways."""
        self.ended = False
        """Whether the other end has said its last, or its stream is over."""

    def feed(self, data: bytes) -> None:
        """Take in ciphertext; nothing of it means that the stream has ended."""
        if not data:
            self._is_over = True
        elif not self.ended:
            self._fed = self._fed + data if self._fed else data

    def _give(self) -> bool:
        """Give OpenSSL the next piece of it; return whether there was one."""
        if self._fed:
            piece, self._fed = self._fed[:PIECE], self._fed[PIECE:]
            self._in.write(piece)
        elif self._is_over:
            self._is_over = False
            self._in.write_eof()
        else:
            return False
        return True

    def shake_hands(self) -> bool:
        """Go on with the handshake as far as what was fed allows; return whether it is done.

        Raises ssl.SSLError if it fails; output() then says so to the other end.
        """
        while not self.established:
            try:
                self._tls.do_handshake()
                self.established = True
            except ssl.SSLWantReadError:
                if not self._give():
                    return False
        return True

    def read(self) -> bytes:
        """Return all plaintext that there is now, empty for none, or for the end. Raises ssl.SSLError for a lie."""
        parts = []
        try:
            while not self.ended:
                self._give()  # or else there may be what came with the end of the handshake
                try:
                    while data := self._tls.read(READ_BYTES):
                        parts.append(data)
                    self.ended = True
                except ssl.SSLWantReadError:
                    if not self._fed and not self._is_over:
                        break
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            # What is cut off without a word shows in the frames: they say how long they are.
            self.ended = True
        if self._out.pending > MAX_UNASKED:
            raise ssl.SSLError("it has us write, and does not read")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, data: bytes | memoryview) -> None:
        """Make records of plaintext, to be had from output()."""
        while data:
            # With memory to write to it takes all at once, but makes no promise to.
            data = memoryview(data)[self._tls.write(data) :]

    def output(self) -> bytes:
        """Return the ciphertext that is to be written now, and forget it."""
        return self._out.read() if self._out.pending else b""

    def close(self) -> None:
        """Say that nothing more comes from this end; what the other end still says can be read."""
        with contextlib.suppress(ssl.SSLError):  # the other end has yet to say the same, or never shook hands
            self._tls.unwrap()

    def certificate(self) -> Mapping[str, Any]:
        """Return what the certificate of the other end says, as ssl has it; empty if it showed none."""
        return self._tls.getpeercert() or {}

    def names(self) -> tuple[str, ...]:
        """Return the names in the certificate of the other end: its DNS names, or else its common name."""
        found = self.certificate()
        if not found:
            return ()
        names = tuple(value for kind, value in found.get("subjectAltName", ()) if kind == "DNS")
        if names:
            return names
        return tuple(value for part in found.get("subject", ()) for kind, value in part if kind == "commonName")
