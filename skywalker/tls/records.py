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

HEADER: Final = 5
"""Bytes at the beginning of a record, the last two of which say how many follow: RFC 8446, section 5.1."""

PIECE: Final = 17 * 1024
"""Bytes of ciphertext that OpenSSL is given at once: a whole record, and not much more.

The memory that it has for them stays as large as it ever was, for as long as the connection is there.
"""

RECORDS: Final = 32
"""Records that OpenSSL is given at once: of those that say nothing it would read all that there are."""

MAX_SILENT: Final = 64
"""Records that may say nothing, as those that change keys, and one more for each thousand that say something."""

MAX_SHAKING: Final = 48 * 1024
"""Bytes of ciphertext in which hands must be shaken: a client with a chain of certificates says a quarter of that."""

MAX_UNASKED: Final = 64 * 1024
"""Bytes that the other end may have us write without our having said anything, while it reads nothing of them."""


class Records:
    """One end of one connection."""

    __slots__ = (
        "_certificate", "_fed", "_given", "_in", "_is_over", "_is_server", "_out", "_records", "_rest", "_tls", "_told",
        "ended", "established",
    )  # fmt: skip

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool = False, server_hostname: str | None = None
    ) -> None:
        """A client gives the name that the certificate of the other end must have."""
        self._fed = b""  # what OpenSSL is yet to be given
        self._is_over = False  # and whether it is yet to be told that this is all
        self._rest = 0  # bytes that are missing of the record that it was given last
        self._given = 0  # bytes of all that it was given
        self._records = 0  # since hands are shaken
        self._told = 0  # of those said something
        self._is_server = server_side
        self._certificate: Mapping[str, Any] | None = None
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
        """Give OpenSSL the next records of it, or parts; return whether there were any."""
        fed, at, records = self._fed, self._rest, 0
        while at + HEADER <= len(fed) and records < RECORDS:
            end = at + HEADER + (fed[at + 3] << 8 | fed[at + 4])
            if at and end > PIECE:
                break
            at = end
            records += 1
        if at and fed:
            self._in.write(fed[:at])
            self._fed = fed[at:]
            self._rest = max(0, at - len(fed))
            self._records += records
            self._given += min(at, len(fed))
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
                if self._given > MAX_SHAKING:
                    raise ssl.SSLError("it says too much before hands are shaken") from None
                if not self._give():
                    return False
            else:
                self._records = 0
                if self._is_server:
                    self.certificate()
        return True

    def read(self) -> bytes:
        """Return all plaintext that there is now, empty for none, or for the end. Raises ssl.SSLError for a lie."""
        parts = []
        self._give()  # or else there may be what came with the end of the handshake
        try:
            while not self.ended:
                try:
                    while data := self._tls.read(READ_BYTES):
                        parts.append(data)
                        self._told += 1
                    self.ended = True
                except ssl.SSLWantReadError:
                    if self._records - self._told > MAX_SILENT + self._told // 1000:
                        raise ssl.SSLError("it says nothing, in many records") from None
                    if not self._give():
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
        """Return what the certificate of the other end says, as ssl has it; empty if it showed none.

        Raises ssl.SSLError if that cannot be read. A server has read it by the end of the handshake, which fails then.
        """
        if self._certificate is None:
            try:
                self._certificate = self._tls.getpeercert() or {}
            except (ValueError, ssl.SSLError) as error:
                raise ssl.SSLError("its certificate cannot be read") from error
        return self._certificate

    def names(self) -> tuple[str, ...]:
        """Return the names in the certificate of the other end: its DNS names, or else its common name."""
        return names_in(self.certificate())


def names_in(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in a certificate as ssl tells what it says: its DNS names, or else its common name."""
    names = tuple(value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS")
    if names:
        return names
    return tuple(value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName")
