"""Where a call goes: to the junction here, or to the worker that owns its topic, of this node or of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skywalker.errors import Busy
from skywalker.junction import Junction
from skywalker.members import Place
from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from workers.calls import census
from workers.calls.call import Caller, Carrier, ClientCall, Routing
from workers.calls.census import CensusCall
from workers.calls.owner import Owner
from workers.calls.publication import Publication
from workers.engine.loop import Turn

MAX_OWNERS: Final = 4096
"""Topics whose owner is remembered: to hash one again takes longer than all else that is done for a call."""

CENSUS_S: Final = 1.0
"""Seconds for another worker to count who waits on a topic."""


class Router(Routing):
    """The calls of one worker on their ways."""

    def __init__(self, turn: Turn, junction: Junction) -> None:
        self._turn = turn
        self._junction = junction
        self._owned: dict[bytes, Owner] = {}  # of topics that were looked up on the ring lately

    def follow(self, ring: Ring[Place], owners: Mapping[Place, Owner]) -> None:
        """Have calls go by this ring from now on. `owners` has all that are on it."""
        assert owners, "at least this worker owns something"
        self._ring: Ring[Owner] = ring.mapped(owners.__getitem__)
        self._only = next(iter(owners.values())) if len(owners) == 1 else None
        self._owned.clear()

    def owner(self, topic: bytes) -> Owner:
        """Return the worker that owns a topic."""
        if self._only is not None:
            return self._only
        owner = self._owned.get(topic)
        if owner is None:
            if len(self._owned) == MAX_OWNERS:
                self._owned.clear()
            owner = self._owned[topic] = self._ring.owner(token_of(topic))
        return owner

    def issue(self, call: ClientCall) -> None:
        carrier = self.owner(call.topic).carrier
        if carrier is not None:
            self._forward(call, carrier)
        elif not call.meet(self._junction):
            self._wait(call)

    def publish(self, call: ClientCall) -> bool:
        assert isinstance(call, Publication)
        publication = call
        carrier = self.owner(publication.topic).carrier
        if carrier is None:
            return publication.hand_out(self._junction)
        carrier.forward(publication)
        return False

    def resume(self, call: ClientCall) -> None:
        carrier = self.owner(call.topic).carrier
        if carrier is not None:
            self._forward(call, carrier)
        else:
            self._junction.resume(call)

    def withdraw(self, call: ClientCall) -> bool:
        if call.carrier is not None:
            return call.carrier.withdraw(call)
        return self._junction.withdraw(call) or call.caller.unpark(call)

    def reroute(self, call: ClientCall) -> None:
        """Have a call that waits go elsewhere if another worker owns its topic now."""
        owner = self.owner(call.topic)
        if call.carrier is not None:
            if call.carrier is not owner.carrier:
                call.carrier.ask_back(call)
        elif owner.carrier is not None and self._junction.withdraw(call):
            self._forward(call, owner.carrier)

    def census(self, caller: Caller, id: bytes, topic: bytes, names_groups: bool) -> None:
        """Answer a :topic, with the names of groups or without. Raises Busy if the owner does not keep up."""
        carrier = self.owner(topic).carrier
        if carrier is None:
            info = census.info(self._junction, topic, self._turn.now)
            caller.reply(wire.TOPIC, id, info if names_groups else wire.without_groups(info))
            return
        if carrier.congested():
            raise Busy("the worker that owns the topic does not answer", {"limit": "mesh_bytes"})
        call = CensusCall(caller, id, self._turn.now + CENSUS_S, names_groups)
        carrier.ask_census(call, topic)

    def _wait(self, call: ClientCall) -> None:
        if call.deadline <= self._turn.now and not call.is_kept():
            call.over()
        else:
            call.begin_waiting()
            self._junction.wait(call)

    def _forward(self, call: ClientCall, carrier: Carrier) -> None:
        if not call.is_kept() and carrier.congested():
            raise Busy("too much waits for the worker that owns the topic", {"limit": "mesh_bytes"})
        assert call.carrier is None, "it waits nowhere else"
        call.begin_waiting()
        carrier.forward(call)
        assert call.carrier is carrier or not call.is_kept(), "it waits there, or has its answer"
        if call.deadline <= self._turn.now:
            call.give_up()
