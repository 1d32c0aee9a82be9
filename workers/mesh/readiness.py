"""The first moments of a worker: it hears no client before all others have said what they subscribe to.

A value that was published earlier would miss subscribers whose worker has just not said so
yet. Siblings have links to this worker; those of other nodes are visited, and each makes a link
in turn. Each says SETTLED once it has said all, and what it says after that, or instead, is not
heard before all have. One that hangs is not waited for, nor is one whose node is off the ring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from skywalker.members import Place
from workers.calls.worker_states import Event, Standing
from workers.engine.loop import Alarm, Turn
from workers.engine.points import reached
from workers.stats.log import Log

PATIENCE_S: Final = 1.0


class Pausable(Protocol):
    """A link, of which nothing is read for a while."""

    def pause(self) -> None:
        """Read no more until told to go on."""

    def go_on(self) -> None:
        """Read on."""


class ReadinessBarrier:
    """Those who have not said so yet, and the links that are not read meanwhile. It goes on from begin()."""

    def __init__(self, turn: Turn, log: Log, standing: Standing) -> None:
        self._turn = turn
        self._log = log
        self._standing = standing
        self._opened: Callable[[], None] | None = None
        self._awaited: dict[Pausable | Place, None] = {}  # a place until somebody speaks for it
        self._paused: list[Pausable] = []
        self._has_all = False  # links to siblings that there are to be
        self._alarm = Alarm()

    def begin(self, opened: Callable[[], None]) -> None:
        """Hear nobody until all have said so; then `opened` is called, once."""
        assert self._standing.opening, "a worker opens once"
        self._opened = opened

    @property
    def is_open(self) -> bool:
        """Whether clients are heard."""
        return not self._standing.opening

    def linked(self, link: Pausable) -> None:
        """There is another sibling, or an inbound peer."""
        if self._standing.opening:
            self._awaited[link] = None

    def has_all(self, places: Iterable[Place] = ()) -> None:
        """There are all siblings, and in these places there are workers of other nodes."""
        self._has_all = True
        self._awaited |= dict.fromkeys(places)
        self._alarm.set(self._turn, self._turn.now + PATIENCE_S, self._wait_no_more)
        self._look()

    def hold(self, link: Pausable) -> None:
        """Read no more of one that says something else than what it subscribes to."""
        link.pause()
        self._paused.append(link)

    def settled(self, link: Pausable, place: Place | None = None) -> None:
        """One has said all, and speaks for its place if that is named."""
        if not self._standing.opening:
            return
        self.hold(link)
        self._awaited.pop(link, None)
        if place is not None:
            self._awaited.pop(place, None)
        self._look()

    def gone(self, who: Pausable | Place) -> None:
        """One is dead, or not on the ring any more."""
        self._awaited.pop(who, None)
        self._look()

    def _look(self) -> None:
        if self._has_all and not self._awaited:
            self._open()

    def _wait_no_more(self) -> None:
        who = sorted({f"{each.node}/{each.worker}" for each in self._awaited if isinstance(each, Place)})
        why = f"they have not said within {PATIENCE_S:g} s what they subscribe to: what is published may miss that"
        self._log.warning("not-waited-for", workers=len(self._awaited), elsewhere=",".join(who), reason=why)
        self._open()

    def _open(self) -> None:
        self._has_all = False  # so that nobody who is gone opens it once more
        self._alarm.off(self._turn)
        paused, self._paused = self._paused, []
        self._awaited = {}
        for link in paused:
            link.go_on()
        assert reached("a worker opens")
        self._standing.happened(Event.OPENED)
        opened, self._opened = self._opened, None
        if opened is not None:
            opened()
