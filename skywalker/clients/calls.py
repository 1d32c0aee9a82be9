"""The calls of one client and its connections to nodes, one after another and side by side.

Knows no socket, no clock and no thread: `now` is an argument, in seconds on any one clock.
A driver reports what happens to the connections, and does what the lines in `touched` want.
Calls outlive connections: a new main one gets all that have not ended and that no other has, in
the order they were begun, with the time that is left.
"""

from __future__ import annotations

from typing import Any, Final

from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.clients.call import Call
from skywalker.clients.homes import Homes
from skywalker.clients.line import HELLO_S, Line
from skywalker.clients.news import News
from skywalker.clients.no_node import no_node
from skywalker.clients.order import Ordered
from skywalker.clients.routes import DIRECT_AFTER_CALLS
from skywalker.clients.settings import Settings
from skywalker.clients.survey import Survey
from skywalker.clients.view import Greeting, View
from skywalker.clients.way import Dial
from skywalker.errors import RemoteProtocolError, RequestError, TimedOut, Unauthorized, Unreachable
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_PORT
from skywalker.tls.words import SPEAKS_TLS, is_alert

ELSEWHERE_S: Final = 2.0
"""Seconds that a node has to answer the :hello of the main line where others may be asked instead."""

MUTE_TRIES: Final = 2
"""Main connections in a row that nodes end before the :hello is answered, after which the next is not greeted: they may
be original ones. Nothing else may come of a proxy whose node is down, so one that comes after is greeted again."""

_TLS_DOOR: Final = Cause(
    f"this is not the door for clients, usually port {DEFAULT_PORT}, or {SPEAKS_TLS}", SPEAKS_TLS.why
)
"""Of what answers with an alert of TLS: that door of a node has words of its own for it, unless a proxy is there."""


