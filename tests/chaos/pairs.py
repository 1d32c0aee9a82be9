"""Pairs of clients that meet again and again, each side through whichever node it happens to be connected to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from tests.chaos.client import Call, Client

if TYPE_CHECKING:
    from tests.chaos.crowd import Crowd

PAUSE_S: Final = 1.0
"""Mean seconds between two meetings of a pair."""

AGAIN_S: Final = 0.05
"""Seconds until a client whose call came to nothing makes it anew."""

TIMEOUTS_S: Final = (0.5, 1.5, 3.0, 8.0)

MOVES: Final = 0.05
"""How likely a client goes to another node before a meeting."""

DESERTS: Final = 0.15
"""How likely it does so in the middle of a call, if that takes long."""


class Pair:
    """A sender and a listener with a topic of their own. `needed` has how long each meeting took, and when it began."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self.crowd = crowd
        self.topic = f"pair-{number}"
        self.sender = Side(self, 2 * number, "send")
        self.listener = Side(self, 2 * number + 1, "recv")
        self.needed: list[tuple[float, float]] = []
        self.began = 0.0
        self.meeting = False

    def begin(self) -> None:
        """Have both sides try to meet, the one or the other first."""
        dice = self.crowd.random
        if not self.crowd.acting:
            return
        now = self.began = time.monotonic()
        self.meeting = True
        for side in (self.sender, self.listener):
            side.done = False
            if dice.random() < MOVES:
                side.lose(by_us=True)
            self.crowd.at(now + dice.choice((0.0, 0.0, 0.1, 0.5)), side.act)

    def heard(self, side: Side, call: Call) -> None:
        """A call of one side has come to an end."""
        side.done = call.outcome == "met"
        if side is self.listener and not side.done and self.sender.done:
            # The value went to a listener that had left, which its node did not know.
            self.sender.done = False
            self.crowd.at(time.monotonic() + AGAIN_S, self.sender.act)
        if self.listener.done and not self.sender.open:
            self._met()
        elif not side.done:
            self.crowd.at(time.monotonic() + AGAIN_S, side.act)

    def _met(self) -> None:
        if self.meeting:
            now = time.monotonic()
            self.meeting = False
            self.needed.append((now - self.began, self.began))
            self.crowd.at(now + self.crowd.random.expovariate(1 / PAUSE_S), self.begin)


class Side(Client):
    """One of a pair. Makes one call at a time."""

    def __init__(self, pair: Pair, number: int, kind: str) -> None:
        super().__init__(pair.crowd, number)
        self.pair = pair
        self.kind = kind
        self.done = True

    def act(self) -> None:
        crowd = self.crowd
        if self.done or self.open or not self.pair.meeting or not crowd.acting:
            return
        if self.leaving:
            self.lose(by_us=True)
        if not self.connected:
            self.connect()
        if not self.connected:
            crowd.at(time.monotonic() + AGAIN_S, self.act)
            return
        timeout_s = crowd.random.choice(TIMEOUTS_S)
        call = self.call(self.kind, self.pair.topic, timeout_s)
        if call is not None and crowd.random.random() < DESERTS:
            crowd.at(time.monotonic() + crowd.random.random() * timeout_s, lambda: self._desert(call))

    def _desert(self, call: Call) -> None:
        """Go to another node in the middle of a call, as who finds its own too slow."""
        if call.id in self.open and call.connection is self.connection:
            self.lose(by_us=True, reset=self.crowd.random.random() < 0.5)

    def ended(self, call: Call) -> None:
        self.pair.heard(self, call)
