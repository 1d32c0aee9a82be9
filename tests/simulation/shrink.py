"""The smallest part of a plan that is still found which fails in the same way."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from tests.simulation.plan import ROOM, ClientPlan, Plan, Spurt

Part = TypeVar("Part")

LUCKS: Final = 3
"""Seeds with which a smaller plan is tried: what is left out changes what luck does to the rest, too."""

PLAINEST: Final[dict[str, Any]] = {"room": ROOM, "acks": False, "subscribes": False, "pause_s": 0.0, "depth": 64}
"""What a client is like that has nothing special."""


class Shrinker:
    """Leaves out of a plan what it can within a time."""

    def __init__(
        self, plan: Plan, fails: Callable[[Plan], bool], seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with a plan that fails in a way that `fails` knows."""
        self.best = plan
        self._fails = fails
        self._clock = clock
        self._ends_at = clock() + seconds

    def shrink(self) -> Plan:
        """Return the smallest plan that was found."""
        before = None
        while before != self.best and not self._is_over():
            before = self.best
            self._leave_out(self.best.clients, lambda some: {"clients": some})
            self._leave_out(self.best.faults, lambda some: {"faults": some})
            self._leave_out(_words(self.best), lambda some, plan=self.best: {"clients": _with_words(plan, some)})
            self._be_plainer()
        return self.best

    def _is_over(self) -> bool:
        return self._clock() >= self._ends_at

    def _take(self, **changed: Any) -> bool:
        """Have a plan with that changed be the best from now on if it fails, too; return whether it does."""
        for luck in range(LUCKS):
            plan = dataclasses.replace(self.best, **changed)
            plan = dataclasses.replace(plan, seed=plan.seed + luck)
            if plan == self.best or self._is_over():
                return False
            if self._fails(plan):
                self.best = plan
                return True
        return False

    def _leave_out(self, parts: Sequence[Part], changed: Callable[[tuple[Part, ...]], dict[str, Any]]) -> None:
        """Leave out what can be, at first many at once; `changed` tells what of the plan is different with some."""
        kept, size = tuple(parts), len(parts)
        while size:
            at = 0
            while at < len(kept) and not self._is_over():
                fewer = kept[:at] + kept[at + size :]
                if self._take(**changed(fewer)):
                    kept = fewer
                else:
                    at += size
            size //= 2

    def _be_plainer(self) -> None:
        """Have fewer nodes, workers and topics, and clients that have nothing special."""
        for what in ("nodes", "workers", "topics"):
            for fewer in range(1, getattr(self.best, what)):
                if self._take(**{what: fewer}):
                    break
        for at in range(len(self.best.clients)):
            for what, plain in PLAINEST.items():
                clients = [*self.best.clients]
                clients[at] = dataclasses.replace(clients[at], **{what: plain})
                self._take(clients=tuple(clients))


Place = tuple[int, int, int]
"""Of a word: which client's, in which spurt, and where in that."""


def _words(plan: Plan) -> list[Place]:
    return [
        (who, when, at)
        for who, client in enumerate(plan.clients)
        for when, spurt in enumerate(client.spurts)
        for at in range(len(spurt.words))
    ]


def _with_words(plan: Plan, kept: Sequence[Place]) -> tuple[ClientPlan, ...]:
    """Return the clients of a plan with no other words than these."""
    words: dict[tuple[int, int], list[int]] = {}
    for who, when, at in kept:
        words.setdefault((who, when), []).append(at)
    return tuple(
        dataclasses.replace(
            client,
            spurts=tuple(
                Spurt(spurt.at, tuple(spurt.words[at] for at in words[who, when]))
                for when, spurt in enumerate(client.spurts)
                if (who, when) in words
            ),
        )
        for who, client in enumerate(plan.clients)
    )
