"""The first moments of a worker: it lets nobody in before its siblings have said all that they subscribe to.

A value that was published earlier would miss subscribers whose worker has just not said so
yet. Each sibling says SETTLED once it has, and what it says after that is not read before all
have. One that hangs is not waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from workers.alarm import Alarm

if TYPE_CHECKING:
    from workers.link import Link
    from workers.turn import Turn

PATIENCE_S: Final = 1.0


class Opening:
    """Those who have not said so yet, and the links that are not read meanwhile."""

    def __init__(self, turn: Turn, opened: Callable[[], None]) -> None:
        """`opened` is called once."""
        self._turn = turn
        self._opened = opened
        self._awaited: dict[Link, None] = {}
        self._paused: list[Link] = []
        self._has_all = False  # links that there are to be
        self._alarm = Alarm()

    def linked(self, link: Link) -> None:
        """There is another sibling."""
        self._awaited[link] = None

    def has_all(self) -> None:
        """There are all."""
        self._has_all = True
        self._alarm.set(self._turn, self._turn.now + PATIENCE_S, self._open)
        self._look()

    def settled(self, link: Link) -> None:
        """One has said all."""
        self._awaited.pop(link, None)
        link.pause()
        self._paused.append(link)
        self._look()

    def gone(self, link: Link) -> None:
        """One is dead."""
        self._awaited.pop(link, None)
        self._look()

    def _look(self) -> None:
        if self._has_all and not self._awaited:
            self._open()

    def _open(self) -> None:
        self._alarm.off(self._turn)
        for link in self._paused:
            link.go_on()
        self._opened()
