"""The calls of one client and its connections to nodes, one after another and side by side.

Knows no socket, no clock and no thread: `now` is an argument, in seconds on any one clock.
A driver reports what happens to the connections, and does what the lines in `touched` want.
Calls outlive connections: a new main one gets all that have not ended and that no other has, in
the order they were begun, with the time that is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.clients.call import GRACE_S, LOST_CONNECTION, Call
from skywalker.clients.core import Dial
from skywalker.clients.dialogue import Dialogue
from skywalker.clients.line import HELLO_S, Line, Stay
from skywalker.clients.news import News
from skywalker.clients.requests import MEETINGS, TIMED, Kind, renewed, topic_in
from skywalker.clients.routes import DIRECT_AFTER_CALLS, Greeting, Routes, View
from skywalker.clients.settings import Settings
from skywalker.clients.survey import Survey
from skywalker.errors import RemoteProtocolError, RequestError, TimedOut
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_PORT
from skywalker.members import Place
from skywalker.tls.words import SPEAKS_TLS, is_alert
from skywalker.wire import values
from skywalker.wire.junction import TOPIC, frame


class Stays:
    """Topics whose younger calls follow older ones, so that none is overtaken.

    Those on a line that is left are followed until it is closed. Where the owner changed while they were under way, the
    node that has the older calls moves them to the new owner, and forwards the younger ones after them. Once it is
    known to use the new ring it is asked about the topic, and with its answer, which comes after all that, the topic is
    free to go elsewhere. Otherwise it is when its calls have ended.
    """

    def __init__(self) -> None:
        self.by_topic: dict[bytes, Stay] = {}

    def replace(self, lines: dict[bytes, Line], calls: Iterable[tuple[Call, bytes]]) -> None:
        """Bind these topics and no others; `calls` are all that are about a topic, each with its own."""
        self.by_topic = {topic: Stay(topic, line) for topic, line in lines.items()}
        for call, topic in calls:
            call.stay = None
            if topic in lines:
                self.add(call, self.by_topic[topic])

    def add(self, call: Call, stay: Stay) -> None:
        """Count a call on a topic that is bound."""
        call.stay = stay
        stay.calls += 1

    def bind(self, call: Call, topic: bytes, line: Line) -> None:
        """Bind the topic of a call to the line that has it."""
        stay = self.by_topic.setdefault(topic, Stay(topic, line))
        stay.line = line
        if call.stay is None:
            self.add(call, stay)

    def ended(self, call: Call) -> None:
        """A call that was counted has ended."""
        stay, call.stay = call.stay, None
        if stay is not None:
            stay.calls -= 1
            if not stay.calls:
                self.by_topic.pop(stay.topic, None)

    def lost(self, line: Line, calls: Iterable[Call]) -> None:
        """A line is lost, and its calls were taken off: what it bound follows older calls elsewhere, or is free."""
        lost = {stay: None for stay in self.by_topic.values() if stay.line is line}
        if not lost:
            return
        calls = [call for call in calls if call.stay in lost]
        for call in calls:
            if call.line is not None and call.stay is not None:
                call.stay.line = call.line
        for stay in lost:
            stay.asked = stay.is_kept_back = False
            if stay.line is line:
                self.release(stay, calls)

    def release(self, stay: Stay, calls: Iterable[Call]) -> None:
        """Let a topic go where it belongs."""
        del self.by_topic[stay.topic]
        for call in calls:
            if call.stay is stay:
                call.stay = None


BARRIER_S: Final = 0.4
"""Seconds for a barrier, which takes less than a thousandth of one unless a worker hangs: a call that it keeps back
has more time than that, whatever its timeout."""

GONE_S: Final = 0.5
"""Seconds in which a node that left the ring has to show that it lives, so that it may give its calls back."""

TOPICAL: Final[frozenset[Kind]] = MEETINGS | {"topic"}
"""The calls about a topic, which is their first argument."""

ELSEWHERE_S: Final = 2.0
"""Seconds that a node has to answer the :hello of the main line where others may be asked instead."""

MUTE_TRIES: Final = 2
"""Main connections in a row that nodes end before the :hello is answered, after which the next is not greeted: they may
be original ones. Nothing else may come of a proxy whose node is down, so one that comes after is greeted again."""

_TLS_DOOR: Final = Cause(
    f"this is not the door for clients, usually port {DEFAULT_PORT}, or {SPEAKS_TLS}", SPEAKS_TLS.why
)
"""Of what answers with an alert of TLS: that door of a node has words of its own for it, unless a proxy is there."""


class Calls(Dialogue):
    """The calls of one client: those on one topic take effect in the order made, whatever becomes of lines.

    When a direct line takes over from the main one, first a *barrier* is answered: a question about a topic of the new
    line's place, asked over the main line after all earlier calls. Until then new calls for that place are kept back.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.routes = Routes(self.main, settings.direct)
        self._version: str | None = None  # of the ring that is used here
        self._stays = Stays()
        self._left: dict[Line, None] = {}  # lines to nodes that are not known any more, and that give calls back
        self._nowhere = Line(self.touched)  # of calls that are kept back
        self._survey = Survey()
        self._unanswered = 0  # main connections in a row that were lost before their :hello was answered

    def _lines(self) -> list[Line]:
        return [self.main, *self.routes.direct().values(), *self._left]

    def _line_for(self, call: Call, arguments: tuple[Any, ...], now: float) -> Line:
        if call.kind == "will":
            return self._line_of(call)
        routes, stays = self.routes, self._stays.by_topic
        if not (routes.known or stays) or call.kind not in TOPICAL:
            return self.main
        topic = values.pack(arguments[0])
        owner = call.owner = routes.owner(topic)
        if stays and (stay := stays.get(topic)) is not None:
            self._stays.add(call, stay)
            self._ask_to_go(stay, now)
            return self._line_of(call)
        line = routes.line(owner)
        if line is self.main:
            routes.called(owner, topic, now)
        return line

    def is_kept_back(self, call: Call) -> bool:
        return call.line is None and not call.ended and call.kind in TOPICAL and self.main.takes_calls

    def _line_of(self, call: Call) -> Line:
        if call.kind == "will":
            # One that the node does not know waits here, and does no harm.
            return self.main if self.main.knows("will") else self._nowhere
        stay = call.stay
        if stay is None:
            return self.routes.line(call.owner)
        return self._nowhere if stay.is_kept_back else stay.line

    def _issue_what_waits(self, now: float) -> None:
        """Issue the calls that no line has, in the order they were begun, where there is one that takes them."""
        for call in self._calls.values():
            if call.line is None and call.expires > now:  # else tick() ends it, and no node is to know of it
                line = self._line_of(call)
                if line.takes_calls:
                    if call.kind in TIMED:
                        call.frame = renewed(call.frame, max(0.0, call.deadline - now))
                    line.put(call, now)

    # What no caller asks.

    def _begin_own(self, call: Call, kind: Kind, frame: bytes, timeout: float, now: float, line: Line) -> None:
        """Start a call that no caller waits for, whose frame bears the next id, over this line."""
        self._enter(call, kind, frame, timeout, now)
        self.due_at = min(self.due_at, call.expires)
        line.put(call, now)

    def _check(self, line: Line, seconds: float, now: float) -> None:
        """Give a line up unless its node shows within so many seconds that it lives."""
        if line.check is None or line.check.ended:
            line.check = Call()
            question = self._requests.encode(self._last_id + 1, "ping", (), 0)
            self._begin_own(line.check, "ping", question, seconds - GRACE_S, now, line)

    # When one line takes over from another.

    def _join(self, line: Line, place: Place, now: float) -> None:
        """Let a line take the calls for its place, once all earlier ones have got there."""
        topic = self.routes.barrier_topic(place)
        if topic is None:
            line.end("it is for so few topics that it is not worth having")
            return
        barrier = Call()
        barrier.joins, barrier.owner = line, place
        self._ask_about(topic, barrier, self.main, now)

    def _ask_to_go(self, stay: Stay, now: float) -> None:
        """Ask the node of a topic that moved to let it go, once that node is known to have moved it."""
        line = stay.line
        if not stay.asked and line.takes_calls and line.version == self._version:
            stay.asked = stay.is_kept_back = True
            barrier = Call()
            barrier.joins = stay
            self._ask_about(stay.topic, barrier, line, now)

    def _ask_about(self, topic: bytes, barrier: Call, line: Line, now: float) -> None:
        question = frame(TOPIC, values.pack(self._last_id + 1), topic)
        self._begin_own(barrier, "topic", question, BARRIER_S - GRACE_S, now, line)

    def _crossed(self, joins: Line | Stay, answered: bool, now: float) -> None:
        """A barrier has ended."""
        if isinstance(joins, Stay):
            if self._stays.by_topic.get(joins.topic) is not joins:
                return
            joins.is_kept_back = False
            if answered and joins.line.takes_calls:  # else its older calls are on their way back
                self._stays.release(joins, self._calls.values())
        elif joins.hang_up:
            return
        elif answered:
            joins.takes_calls = True
        else:
            self.routes.lost(joins, now)
            joins.end("its worker cannot be reached by way of the main connection")
        self._issue_what_waits(now)

    def _unbind(self, call: Call) -> None:
        self._stays.ended(call)

    # When the ring changes.

    def _adopt(self, view: View | None, now: float) -> None:
        """Go by another view of who is there, or by none."""
        self._version = None if view is None else view.version
        about = []
        for call in self._calls.values():
            if _is_topical(call):
                line = call.line or self._line_of(call)
                # A call that its node gave back is still bound to those that the node has yet to give back.
                holder = line if call.line is not None or line.leaving is not None else None
                about.append((call, topic_in(call.frame), holder))
        gone = self.routes.adopt(view, now)
        bound = {}
        for call, topic, holder in about:
            owner = self.routes.owner(topic)
            if holder is not None and (call.stay is not None or (call.owner is not None and call.owner != owner)):
                bound[topic] = holder
            call.owner = owner
        self._stays.replace(bound, ((call, topic) for call, topic, _ in about))
        for line in gone:
            self._part(line, now)
        self._issue_what_waits(now)

    def _part(self, line: Line, now: float) -> None:
        """Leave a line whose node is not known any more: it drains, and gives its calls back, or it is dead."""
        if line.takes_calls:
            self._leave(line, now)
        if line.leaving is None:
            line.end("its node is not known any more")
        elif not line.hang_up:
            self._left[line] = None
            self._check(line, GONE_S, now)

    def _release_unjoined(self) -> None:
        """End the lines whose barrier is under way, since the ring changes, or the main line, over which it goes."""
        for line in [*self.routes.direct().values()]:
            if not line.takes_calls and line.leaving is None:
                self.routes.release(line)
                line.end("it was not joined when the ring or the main connection changed")

    # When lines are left or lost.

    def _leave(self, line: Line, now: float) -> None:
        if line is self.main:
            self._release_unjoined()
        self._bind(line)
        self._take_back(line)
        self._leave_followers(line, now)

    def _bind(self, line: Line) -> None:
        """Bind the topics of calls on a line that would go over another: younger ones may be there before these."""
        calls = [call for call in self._calls.values() if _is_topical(call)]
        topics = {topic_in(call.frame) for call in calls if call.line is line and self._line_of(call) is not line}
        for call in calls if topics else ():
            topic = topic_in(call.frame)
            if topic in topics:
                self._stays.bind(call, topic, line)

    def _followers(self, line: Line) -> list[Line]:
        """Return the lines that have younger calls on topics on which this one has some, and are not left already."""
        if line is self.main and not self.routes.direct():
            return []
        older: dict[bytes, int] = {}
        for call in self._calls.values():
            if call.line is line and _is_topical(call):
                older.setdefault(topic_in(call.frame), call.id)
        followers: dict[Line, None] = {}
        for call in self._calls.values():
            if call.line is None or call.line is line or not _is_topical(call):
                continue
            if call.id > older.get(topic_in(call.frame), math.inf):
                followers[call.line] = None
        return [each for each in followers if each.leaving is None and not each.hang_up]

    def _leave_followers(self, line: Line, now: float) -> None:
        """Leave the lines whose calls are to stay behind those of one that is left or lost; they lose none of them."""
        for follower in self._followers(line):
            if follower.leaving is None:  # as it is by now if it also follows another of these
                follower.follows = True
                self._leave(follower, now)
                if not follower.hang_up:
                    self._check(follower, GONE_S, now)

    def _strand(self, line: Line) -> None:
        """Take every call off a line that is lost."""
        for call in [*self._calls.values()]:
            if call.line is line and not call.ended:
                line.take_off(call)
                if call.kind == "send" and line.may_have(call):
                    call.doubt = LOST_CONNECTION
                # What was to be cancelled went with the connection, and is not issued again.
                if call.cancellers:
                    self._end_cancelled(call)
                elif call.doubt and not self._settings.resends:
                    self._end(call, error=call.unknown())
                elif self._is_ours(call, line):
                    self._drop(call)
                    call.end()
        self._stays.lost(line, self._calls.values())
        if self._survey.call is not None and self._survey.call.ended:
            self._survey.call = None

    def _is_ours(self, call: Call, line: Line) -> bool:
        """Whether a call is no caller's but about the line that it went over, and so ends with it."""
        return call in (line.hello, line.check, self._survey.call) or call.joins is not None

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
        self.is_connected = True
        self.address = str(address or self._settings.where)
        self.news.append(News(self.address))
        self.homes.settle()
        self.main.takes_calls = True
        self.main.heard(now)
        if self._settings.hello is not None or self._unanswered < MUTE_TRIES:
            self._greet(self.main, now)
        self._issue_what_waits(now)

    def disconnected(self, cause: str, now: float) -> None:
        """The main connection, or an attempt to make one, is lost."""
        self._release_unjoined()
        self._leave_followers(self.main, now)
        lost, self.main = self.main, Line(self.touched)
        lost.takes_calls = False
        self.failures += 1
        self._cause = _TLS_DOOR if is_alert(lost.tail) else Cause.of(cause)
        was_connected, self.is_connected = self.is_connected, False
        if was_connected:
            self.news.append(News(self.address, self._cause))
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
        self.given_up = self._cause.lasts and (is_about_us or not self.address)
        if self.given_up:
            self.close(self.unreachable())
        self._issue_what_waits(now)

    def _avoid_home(self) -> None:
        self.homes.avoid(self._home)
        self.homes.avoid(self.routes.home_address())

    # Direct connections.

    @property
    def dial_at(self) -> float:
        return self.routes.dial_at

    def dial(self, now: float) -> Dial | None:
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
        self.routes.failed(wanted.node, now)

    def lost(self, line: Line, now: float) -> None:
        """A direct connection is lost: its calls go over others."""
        self._leave_followers(line, now)
        if line.follows:
            self.routes.release(line)  # it did nothing wrong
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
                self._leave(line, now)
        elif version == self._version:
            return
        elif line is not self.main:
            # If the main line's node is the one that the ring has lost, it can't tell us.
            if self.main.takes_calls and self._survey.call is None:
                self._check(self.main, ELSEWHERE_S, now)
        elif self._survey.call is None:
            self._ask_who_is_there(now)
        else:
            self._survey.latest = version

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
            self._survey.pages.add(answer)
        except RemoteProtocolError:
            # The node says which ring it uses and not what that is: so we use what we know, until it says so again.
            greeting = Greeting.parse(self.main.greeting)
            if greeting is not None and not self.routes.has_node(greeting.node):
                self._adopt(View.alone(greeting), now)
            return
        if self._survey.pages.question is not None:
            self._ask_page(self._survey.pages.question, now)
            return
        snapshot = self._survey.snapshot()
        if snapshot is not None:
            roams = len(snapshot) > 1 and not self._settings.is_local
            self.homes.learn([member.address for member in snapshot] if roams else [])
            self._adopt(View.of(snapshot, self._survey.pages.version), now)
        if self._survey.is_outdated:
            self._ask_who_is_there(now)


def _is_topical(call: Call) -> bool:
    """Whether a call is one of the caller's about a topic."""
    return call.kind in TOPICAL and call.joins is None
