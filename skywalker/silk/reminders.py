"""How a node makes itself known again to members that do not know it, or take it for dead."""

from __future__ import annotations

from skywalker.silk.outbox import Outbox
from skywalker.silk.peers import Peer, Peers
from skywalker.wire import silk as wire


class Reminders:
    """Reminders of one node to its `peers`; its own period is `period` seconds."""

    def __init__(self, outbox: Outbox, peers: Peers, period: float, now: float) -> None:
        self.rejoined_by = ""  # the id of the message that asked to be let in again
        self._outbox = outbox
        self._peers = peers
        self._period = period
        self._rejoined_at = now - period

    def remind(self, peer: Peer) -> None:
        """Say to a member what this node says of itself."""
        self._outbox.send(peer.info.router, peer.id, wire.CONNECT, self._outbox.me.as_map())

    def missing_at(self, teller: str) -> None:
        """Remind one who does not know us, and all who see the same as that one."""
        peer = self._peers.get(teller)
        if peer is not None:
            for each in self._peers:
                if each.version == peer.version:
                    self.remind(each)

    def rejoin(self, teller: str, now: float) -> None:
        """Some think that we are dead: be let in by the one who says so, and known to all others."""
        if now - self._rejoined_at >= self._period:
            self._rejoined_at = now
            for peer in self._peers:
                if peer.id == teller:
                    me = self._outbox.me
                    self.rejoined_by = self._outbox.send(peer.info.router, peer.id, wire.JOIN, me.as_map())
                else:
                    self.remind(peer)