class Calls(Ordered):
    """The calls of one client, and its connections."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.homes = Homes()
        self._home: Address | None = None  # that the main line was dialled at
        self._survey = Survey()
        self._unanswered = 0  # main connections in a row that were lost before their :hello was answered
        self._cause = Cause("no connection yet")
        self._was_connected = False
        self._connected_to = ""  # while there is a main connection
        self.news: list[News] = []  # of the main connection, since the driver last emptied this
        self.given_up = False
        """Whether the last attempt to connect would only be told the same if it were made again."""

    @property
    def state(self) -> str:
        """How it stands with the main connection, in words."""
        return f"connected to {self._connected_to}" if self._connected_to else f"not connected: {self._cause}"

    @property
    def is_connected(self) -> bool:
        """Whether there is a main connection."""
        return bool(self._connected_to)

    def unreachable(self, cause: str = "") -> Unreachable | Unauthorized:
        # What goes on may have begun just now, and says less than what has failed.
        return no_node(self._settings.where, self._cause if self.failures else cause or self._cause)

    def has_answered(self, first: Call) -> bool:
        """Whether the node has answered the first question, be it with an error. Raises what says that we may not."""
        error = first.error
        if error is None or isinstance(error, TimedOut):
            return first.ended and error is None
        if isinstance(error, RequestError) and error.why is None and not self._settings.refuses_us(error):
            return True
        raise error

    # The main connection.

    def connected_to_node(self, now: float, address: Address | None = None) -> None:
        """A new main connection is there: it gets the :hello, and behind that the calls that have not ended."""
        self._home = address
        self._was_connected = True
        self._connected_to = str(address or self._settings.where)
        self.news.append(News(self._connected_to))
        self.homes.settle()
        self.main.takes_calls = True
        self.main.heard(now)
        if self._settings.hello is not None or self._unanswered < MUTE_TRIES:
            self._greet(self.main, now)
        self._issue_what_waits(now)

    def disconnected(self, cause: str, now: float) -> None:
        """The main connection, or an attempt to make one, is lost."""
        self._end_followers(self.main)
        lost, self.main = self.main, Line(self.touched)
        lost.takes_calls = False
        self.failures += 1
        self._cause = _TLS_DOOR if is_alert(lost.tail) else Cause.of(cause)
        was_connected = bool(self._connected_to)
        if was_connected:
            self.news.append(News(self._connected_to, self._cause))
            self._connected_to = ""
        self._avoid_home()
        if lost.hello is not None and not lost.hello.ended:
            if not lost.hang_up:  # by the node, as one may that knows no :hello
                self._unanswered += 1
            if self._settings.hello is None and self._unanswered >= MUTE_TRIES:
                self._adopt(None, now)
        elif was_connected and lost.hello is None:
            # If it never spoke, it was not for the :hello that those before it ended. If it did, the next one may be of
            # a node that knows :hello, and is greeted once.
            self._unanswered = MUTE_TRIES - 1 if lost.has_spoken else 0
        self.routes.main_changed(self.main, now)
        self._strand(lost)
        is_about_us = self._cause.why is not None and self._cause.why.is_about_us
        # Whom we trusted before may be renewing its certificate.
        self.given_up = self._cause.lasts and (is_about_us or not self._was_connected)
        if self.given_up:
            self.close(self.unreachable())
        self._issue_what_waits(now)

    def _avoid_home(self) -> None:
        self.homes.avoid(self._home)
        self.homes.avoid(self.routes.home_address())

    # Direct connections.

    def dial(self, now: float) -> Dial | None:
        """Return a direct connection that is wanted now, if any; then opened() or not_opened() must follow."""
        if self._last_id < DIRECT_AFTER_CALLS or not self.main.takes_calls:
            return None
        if self._version is None and self.main.hello is not None:
            return None  # it will soon be known what there is
        return self.routes.dial(now)

    def opened(self, wanted: Dial, now: float) -> Line:
        """A connection that dial() wanted is there: its line."""
        line = Line(self.touched)
        self.routes.opened(wanted, line)
        self._greet(line, now)
        return line

    def not_opened(self, wanted: Dial, now: float) -> None:
        """A connection that dial() wanted cannot be had."""
        self.routes.failed(wanted.node, now)

    def lost(self, line: Line, now: float) -> None:
        """A direct connection is lost: its calls go over others."""
        self._end_followers(line)
        self.routes.lost(line, now)
        self._left.pop(line, None)
        line.takes_calls = False
        self._strand(line)
        self._issue_what_waits(now)

    # What nodes say of themselves.

    def _greet(self, line: Line, now: float) -> None:
        line.hello = Call()
        options = {**(self._settings.hello or {}), "ring": True}
        elsewhere = self.homes.has_members or not self._settings.is_plain
        patience = ELSEWHERE_S if line is self.main and elsewhere else HELLO_S
        question = self._requests.encode(self._last_id + 1, "hello", (options,), 0)
        self._begin_own(line.hello, "hello", question, patience, now, line)

    def _not_known(self, hello: Call, now: float) -> None:
        self._end(hello)
        self._greeted(self.main, hello, None, now)
        self._unanswered = MUTE_TRIES

    def _greeted(self, line: Line, call: Call, greeting: Any, now: float) -> None:
        """The node answered a :hello; one that does not know the method may have answered anything."""
        if isinstance(greeting, dict):
            line.greeting = greeting
            if call is line.hello:
                line.acks = self._settings.acks
        if line is self.main:
            self._main_greeted(Greeting.parse(greeting), call is line.hello, now)
            self._issue_what_waits(now)  # what only some nodes know
        elif line not in self.routes.candidates:
            return
        elif self._version is None:
            line.end("its only purpose was to see whether the node knows :hello")
            if self.routes.scouted(line, greeting, now) and self.main.takes_calls and self.main.hello is None:
                self._greet(self.main, now)
        else:
            place = self.routes.greeted(line, greeting, now)
            if place is None:
                line.end("its worker has been met")
            elif not self.main.takes_calls or self._survey.call is not None:
                self.routes.release(line)
                line.end("the main connection is lost, or the ring changes")
            else:
                self._join(line, place, now)

    def _main_greeted(self, greeting: Greeting | None, is_ours: bool, now: float) -> None:
        if not is_ours:
            if greeting is not None and self.main.hello is None and self.main.takes_calls:
                self._greet(self.main, now)  # it is known now that the node knows :hello
            return
        self._unanswered = 0
        if greeting is None:
            self._adopt(None, now)
            return
        self.main.version = greeting.version
        if greeting.version == "":
            self._adopt(View.alone(greeting), now)
        self.routes.main_greeted(greeting.place, now)
        if greeting.version not in ("", self._version):
            self._ask_who_is_there(now)

    def _pushed(self, line: Line, version: str, leaving: bool, now: float) -> None:
        """A node says which ring it uses from now on, or that it is going away."""
        line.version = version
        if leaving:
            if line is self.main:
                self._avoid_home()
            if line.leaving is None and line.takes_calls:
                self._leave(line)
        elif version == self._version:
            return
        elif line is not self.main:
            # If the main line's node is the one that the ring has lost, it can't tell us.
            if self.main.takes_calls and self._survey.call is None:
                self._check(self.main, ELSEWHERE_S, now)
        elif self._survey.call is None:
            self._ask_who_is_there(now)
        else:
            self._survey.told_of(version)

    # Who is there.

    def _ask_who_is_there(self, now: float) -> None:
        self._release_unjoined()
        self._survey.begin()
        self._ask_page((), now)
        self._issue_what_waits(now)

    def _ask_page(self, question: tuple[str, ...], now: float) -> None:
        call = self._survey.call = Call()
        frame = self._requests.encode(self._last_id + 1, "nodes", question, 0)
        self._begin_own(call, "nodes", frame, DEFAULT_CONTROL_TIMEOUT_S, now, self.main)

    def _told(self, call: Call, answer: Any, now: float) -> None:
        """A question for the nodes was answered, or refused, or not answered in its time."""
        if call is not self._survey.call:
            return
        self._survey.call = None
        if isinstance(call.error, TimedOut):
            self._ask_who_is_there(now)
            return
        try:
            self._survey.add(answer)
        except RemoteProtocolError:
            # The node says which ring it uses and not what that is: so we use what we know, until it says so again.
            greeting = Greeting.parse(self.main.greeting)
            if greeting is not None and not self.routes.has_node(greeting.node):
                self._adopt(View.alone(greeting), now)
            return
        if self._survey.question is not None:
            self._ask_page(self._survey.question, now)
            return
        snapshot = self._survey.snapshot()
        if snapshot is not None:
            roams = len(snapshot) > 1 and not self._settings.is_local
            self.homes.learn([member.address for member in snapshot] if roams else [])
            self._adopt(View.of(snapshot, self._survey.version), now)
        if self._survey.is_outdated:
            self._ask_who_is_there(now)

    def _strand(self, line: Line) -> None:
        super()._strand(line)
        if self._survey.call is not None and self._survey.call.ended:
            self._survey.call = None

    def _is_ours(self, call: Call, line: Line) -> bool:
        return call is self._survey.call or super()._is_ours(call, line)
