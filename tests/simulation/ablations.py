"""Safeguards of the product, each of which can be switched off: a run that does not notice would not test it.

    python -m tests.simulation.ablations                 # all of them
    python -m tests.simulation.ablations "opening barrier"

It takes the modules plain, since what is compiled cannot be changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

from skywalker.clients.aio.line_driver import LineDriver
from skywalker.clients.call import Call
from skywalker.clients.calls import Calls
from skywalker.clients.line import Line as ClientLine
from skywalker.errors import RequestError, TimedOut
from skywalker.pubsub.exchange import Exchange
from tests.simulation.run import run
from workers.calls.call import ClientCall, NodeCall
from workers.calls.interests import TopicInterest
from workers.calls.rebalance import Rebalance
from workers.doors.connection import Connection
from workers.doors.pubsub import PubSub
from workers.engine.loop import READ
from workers.mesh.link import Link
from workers.mesh.outbound import Outbound
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.succession import Succession

SEEDS: Final = 500
"""That are tried before it is said that nobody notices."""


def _nothing(*_: Any, **__: Any) -> None:
    """In place of what is switched off."""


def _confirmed_first(flush: Callable[[Connection], None]) -> Callable[[Connection], None]:
    def unsafe(self: Connection) -> None:
        values, self._values = self._values, []
        for listener in values:
            self.delivered(listener)
        flush(self)

    return unsafe


def _missed_at_once(self: NodeCall, told: bool) -> bool:
    self.abandoned = True
    if not self.answered:
        self.missed()
    return True


def _over_at_once(self: ClientCall, error: RequestError | None = None) -> None:
    self.withdraw()
    self.over()


def _acked_at_once(self: PubSub, count: int) -> None:
    self._say(count)


def _dropped(self: Outbound) -> None:
    self.retired()
    for call in self._calls.values():
        call.carrier = None
    self._calls = {}


def _in_effect_at_once(change: Any) -> Any:
    def unsafe(self: TopicInterest, by: int, waiter: Any) -> None:
        change(self, by, None)
        if waiter is not None:
            waiter.in_effect()

    return unsafe


def _open_at_once(self: ReadinessBarrier, places: object = ()) -> None:
    self._awaited = {}
    self._open()


def _some_heard(attend: Callable[[Link], None]) -> Callable[[Link], None]:
    def unsafe(self: Link) -> None:
        if self._is_hearing:
            attend(self)
        else:
            self.ready(READ)

    return unsafe


def _timed_out(_: Calls, call: Call) -> TimedOut:
    return call.timed_out()


def _forgetful(connected: Any) -> Any:
    def unsafe(self: Exchange, *given: Any) -> None:
        topics, self._topics = self._topics, {}
        connected(self, *given)
        self._topics = topics

    return unsafe


TRUTH: Final = "answers_are_true"
ONCE: Final = "nothing_comes_twice"
ALL: Final = "subscribers_miss_nothing"
TIME: Final = "answers_come_in_time"
MEETING: Final = "who_waits_meets"
ORDER: Final = "order_holds"
ENDS: Final = "calls_of_a_library_end_in_time"
EACH: Final = "each_call_has_one_answer"
STREAMS: Final = "streams_yield_what_came"

SAFEGUARDS: Final[dict[str, tuple[type, str, Callable[[Any], Any], tuple[str, ...]]]] = {
    "a value is written before its sender is told true": (Connection, "flush", _confirmed_first, (TRUTH,)),
    "a value is asked back at the deadline": (NodeCall, "ask_back", lambda _: _missed_at_once, (TRUTH,)),
    "what has come is heard before a last word counts as missing": (
        ClientCall, "_hear_last_words", lambda _: _nothing, (TRUTH,)
    ),
    "without a last word it is not known": (ClientCall, "leave", lambda _: _over_at_once, (TRUTH,)),
    "opening barrier": (ReadinessBarrier, "has_all", lambda _: _open_at_once, (ALL,)),
    "all is heard that came while a worker opened": (Link, "attend", _some_heard, (TRUTH,)),
    "a predecessor is heard before its heir": (Outbound, "comes_before", lambda _: _nothing, (ALL, ORDER, ONCE)),
    "a successor is asked after its predecessor has given all back": (
        Succession, "ask", lambda _: Succession.end, (ALL, ORDER)
    ),
    "a publisher waits while its topics move": (PubSub, "hold_back", lambda _: _nothing, (ALL, ORDER)),
    "an ack is written after what it is for": (PubSub, "_handed_out", lambda _: _acked_at_once, (ALL,)),
    "what waited at a dead worker is issued again": (Outbound, "close", lambda _: _dropped, (ALL, TRUTH, MEETING)),
    "a subscription is acked once it is in effect": (TopicInterest, "change", _in_effect_at_once, (ALL,)),
    "a successor is told who subscribes": (Rebalance, "succeed", lambda _: _nothing, (ALL,)),
    "what a dead worker said is read to the end": (Link, "read_to_the_end", lambda _: _nothing, (TRUTH, ALL)),
    "what was written to a lost connection is in doubt": (
        ClientLine, "may_have", lambda _: _nothing, (TRUTH, "without_resend")
    ),
    "what a silent node has is in doubt": (Calls, "_not_answered", lambda _: _timed_out, (TRUTH,)),
    "a call ends though no node says so": (Calls, "tick", lambda _: _nothing, (EACH, ENDS)),
    "a lost connection is made again": (LineDriver, "_redial", lambda _: _nothing, (EACH, ENDS, STREAMS)),
    "a new connection listens as the last one did": (Exchange, "connected_to_node", _forgetful, (STREAMS,)),
    "a program is told of a gap": (Exchange, "_listening_again", lambda _: _nothing, (STREAMS,)),
}  # fmt: skip
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
    if "SKYWALKER_PURE" not in os.environ:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "SKYWALKER_PURE": "1"})
    missed = 0
    for name in sys.argv[1:] or SAFEGUARDS:
        noticed = noticed_after(name)
        missed += noticed is None
        how = f"not noticed by {SEEDS} seeds" if noticed is None else "noticed by seed {}: {}".format(*noticed)
        print(f"without {name!r}: {how}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
