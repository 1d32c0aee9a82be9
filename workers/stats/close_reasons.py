"""Why connections are closed."""

from __future__ import annotations

import enum
from typing import Final


class Close(enum.IntEnum):
    """One reason, as what a worker counts and tells has it; the text beside it says more."""

    PEER = 0  # its client closed it
    BROKEN = 1
    UNREAD = 2  # the client read nothing
    SLOW_SUBSCRIBER = 3  # it read what it subscribes to too slowly
    HALF_FRAME = 4  # the rest of a frame did not come
    UNREADABLE = 5  # what came cannot be read
    SILENT = 6  # it answered no ping
    REFUSED = 7  # there were too many, of connections or of what it wanted
    DRAINING = 8  # its worker ended
    BECAME_LINK = 9  # it is the link to another node's worker now
    BUG = 10  # a mistake of ours
    UNAUTHORIZED = 11  # it did not say who it is, or not the truth
    FORBIDDEN = 12  # it may not do what it wanted, and its dialect has no word for that
    LOST_ON_ITS_WAY = 13  # it moved from one worker to another, and one of them ended

    @property
    def label(self) -> str:
        """Its name, as people read it."""
        return self.name.lower().replace("_", "-")


GOODBYE: Final = (Close.DRAINING, "the worker ends")
"""Of a connection whose client is told nothing more."""
