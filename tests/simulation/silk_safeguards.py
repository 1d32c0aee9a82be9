"""Safeguards of Silk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from skywalker.silk.answers import Answers
from skywalker.silk.doubts import Doubts
from skywalker.silk.membership import Membership, Questions
from skywalker.silk.requests import Requests
from skywalker.wire import silk as wire
from tests.simulation.safeguard import Method, Safeguard, by_nothing
from tests.simulation.silk_run import run


def _tried(seed: int, _: Sequence[str]) -> Sequence[str]:
    try:
        return run(seed).broken
    except AssertionError as error:
        return [f"AssertionError: {error}"]


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

SAFEGUARDS: Final[dict[str, Safeguard]] = {
    "a repeated request is known": Safeguard(Method(Answers, "is_new", _always_new), (ONCE,), _tried),
    "who is silent is suspected": Safeguard(Method(Doubts, "watch", by_nothing), (DEAD, ALL), _tried),
    "who is said to have failed is asked": Safeguard(Method(Doubts, "reported", _believed), (ALIVE,), _tried),
    "who sees others is asked whom": Safeguard(Method(Questions, "is_due", lambda _: _never), (ALL,), _tried),
    "who hears of its failure joins again": Safeguard(Method(Membership, "_rejoin", by_nothing), (BLAMED,), _tried),
    "who has left is silent": Safeguard(Method(Membership, "leave", _goes_on), (AWAY, ALL), _tried),
    "a request is sent again": Safeguard(Method(Requests, "_attempt", _sent_once), (ANSWERED,), _tried),
}
"""By what each does."""
