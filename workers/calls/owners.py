"""All who own topics, this worker among them: by their numbers the core knows them, and finds whose a topic is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skywalker.errors import Busy
from skywalker.members import Place, PlaceRing, Share
from skywalker.wire import junction as wire
from workers.calls import census
from workers.calls.census import Asking, CensusCall
from workers.calls.owner import NOWHERE, Owner
from workers.engine.loop import Turn

HERE: Final = 0
"""The number of this worker."""

CENSUS_S: Final = 1.0
"""Seconds for another worker to count who waits on a topic."""


class Owners:
    """Those of one worker's ring."""

    def __init__(self, turn: Turn, here: Owner) -> None:
        self._turn = turn
        self._core = turn.core
        self._numbers = {here.place: HERE}
        self._all: list[Owner | None] = [here]  # by number; None where a place has left the ring
        self._core.ways(1)
        here.found_as(HERE)

    def follow(self, ring: PlaceRing, owners: Mapping[Place, Owner]) -> None:
        """Have calls go by this ring from now on. `owners` has all that are on it."""
        # What waited for one that leaves is yet to be looked at, so the next to come has a number of its own.
        free = [number for number, owner in enumerate(self._all) if owner is None]
        for place in self._numbers.keys() - owners.keys():
            self._put(self._numbers.pop(place), None)
        for place, owner in owners.items():
            if place not in self._numbers:
                self._numbers[place] = free.pop() if free else self._add()
            if self._all[self._numbers[place]] is not owner:
                self._put(self._numbers[place], owner)
        by_token = ring.by_token() if len(owners) > 1 else {}
        numbers: list[int] = []
        first: dict[Share, int] = {}
        for share in by_token.values():
            if share not in first:
                first[share] = len(numbers)
                numbers += [self._numbers[place] for place in share.places()]
        shares = [(first[share], share.workers) for share in by_token.values()]
        self._core.follow([*by_token], shares, numbers, HERE)

    def _add(self) -> int:
        self._all.append(None)
        self._core.ways(len(self._all))
        return len(self._all) - 1

    def _put(self, number: int, owner: Owner | None) -> None:
        before, self._all[number] = self._all[number], owner
        if before is not None:
            before.found_as(NOWHERE)
        if owner is not None:
            owner.found_as(number)

    def at(self, number: int) -> Owner | None:
        """Return the one by that number, if it is on the ring."""
        return self._all[number]

    def of(self, topic: bytes) -> Owner:
        """Return the worker that owns a topic."""
        owner = self._all[self._core.owner(topic)]
        assert owner is not None, "it is on the ring"
        return owner

    def census(self, caller: Asking, id: bytes, topic: bytes, names_groups: bool) -> None:
        """Answer a :topic, with the names of groups or without. Raises Busy if the owner does not keep up."""
        carrier = self.of(topic).carrier
        if carrier is None:
            info = census.info(self._core, topic, self._turn.now)
            caller.reply(wire.TOPIC, id, info if names_groups else wire.without_groups(info))
            return
        if carrier.is_congested:
            raise Busy("the worker that owns the topic does not answer", {"limit": "mesh_bytes"})
        call = CensusCall(caller, self._turn, id, self._turn.now + CENSUS_S, names_groups)
        carrier.ask_census(call, topic)
