"""TLS below the admin server: to uvicorn one connection looks as if it were plain.

It is done here, in memory, and not by asyncio, which knows a connection only once hands are shaken: until then none
of the bounds of transport.py would hold.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from skywalker.tls.records import Records


class Secured(asyncio.Transport):
    """What a protocol writes to; ciphertext goes on to `below`. Give what comes from there to received()."""

    def __init__(self, below: asyncio.Transport, context: ssl.SSLContext) -> None:
        super().__init__()
        self._below = below
        self._context = context
        self._records = Records(context, server_side=True)
        self.names: tuple[str, ...] = ()
        """The names in the client's certificate, once hands are shaken."""

    def received(self, ciphertext: bytes) -> bytes:
        """Return the plaintext that this makes whole; it may be empty. Raises ssl.SSLError, having said so below."""
        records = self._records
        records.feed(ciphertext)
        try:
            if not records.established:
                if not records.shake_hands():
                    return b""
                self.names = records.names()
            return records.read()
        finally:
            self._flush()

    @property
    def ended(self) -> bool:
        """Whether the client has said its last."""
        return self._records.ended

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_closing():
            self._records.write(bytes(data))
            self._flush()

    def close(self) -> None:
        if not self.is_closing():
            self._records.close()
            self._flush()
            self._below.close()

    def abort(self) -> None:
        self._below.abort()

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        # By this name uvicorn knows whether it is https.
        return self._context if name == "sslcontext" else self._below.get_extra_info(name, default)

    def _flush(self) -> None:
        output = self._records.output()
        if output and not self.is_closing():
            self._below.write(output)
