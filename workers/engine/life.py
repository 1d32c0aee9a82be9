"""The life of something as a table: its states, what may happen to it, and which state that leads to from which.

Whoever lives by it keeps the number of a state, and asks the table what comes after:

    self.state = LIFE.after(self.state, CLOSED)

A pair that is not in the table is a mistake in the program: it raises, and changes nothing.
docs/architecture.md has a picture of each, made by make lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

NOWHERE: Final = 255
"""In the table, what no pair leads to."""


class Unlisted(RuntimeError):
    """Something happened in a state in which it cannot: a mistake in the program, which a release finds, too."""


class Life:
    """That of all things of one kind. States and events are numbered in the order in which they are given."""

    __slots__ = ("_next", "_width", "events", "name", "states")

    def __init__(
        self,
        name: str,
        states: Sequence[tuple[str, str]],
        events: Sequence[tuple[str, str]],
        ways: Mapping[int, Mapping[int, int]],
    ) -> None:
        """States and events are a name and a sentence each; `ways` has for a state where each event leads."""
        self.name = name
        self.states = states
        self.events = events
        self._width = len(events)
        following = bytearray([NOWHERE]) * (len(states) * len(events))
        for state, by_event in ways.items():
            for event, after in by_event.items():
                assert max(state, after) < len(states), "a state that is not listed"
                assert event < len(events), "an event that is not listed"
                following[state * len(events) + event] = after
        self._next = bytes(following)

    def after(self, state: int, event: int) -> int:
        """Return the state that an event leads to. Raises Unlisted if it cannot happen in this one."""
        after: int = self._next[state * self._width + event]
        if after == NOWHERE:
            raise Unlisted(f"a {self.name} that is {self.states[state][0]} cannot be {self.events[event][0]}")
        return after

    def ways(self) -> Iterator[tuple[int, int, int]]:
        """Yield each state, each event that can happen in it, and the state that it leads to."""
        for at, after in enumerate(self._next):
            if after != NOWHERE:
                yield at // self._width, at % self._width, after
