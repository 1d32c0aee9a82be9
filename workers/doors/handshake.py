"""An accepted connection before it is one: it has yet to speak TLS."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from typing import Final

from skywalker.errors import RequestError
from skywalker.tls.causes import tls_cause
from skywalker.tls.records import Records
from workers.access.admission import Stranger
from workers.doors.commons import Commons
from workers.engine.loop import READ
from workers.engine.secure_socket import READ_BYTES, SecureSocket
from workers.engine.transport import Transport
from workers.stats.close_reasons import Close

HANDSHAKE: Final = b"\x16"
"""The first byte of TLS."""

MOST_PIECES: Final = 64
"""In how many pieces its share of one may come: whoever says it byte by byte would have all others wait."""


class Handshake:
    """One of them; `done` is called with the socket once hands are shaken, and its place among strangers."""

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        context: ssl.SSLContext,
        commons: Commons,
        plain_words: bytes,
        done: Callable[[Transport, Stranger], None],
    ) -> None:
        """One that speaks no TLS is told `plain_words` before it is closed."""
        self._plain = sock
        self._plain_words = plain_words
        self._socket = SecureSocket(sock, Records(context, server_side=True))
        self._peer = peer
        self._commons = commons
        self._done = done
        self._has_begun = False
        self._pieces = 0
        commons.loop.add(sock.fileno(), self)
        self._stranger = commons.admission.strangers.come(self)

    def ready(self, events: int) -> None:
        """Go on, when it is its turn: something has come."""
        handshakes = self._commons.admission.handshakes
        if self in handshakes:
            self._fail("no TLS: the other end went away")
        else:
            handshakes.come(self)

    def pause(self) -> None:
        """Look for nothing but that the other end is gone, which then need not be answered."""
        # Once it has begun, its last words may be the end of the handshake, a call, and that it says no more.
        self._commons.loop.change(self._socket.fileno(), 0 if self._has_begun else select.EPOLLRDHUP)

    def resume(self) -> None:
        """Look for what comes again."""
        self._commons.loop.change(self._socket.fileno(), READ)

    def go_on(self) -> None:
        """Read what has come."""
        try:
            if self._speaks_plainly():
                return
            if not self._socket.shake_hands():
                self._pieces += 1
                if self._pieces == MOST_PIECES:
                    self._fail("no TLS: it shakes hands in too small pieces")
                return
        except BlockingIOError:
            return
        except ssl.SSLError as error:
            self._fail(tls_cause(error))
        except OSError as error:
            self._fail(f"no TLS: {error.strerror}")
        else:
            self._commons.loop.remove(self._socket.fileno())
            self._done(self._socket, self._stranger)

    def _speaks_plainly(self) -> bool:
        """Whether it does; then it has had its answer."""
        if self._has_begun or self._plain.recv(1, socket.MSG_PEEK) in (b"", HANDSHAKE):
            self._has_begun = True
            return False
        self._plain.recv(READ_BYTES)  # what is unread would destroy the answer on its way
        self._plain.send(self._plain_words)
        self._fail("it speaks no TLS")
        return True

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        """Close it: there is no word that it could read."""
        self._fail(text)

    def _fail(self, text: str) -> None:
        commons = self._commons
        commons.admission.handshakes.go(self)
        commons.admission.strangers.go(self._stranger)
        del self._stranger  # the two refer to each other
        commons.loop.remove(self._socket.fileno())
        self._socket.close()
        commons.turn.counters.handshake_failed()
        commons.admission.failed_handshakes.note(self._peer, text)
