"""When the nodes of a cluster were of one mind, and what was done to them in between."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

HEAL_S: Final = 3.0
"""Seconds after the end of a cut in which nodes may wait for the kernel, at most: then their links are new."""

LAST_REPEAT_S: Final = 0.5
"""Seconds by which the kernel's pause before it sends once more may be longer than half the time it has tried."""

Span = tuple[float, float]


@dataclass(slots=True)
class Event:
    """Something that was done to nodes, from its begin to its end; `kind` is a past participle."""

    kind: str
    nodes: tuple[str, ...]
    start: float
    end: float

    def __str__(self) -> str:
        return f"{', '.join(self.nodes)} {self.kind} at {self.start:.3f}"


@dataclass(slots=True)
class Calm:
    """A time in which every node that lived and was well saw exactly those that it could reach: the groups."""

    start: float
    end: float
    groups: tuple[frozenset[str], ...]


class Agreement:
    """All events and calms of a run. A cut is felt for as long again as it was, but for no more than `heal_s`."""

    def __init__(self, events: Sequence[Event], calms: Sequence[Calm], heal_s: float = HEAL_S) -> None:
        self.events = events
        self.calms = [*calms]
        for cut, healed in itertools.chain.from_iterable(spans(events, "cut off", "healed").values()):
            # What is not acknowledged the kernel sends again after pauses that double each time.
            felt = healed + min(healed - cut + LAST_REPEAT_S, heal_s)
            self.calms = [
                Calm(felt, max(felt, calm.end), calm.groups) if healed <= calm.start < felt else calm
                for calm in self.calms
            ]
        self._starts = [calm.start for calm in self.calms]

    def held(self, start: float, end: float) -> bool:
        """Return whether all agreed the whole time."""
        at = bisect.bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self.calms[at].end

    def longest(self, start: float, end: float, nodes: set[str] | None = None) -> float:
        """Return the longest time in a row in which these nodes saw each other; without names, all that lived."""
        longest = 0.0
        for calm in self.calms[max(0, bisect.bisect_right(self._starts, start) - 1) :]:
            if calm.start > end:
                break
            if len(calm.groups) == 1 if nodes is None else any(nodes <= group for group in calm.groups):
                longest = max(longest, min(end, calm.end) - max(start, calm.start))
        return longest

    @property
    def seconds(self) -> float:
        """How long they agreed in all."""
        return sum(calm.end - calm.start for calm in self.calms)

    @property
    def longest_quarrel_s(self) -> float:
        """How many seconds they took to agree after something, if nothing else came between."""
        return max((calm.start - event.end for event, calm, _ in self._aftermaths() if calm is not None), default=0.0)

    def quarrels(self, agree_s: float) -> Iterator[str]:
        """Yield, in words, each time when they had that long and did not agree."""
        for event, calm, until in self._aftermaths():
            if (until if calm is None else calm.start) - event.end > agree_s:
                yield f"the nodes did not agree within {agree_s:g} s: {event}"

    def _aftermaths(self) -> Iterator[tuple[Event, Calm | None, float]]:
        """Yield every event, the calm that it was followed by, if any, and when the next one began."""
        for event, following in itertools.zip_longest(self.events, self.events[1:]):
            until = math.inf if following is None else following.start
            at = bisect.bisect_left(self._starts, event.end)
            calm = self.calms[at] if at < len(self.calms) and self.calms[at].start < until else None
            yield event, calm, until

    def around(self, start: float, end: float) -> list[str]:
        """Return, in words, what happened at that time and shortly before."""
        calms = [calm for calm in self.calms if calm.start < end and start < calm.end]
        return [
            *(f"  ! {event}" for event in self.events if start - 8 < event.start < end),
            *(f"  ~ agreed from {calm.start:.3f} to {calm.end:.3f}" for calm in calms),
        ]


def spans(events: Sequence[Event], begin: str, end: str) -> dict[str, list[Span]]:
    """Return, by node, the times between events of these two kinds; a death ends them too."""
    found: dict[str, list[Span]] = defaultdict(list)
    since: dict[str, float] = {}
    for event in events:
        for node in event.nodes:
            if event.kind == begin:
                since[node] = event.start
            elif event.kind in (end, "killed") and node in since:
                found[node].append((since.pop(node), event.end))
    return found


def undisturbed(events: Sequence[Event], calms: Sequence[Calm]) -> list[Calm]:
    """Return the calms in which no node was frozen or cut off: it may be the one that a client is connected to."""
    bad = [
        span
        for begin, end in (("frozen", "thawed"), ("cut off", "healed"))
        for of_one in spans(events, begin, end).values()
        for span in of_one
    ]
    return [calm for calm in calms if not any(start < calm.end and calm.start < end for start, end in bad)]
