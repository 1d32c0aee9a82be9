"""Safeguards of the product, each of which can be switched off: a run that does not notice would not test it.

    python -m tests.simulation.ablations                 # a table of all of them
    python -m tests.simulation.ablations "opening barrier"

It takes the modules plain, since what is compiled cannot be changed.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from skywalker.clients.aio.line_driver import LineDriver
from skywalker.clients.call import Call
from skywalker.clients.calls import Calls
from skywalker.clients.line import Line as ClientLine
from skywalker.errors import RequestError, TimedOut
from skywalker.pubsub.exchange import Exchange
from tests.simulation.failure import failure_of
from tests.simulation.plan import plan
from workers.calls.call import ClientCall, NodeCall
from workers.calls.interests import TopicInterest
from workers.calls.rebalance import Rebalance
from workers.doors.connection import Connection
from workers.doors.pubsub import PubSub
from workers.engine.loop import READ
from workers.mesh.kin import Kin
from workers.mesh.link import Link
from workers.mesh.outbound import Outbound
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.succession import Succession
from workers.stats.hands import Hand

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


def _answered_at_once(self: Kin, life: bytes, done: Callable[[], None]) -> None:
    done()


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
MEETING: Final = "who_waits_meets"
ORDER: Final = "order_holds"
ONE: Final = "each_call_has_one_answer"
ENDS: Final = "calls_of_a_library_end_in_time"
STREAMS: Final = "streams_yield_what_came"

DEATHS: Final = ("kill", "kill in a step", "kill at a point")
STOPS: Final = ("stop", "stop at a point", "suspend")
RELOADS: Final = ("reload", "stop at a point")
SLOW: Final = ("slow client",)
LINKS: Final = ("link reset", "link half open", "part one way", "kill")


class Safeguard(NamedTuple):
    """One method that keeps a promise, and what stands in its place when it is switched off."""

    where: type
    method: str
    replaced: Callable[[Any], Any]
    rules: tuple[str, ...]
    """That notice."""
    kinds: tuple[str, ...]
    """Faults against which it guards; all kinds, if none is named."""


SAFEGUARDS: Final[dict[str, Safeguard]] = {
    "what was written to a lost connection is in doubt": Safeguard(
        ClientLine, "may_have", lambda _: _nothing, (TRUTH, "without_resend"), DEATHS
    ),
    "what a silent node has is in doubt": Safeguard(
        Calls, "_not_answered", lambda _: _timed_out, (TRUTH,), ("stop",)
    ),
    "a call ends though no node says so": Safeguard(Calls, "tick", lambda _: _nothing, (ONE, ENDS), ("stop",)),
    "a lost connection is made again": Safeguard(LineDriver, "_redial", lambda _: _nothing, (ONE, ENDS, STREAMS), SLOW),
    "a new connection listens as the last one did": Safeguard(
        Exchange, "connected_to_node", _forgetful, (STREAMS,), RELOADS
    ),
    "a program is told of a gap": Safeguard(Exchange, "_listening_again", lambda _: _nothing, (STREAMS,), RELOADS),
    "a value is written before its sender is told true": Safeguard(
        Connection, "flush", _confirmed_first, (TRUTH,), (*STOPS, *SLOW)
    ),
    "a value is asked back at the deadline": Safeguard(
        NodeCall, "ask_back", lambda _: _missed_at_once, (TRUTH,), STOPS
    ),
    "without a last word it is not known": Safeguard(ClientCall, "leave", lambda _: _over_at_once, (TRUTH,), STOPS),
    "opening barrier": Safeguard(ReadinessBarrier, "has_all", lambda _: _open_at_once, (ALL,), DEATHS),
    "all is heard that came while a worker opened": Safeguard(Link, "attend", _some_heard, (TRUTH, ALL), RELOADS),
    "a predecessor is heard before its heir": Safeguard(
        Outbound, "comes_before", lambda _: _nothing, (ALL, ORDER, ONCE), RELOADS
    ),
    "a successor is asked after its predecessor has given all back": Safeguard(
        Succession, "ask", lambda _: Succession.end, (ALL, ORDER), RELOADS
    ),
    "a publisher waits while its topics move": Safeguard(
        PubSub, "hold_back", lambda _: _nothing, (ALL, ORDER), RELOADS
    ),
    "what is published is held back while topics move": Safeguard(
        Rebalance, "hold_back", lambda _: _nothing, (ALL, ORDER), RELOADS
    ),
    "an ack is written after what it is for": Safeguard(
        PubSub, "_handed_out", lambda _: _acked_at_once, (ALL,), DEATHS
    ),
    "what waited at a dead worker is issued again": Safeguard(
        Outbound, "close", lambda _: _dropped, (ALL, TRUTH, MEETING, ONE), DEATHS
    ),
    "a subscription is acked once it is in effect": Safeguard(
        TopicInterest, "change", _in_effect_at_once, (ALL,), ()
    ),
    "a successor is told who subscribes": Safeguard(Rebalance, "succeed", lambda _: _nothing, (ALL,), RELOADS),
    "what a dead worker said is read to the end": Safeguard(
        Link, "read_to_the_end", lambda _: _nothing, (TRUTH, ALL), DEATHS
    ),
    "what a worker hands out is written where it outlives it": Safeguard(
        Hand, "add", lambda _: _nothing, (TRUTH, ONCE), DEATHS
    ),
    "what a dead worker was handing out is read": Safeguard(
        Kin, "read_hand", lambda _: _nothing, (TRUTH, ONCE), DEATHS
    ),
    "who takes a value tells the home of its sender, too": Safeguard(
        Outbound, "tell_home", lambda _: _nothing, (TRUTH, ONCE), DEATHS
    ),
    "others tell what they know of a dead worker first": Safeguard(
        Kin, "answer", lambda _: _answered_at_once, (TRUTH, ONCE), DEATHS
    ),
    "who is doubtful stays so": Safeguard(ClientCall, "doubt", lambda _: _nothing, (TRUTH,), (*DEATHS, *LINKS)),
}  # fmt: skip
"""By what each does."""


class Noticed(NamedTuple):
    """After how many seeds it was noticed that a safeguard is off, and what was said; how many are 0 if it was not."""

    seeds: int
    line: str


def noticed(name: str, seeds: int = SEEDS) -> Noticed:
    """Try so many seeds without a safeguard, at most."""
    off = SAFEGUARDS[name]
    as_ever = getattr(off.where, off.method)
    setattr(off.where, off.method, off.replaced(as_ever))
    try:
        for seed in range(seeds):
            _, failure = failure_of(plan(seed, off.kinds))
            for line in failure.lines if failure is not None else ():
                if line.startswith((*off.rules, "AssertionError")):
                    return Noticed(seed + 1, line)
    finally:
        setattr(off.where, off.method, as_ever)
    return Noticed(0, f"not noticed by {seeds} seeds")


def main() -> int:
    """Try those that are named, or all, on all cores; return 1 if one is not noticed."""
    if "SKYWALKER_PURE" not in os.environ:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "SKYWALKER_PURE": "1"})
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.ablations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="safeguard")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="that are tried at most")
    options = parser.parse_args()
    names = options.names or [*SAFEGUARDS]
    width, missed = max(map(len, names)), 0
    print(f"{'without this safeguard':{width}}  seeds  what is noticed")
    with multiprocessing.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        for name, (seeds, line) in zip(
            names, pool.imap(functools.partial(noticed, seeds=options.seeds), names, chunksize=1), strict=True
        ):
            missed += not seeds
            print(f"{name:{width}}  {seeds or '-':>5}  {line}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
