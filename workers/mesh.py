"""The link to one sibling worker: what we ask of it, what it asks of us, and the socket between.

All that one turn has to say goes in one packet, as a rule. A link ends with either worker.
What the owner of a topic held for the other is gone then, as its clients are; what waited at
the owner is issued again to its successor.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from workers.forwarded import Forwarded
from workers.held import Held
from workers.loop import READ, WRITE
from workers.packets import CENSUS, Packets

if TYPE_CHECKING:
    from workers.router import Router

PACKETS_PER_TURN: Final = 16


class Link:
    """Our end of the link to the worker in `slot`."""

    __slots__ = ("_packets", "_router", "_waits_to_write", "forwarded", "held", "slot")

    def __init__(self, slot: int, sock: socket.socket, router: Router) -> None:
        self.slot = slot
        self._router = router
        self._packets = Packets(sock, router.limits.mesh_bytes, router.turn, self)
        self.forwarded = Forwarded(self._packets, router)
        self.held = Held(self._packets, router)
        self._waits_to_write = False

    def open(self) -> None:
        """Read from now on."""
        self._router.loop.add(self._packets.fileno(), self)

    def flush(self) -> None:
        """Write what the kernel takes; never waits."""
        if not self._packets.closed:
            self._packets.flush()
            self._wait_to_write(self._packets.unsent > 0)
            self.held.flushed()

    def _wait_to_write(self, wanted: bool) -> None:
        if self._waits_to_write != wanted:
            self._waits_to_write = wanted
            self._router.loop.change(self._packets.fileno(), READ | WRITE if wanted else READ)

    def ready(self, events: int) -> None:
        """Read what the sibling says, and write on."""
        if events & WRITE:
            self.flush()
        # More than one, because a value may come in one packet, and the word to take it back in a later one. A sibling
        # that has been stopped for so long that there are more may be too late for it; others shall not wait for us.
        for _ in range(PACKETS_PER_TURN):
            if not self._read():
                return

    def read_to_the_end(self) -> None:
        """Take in all that a dead sibling still said."""
        while self._read():
            pass

    def _read(self) -> bool:
        """Take in one packet. Returns False if there is none now, or never will be."""
        if self._packets.closed:
            return False
        try:
            messages = self._packets.read()
        except BlockingIOError:
            return False
        except EOFError:
            self._close()
            return False
        forwarded, held = self.forwarded, self.held
        for message in messages:
            kind = message[0][0]
            if kind <= CENSUS:
                held.hear(kind, message)
            else:
                forwarded.hear(kind, message)
        return True

    def _close(self) -> None:
        """The sibling is dead."""
        self._router.loop.remove(self._packets.fileno())
        self._packets.close()
        self.held.close()
        self._router.disconnected(self)
        self.forwarded.close()
