"""A worker of another node that asks us: its calls wait here, over a link that it made."""

from __future__ import annotations

from collections.abc import Callable

from skywalker.members import Place
from workers.engine.transport import Transport
from workers.mesh.link import Link
from workers.nodes.context import PeerContext
from workers.nodes.probe import Probe


class InboundPeer:
    """One of them."""

    def __init__(
        self,
        sock: Transport,
        unwritten: bytes,
        name: str,
        place: Place,
        context: PeerContext,
        gone: Callable[[InboundPeer], None],
        *,
        speaks_for_place: bool,
    ) -> None:
        """Over a connection to whom the log knows by that `name`, and to whom `unwritten` is still to be said.

        `gone` is called once its link has ended. One that is being replaced no more `speaks_for_place`.
        """
        self.place = place
        self._speaks_for_place = speaks_for_place
        self._name = name
        self._context = context
        self._gone = gone
        self.link = context.links.abroad(sock, None, self._ended, self._settled, unwritten=unwritten)
        self._has_successor = False
        self._is_over = False  # nothing more is said to it
        # Its listeners would take values that nobody gets.
        self._probe = Probe(self.link, context.turn, lambda: self._has_successor or not self._is_on_the_ring())
        if self._is_on_the_ring():
            context.barrier.linked(self.link)
        self._probe.look()

    def succeeded(self) -> None:
        """Another worker has its place on its node. It may be done with, or have clients for a while yet."""
        self._has_successor = True
        self._probe.look()

    def ring_changed(self) -> None:
        """See whether its node is still on the ring."""
        if not self._is_on_the_ring():
            self._context.barrier.gone(self.link)
        self._probe.look()

    def _is_on_the_ring(self) -> bool:
        return self.place.node in self._context.node.snapshot.by_id

    def hand_over(self) -> None:
        """Have it ask our successor, once all that it was given has an outcome, and all that was said is written."""
        if self.link.is_decided() and not self.link.unsent:
            self._finish()

    def _finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.link.finish()

    def stop(self) -> None:
        """End its link now, after what was written over it, because this worker ends."""
        self._finish()
        self.close("this node ends")

    def close(self, reason: str) -> None:
        """End its link."""
        self.link.close(reason)

    def _settled(self, link: Link) -> None:
        self._context.barrier.settled(link, self.place if self._speaks_for_place else None)

    def _ended(self, link: Link, reason: str) -> None:
        self._probe.end()
        del self._probe  # the two refer to each other
        self._context.barrier.gone(link)
        self._context.log.info("guest-left", peer=self._name, reason=reason)
        self._gone(self)
