"""A value that a client leaves with the node, to be published if its connection is lost."""

from __future__ import annotations

import math

from skywalker.wire.junction import WILL
from workers.calls.call import ClientCall
from workers.calls.publication import Publication


class Will(ClientCall):
    """It waits at its connection, in no line of the junction, until its time is over or it is cancelled.

    In the journal is only what it publishes.
    """

    __slots__ = ("testament",)

    def begin_with(self, testament: bytes) -> None:
        """Set up what it has besides begin() and begin_for(): the value, which nobody can be given before."""
        self.testament = testament

    @property
    def method(self) -> bytes:
        return WILL

    def cost(self) -> int:
        return ClientCall.cost(self) + len(self.testament)

    def note(self, outcome: int) -> None:
        pass

    def withdraw(self) -> bool:
        return True

    def publication(self) -> Publication:
        """Return what is to be published, since its connection is lost."""
        publication = Publication.__new__(Publication)
        publication.begin(self.topic, self.caller.turn.now, self.testament, None)
        publication.begin_for(self.caller, b"", b"", math.inf)
        publication.begin_as(0)
        return publication
