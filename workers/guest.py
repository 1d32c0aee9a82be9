"""A worker of another node that asks us: its calls wait here, over a link that it made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skywalker.members import Place
from workers.doubt import Doubt
from workers.link import Link
from workers.stream import Stream

if TYPE_CHECKING:
    from workers.connection import Connection
    from workers.router import Router


class Guest:
    """One of them."""

    def __init__(
        self,
        connection: Connection,
        place: Place,
        router: Router,
        gone: Callable[[Guest], None],
        *,
        speaks_for_place: bool,
    ) -> None:
        """`gone` is called once its link has ended. One that is being replaced no more `speaks_for_place`."""
        self.place = place
        self._speaks_for_place = speaks_for_place
        self._name = connection.peer
        self._router = router
        self._gone = gone
        sock, unwritten = connection.detach()
        messages = Stream(sock, router.limits.mesh_bytes, router.turn, unwritten)
        self.link = Link(messages, router, None, self._ended, self._settled)
        self._has_successor = False
        self._is_over = False  # nothing more is said to it
        # Its listeners would take values that nobody gets.
        self._doubt = Doubt(
            self.link, router, lambda: self._has_successor or place.node not in router.node.snapshot.by_id
        )
        if router.opening is not None and place.node in router.node.snapshot.by_id:
            router.opening.linked(self.link)
        self.link.open()
        self._doubt.look()

    def succeeded(self) -> None:
        """Another worker has its place on its node. It may be done with, or have clients for a while yet."""
        self._has_successor = True
        self._doubt.look()

    def ring_changed(self) -> None:
        """See whether its node is still on the ring."""
        router = self._router
        if router.opening is not None and self.place.node not in router.node.snapshot.by_id:
            router.opening.gone(self.link)
        self._doubt.look()

    def hand_over(self) -> None:
        """Have it ask our successor, once all that it was given has an outcome, and all that was said is written."""
        if self.link.held.is_decided() and not self.link.unsent:
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
        opening = self._router.opening
        if opening is not None:
            opening.settled(link, self.place if self._speaks_for_place else None)

    def _ended(self, link: Link, reason: str) -> None:
        self._doubt.end()
        del self._doubt  # it asks this one whether it is founded
        if self._router.opening is not None:
            self._router.opening.gone(link)
        self._router.log.info("guest-left", peer=self._name, reason=reason)
        self._gone(self)
