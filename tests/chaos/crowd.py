"""The simulation's clients on real connections, who say what its plans have them say, round after round."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.chaos.clock import Clock
from tests.chaos.net import Door, Net
from tests.promises.history import Connection
from tests.simulation.clients import Caller, Client, PubSub
from tests.simulation.plan import SPEAK_S, ClientPlan, Plan, Spurt

LONGEST_MS: Final = 1000
"""Of the timeouts of calls: in the end all are waited for."""

QUIET_S: Final = 0.5
"""Seconds in which nothing comes: then all that was on its way has."""

Doors = Callable[[int, str], Mapping[Door, str]]
"""Returns the doors that a client of a number and a kind goes in by, and whose they are."""


class Crowd:
    """Half of the clients of some plans."""

    def __init__(self, clock: Clock, rounds: Sequence[Plan], round_s: float, doors: Doors) -> None:
        """`round_s` are the seconds of a round."""
        self.clients: list[Client] = []
        self._clock = clock
        topics = [f"topic{number}" for number in range(max(each.topics for each in rounds))]
        made: dict[str, type[Client]] = {"caller": Caller, "pubsub": PubSub}
        plans = zip(*([plan for plan in each.clients if plan.kind in made][::2] for each in rounds), strict=True)
        for number, of_one in enumerate(plans):
            plan = _joined(of_one, round_s)
            found = doors(number, plan.kind)
            net: Any = Net(clock, found)
            client = made[plan.kind](net, plan, "", [*found], topics)
            self.clients.append(client)

    def under_way(self) -> int:
        """Return how much of what they said waits for its answer."""
        return sum(client.under_way() for client in self.clients)

    def _heard(self) -> int:
        """Return how many pieces of anything have come."""
        return sum(len(each.taken) for client in self.clients for each in client.connections)

    def finish(self, seconds: float, is_over: Callable[[], bool] = lambda: True) -> list[Connection]:
        """Let nobody say anything; wait until all is answered and has come, and it is over, but no longer than that.

        Returns what they noted.
        """
        for client in self.clients:
            client.is_done = True
        until = self._clock.now + seconds
        self._clock.go_on(seconds, lambda: is_over() and not self.under_way())
        # What was published is acked as soon as the worker of a subscriber is sure to get it.
        heard = -1
        while heard < (by_now := self._heard()) and self._clock.now < until:
            heard = by_now
            self._clock.go_on(QUIET_S)
        for client in self.clients:
            client.look_back()
        connections = [each for client in self.clients for each in client.connections]
        for connection in connections:
            connection.is_whole = False
        return connections

    def close(self) -> None:
        """Hang up."""
        for client in self.clients:
            client.cut("hangs up")


def _joined(plans: Sequence[ClientPlan], round_s: float) -> ClientPlan:
    """Return one client that says what it would have said in each round."""
    spurts = [
        Spurt(
            round_s * (number + spurt.at / SPEAK_S),
            tuple(word._replace(timeout_ms=min(word.timeout_ms, LONGEST_MS)) for word in spurt.words),
        )
        for number, plan in enumerate(plans)
        for spurt in plan.spurts
    ]
    return dataclasses.replace(plans[0], spurts=tuple(spurts))
