"""The calls of one client and its connections to a node, one after another and side by side.

Knows no socket, no clock and no thread: `now` is an argument, in seconds on any one clock.
A shell reports what happens to the connections, and does what the lines in `touched` want.
Calls outlive connections: a new main one gets all that have not ended and that no other has, in
the order they were begun, with the time that is left.

Calls on one topic take effect in the order made, also when a direct line takes over from the main
one. First a *barrier* is answered: a question about a topic of the new line's worker, asked over the
main line after all earlier calls. Until then new calls for that worker are kept back.
"""

from __future__ import annotations

from typing import Any, Final

from skywalker.clients.call import GRACE_S, Call
from skywalker.clients.exchange import Exchange
from skywalker.clients.line import HELLO_S, Line
from skywalker.clients.requests import MEETINGS, Kind, renewed, topic_in
from skywalker.clients.routes import DIRECT_AFTER_CALLS, Dial, Routes, barrier_topic
from skywalker.clients.settings import Settings
from skywalker.errors import Unreachable
from skywalker.wire import values

BARRIER_S: Final = 0.4
"""Seconds for a barrier, which takes less than a thousandth of one unless a worker hangs: a call that it keeps back
has more time than that, whatever its timeout."""

TOPICAL: Final[frozenset[Kind]] = MEETINGS | {"topic"}
"""The calls about a topic, which is their first argument."""


class Calls(Exchange):
    """The calls of one client, and its connections to the node."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.routes = Routes(self.main, settings.direct)
        self._address = str(settings.address)
        self._cause = "no connection yet"

    def unreachable(self) -> Unreachable:
        return Unreachable(f"no node reachable at {self._address}: {self._cause}")

    def _lines(self) -> list[Line]:
        return [self.main, *self.routes.direct().values()]

    def _followers(self, line: Line) -> list[Line]:
        if line is not self.main:
            return []
        # From before the direct line took over; if one is waiting to take over, the barrier is among them.
        owners = {call.owner for call in self._calls.values() if call.line is line}
        return [
            direct for worker, direct in self.routes.direct().items() if worker in owners and direct.leaving is None
        ]

    def _line_for(self, call: Call, arguments: tuple[Any, ...]) -> Line:
        if not self.routes.known:
            return self.main
        if call.kind in TOPICAL:
            call.owner = self.routes.owner(values.pack(arguments[0]))
        return self.routes.line(call.owner)

    # The main connection.

    def connected_to_node(self, now: float) -> None:
        """A new main connection is there: it gets the :hello, if any, and the calls that have not ended."""
        self.main.takes_calls = True
        self.main.heard(now)
        if self._settings.hello is not None or self.routes.known:
            self._greet(self.main, now)
        self._issue_what_waits(now)

    def disconnected(self, cause: str, now: float) -> None:
        """The main connection, or an attempt to make one, is lost."""
        for line in self._followers(self.main):
            self.routes.release(line)
            line.end("the main connection is lost, which has older calls for the same worker")
        lost, self.main = self.main, Line(self.touched)
        self.failures += 1
        self._cause = cause
        if self._settings.hello is None and lost.hello is not None and not lost.hello.ended:
            self.routes.forget()
        self.routes.main_changed(self.main, now)
        self._strand(lost)

    # Direct connections.

    def dial(self, now: float) -> Dial | None:
        """Return the direct connection that is wanted now, if any; then opened() or not_opened() must follow."""
        if self._last_id < DIRECT_AFTER_CALLS or not self.main.takes_calls:
            return None
        return self.routes.dial(now)

    def opened(self, now: float) -> Line:
        """The connection that dial() wanted is there: its line."""
        line = self.routes.candidate = Line(self.touched)
        self._greet(line, now)
        return line

    def not_opened(self, now: float) -> None:
        """The connection that dial() wanted cannot be had."""
        self.routes.failed(now)

    def lost(self, line: Line, now: float) -> None:
        """A direct connection is lost: its calls go over the main one."""
        self.routes.lost(line, now)
        line.takes_calls = False
        self._strand(line)
        self._issue_what_waits(now)

    def _join(self, line: Line, worker: int, now: float) -> None:
        """Let a line take the calls for its worker, once all earlier ones have got there."""
        barrier = Call()
        barrier.joins, barrier.owner = line, worker
        self._start(barrier, "topic", (barrier_topic(self.routes, worker),), BARRIER_S - GRACE_S, now)
        self.main.put(barrier, now)

    def _crossed(self, line: Line, answered: bool, now: float) -> None:
        """The barrier has ended."""
        if line.hang_up:
            return
        if answered:
            line.takes_calls = True
        else:
            self.routes.lost(line, now)
            line.end("the worker cannot be reached by way of the main connection")
        self._issue_what_waits(now)

    # What lines get.

    def _greet(self, line: Line, now: float) -> None:
        line.hello = Call()
        self._start(line.hello, "hello", (dict(self._settings.hello or {}),), HELLO_S, now)
        line.put(line.hello, now)

    def _issue_what_waits(self, now: float) -> None:
        """Issue the calls that no line has, in the order they were begun, where there is one that takes them."""
        for call in self._calls.values():
            if call.line is None:
                line = self.routes.line(call.owner)
                if line.takes_calls:
                    if call.kind in MEETINGS:
                        call.frame = renewed(call.frame, max(0.0, call.deadline - now))
                    line.put(call, now)

    def _strand(self, line: Line) -> None:
        """Take every call off a line that is lost."""
        for call in [*self._calls.values()]:
            if call.line is line:
                line.take_off(call)
                # What was to be cancelled went with the connection, and is not issued again.
                if call.cancelling:
                    self._end_cancelled(call)
                elif call.kind == "cancel":
                    self._end(call, True)
                elif call is line.hello or call.joins is not None:
                    self._drop(call)
                    call.end()

    def _greeted(self, line: Line, call: Call, greeting: Any, now: float) -> None:
        """The node answered a :hello; one that does not know the method may have answered anything."""
        if isinstance(greeting, dict):
            line.greeting = greeting
            if call is line.hello:
                line.acks = self._settings.acks
        if line is self.main:
            for useless in self.routes.main_greeted(greeting, now):
                useless.end("it is to another node than the main connection")
            self._find_owners()
        elif line is not self.routes.candidate:
            return
        elif not self.routes.known:
            line.end("its only purpose was to see whether the node knows :hello")
            if self.routes.scouted(greeting, now) and self.main.takes_calls and self.main.hello is None:
                self._greet(self.main, now)
        else:
            worker = self.routes.greeted(line, greeting, now)
            if worker is None:
                line.end("its worker has been met")
            elif not self.main.takes_calls:
                self.routes.release(line)
                line.end("the main connection is lost")
            else:
                self._join(line, worker, now)

    def _find_owners(self) -> None:
        for call in self._calls.values():
            if call.kind in TOPICAL and call.joins is None:
                call.owner = self.routes.owner(topic_in(call.frame)) if self.routes.known else None
