"""Safeguards of Silk, each of which can be switched off: a run that does not notice would not test it.

python -m tests.simulation.silk_ablations                 # all of them
python -m tests.simulation.silk_ablations "a repeated request is known"
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from skywalker.silk.answers import Answers
from skywalker.silk.doubts import Doubts
from skywalker.silk.membership import Membership, Questions
from skywalker.silk.requests import Requests
from skywalker.wire import silk as wire
from tests.simulation.silk_run import run

SEEDS: Final = 40
"""That are tried before it is said that nobody notices."""


def _nothing(*_: Any, **__: Any) -> None:
    """In place of what is switched off."""


def _always_new(is_new: Callable[..., bool]) -> Callable[..., bool]:
    def unsafe(self: Answers, message: wire.Message, now: float) -> bool:
        is_new(self, message, now)
        return True

    return unsafe


def _never(*_: Any) -> bool:
    return False


def _believed(reported: Any) -> Any:
    def unsafe(self: Doubts, peer: Any, now: float) -> None:
        peer.probes = 4
        peer.heard_at = now - 10
        self._peers.look_at(peer, now)

    return unsafe


def _goes_on(leave: Any) -> Any:
    def unsafe(self: Membership, now: float) -> None:
        leave(self, now)
        self.has_left = False

    return unsafe


def _sent_once(attempt: Any) -> Any:
    def unsafe(self: Requests, request: Any, now: float) -> None:
        attempt(self, request, now)
        if request.attempts > 1:
            self._messages.pop()

    return unsafe


ALL: Final = "everybody_knows_everybody"
DEAD: Final = "the_dead_are_out_in_time"
ALIVE: Final = "who_is_there_does_not_fail"
ONCE: Final = "a_request_is_handled_once"
AWAY: Final = "nobody_speaks_while_away"
BLAMED: Final = "who_is_blamed_joins_again"
ANSWERED: Final = "requests_are_answered"

SAFEGUARDS: Final[dict[str, tuple[type, str, Callable[[Any], Any], tuple[str, ...]]]] = {
    "a repeated request is known": (Answers, "is_new", _always_new, (ONCE,)),
    "who is silent is suspected": (Doubts, "watch", lambda _: _nothing, (DEAD, ALL)),
    "who is said to have failed is asked": (Doubts, "reported", _believed, (ALIVE,)),
    "who sees others is asked whom": (Questions, "is_due", lambda _: _never, (ALL,)),
    "who hears of its failure joins again": (Membership, "_rejoin", lambda _: _nothing, (BLAMED,)),
    "who has left is silent": (Membership, "leave", _goes_on, (AWAY, ALL)),
    "a request is sent again": (Requests, "_attempt", _sent_once, (ANSWERED,)),
}
"""By what each does: the class and the method that do it, what stands in their place, and the rules that notice."""


def noticed_after(name: str, seeds: int = SEEDS) -> tuple[int, str] | None:
    """Return after how many seeds it is noticed that a safeguard is off, and by what; None if it is not."""
    where, method, replaced, rules = SAFEGUARDS[name]
    as_ever = getattr(where, method)
    setattr(where, method, replaced(as_ever))
    try:
        for seed in range(seeds):
            try:
                broken = run(seed).broken
            except AssertionError as error:
                return seed + 1, f"an assertion: {error}"
            for line in broken:
                if line.startswith(rules):
                    return seed + 1, line
    finally:
        setattr(where, method, as_ever)
    return None


def main() -> int:
    """Try those that are named, or all; return 1 if one is not noticed."""
    missed = 0
    for name in sys.argv[1:] or SAFEGUARDS:
        noticed = noticed_after(name)
        missed += noticed is None
        how = f"not noticed by {SEEDS} seeds" if noticed is None else "noticed by seed {}: {}".format(*noticed)
        print(f"without {name!r}: {how}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
