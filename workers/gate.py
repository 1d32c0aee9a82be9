"""What keeps calls on one topic in order while some of them move to another owner: the later ones wait at a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workers.alarm import Alarm
from workers.calls import Carrier, ClientCall
from workers.owner import Owner

if TYPE_CHECKING:
    from workers.router import Router

LOOK_S: Final = 0.01
"""Seconds between looks whether all that are earlier have moved: a round trip to a node near by."""

PATIENCE_S: Final = 0.5
"""Seconds after which the gate opens in any case: the old owner may hang, and hold up one topic no longer than this."""


class Gate(Owner):
    """Stands before `owner`, on one topic. Calls that come meanwhile wait here as they would for one that is absent."""

    __slots__ = ("_alarm", "_earlier", "_opens_at", "_router", "owner", "topic")

    def __init__(self, topic: bytes, owner: Owner, router: Router) -> None:
        Owner.__init__(self, owner.place)
        self.topic = topic
        self.owner = owner
        self._router = router
        self._earlier: list[tuple[ClientCall, Carrier | None]] = []
        self._opens_at = router.turn.now + PATIENCE_S
        self._alarm = Alarm(self._look)
        self._alarm.set(router.turn, router.turn.now + LOOK_S)

    def let_pass(self, call: ClientCall) -> None:
        """Open only after `call` has left the carrier that it waits at."""
        self._earlier.append((call, call.carrier))

    def _look(self) -> None:
        turn = self._router.turn
        self._earlier = [(call, carrier) for call, carrier in self._earlier if call.held and call.carrier is carrier]
        if (self._earlier or self._router.is_moving()) and turn.now < self._opens_at:
            self._alarm.set(turn, turn.now + LOOK_S)
        else:
            self._router.opened_gate(self)
