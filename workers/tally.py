"""Who counts what a worker does, as all others see it; cells.py has the one there is.

They are apart for the compiler: a module that knew the typed memory view of the cells would carry all their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skywalker.errors import Busy, RequestError
from workers import figures
from workers.closes import Close

_CODES: Final[Mapping[str, int]] = {code: at for at, code in enumerate(figures.CODES, figures.REFUSED.at)}
_LIMITS: Final[Mapping[object, int]] = {limit: at for at, limit in enumerate(figures.LIMITS, figures.LIMITED.at)}


class Tally:
    """Adds to the cells of figures.py; `at` says to which."""

    __slots__ = ()

    def add(self, at: int, by: int) -> None:
        """Add to a counter, or to a gauge."""
        raise NotImplementedError

    def set(self, at: int, value: int) -> None:
        """Say how a gauge is now."""
        raise NotImplementedError

    def took(self, at: int, seconds: float) -> None:
        """Add a time to the histogram whose first cell that is."""
        raise NotImplementedError

    def answered(self, topic: bytes, method: int, outcome: int, route: int, seconds: float) -> None:
        """A call was answered after so long: a method, an outcome and a route of record.py."""
        raise NotImplementedError

    def refused(self, error: RequestError) -> None:
        """A call, or a frame that is none, was answered with an error."""
        self.add(_CODES[error.code], 1)
        self.limited(error)

    def limited(self, by: RequestError | str) -> None:
        """A limit, or the one that an error names if it is Busy, has refused or ended something."""
        limit = by.details.get("limit") if isinstance(by, Busy) else by
        if limit in _LIMITS:
            self.add(_LIMITS[limit], 1)

    def closed(self, reason: Close) -> None:
        """A connection was closed."""
        self.add(figures.CLOSED.at + reason, 1)
