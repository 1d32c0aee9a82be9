"""Which line a call is put on, so that calls on one topic take effect in the order made, whatever becomes of lines.

When a direct line takes over from the main one, first a *barrier* is answered: a question about a
topic of the new line's place, asked over the main line after all earlier calls. Until then new
calls for that place are kept back. What a change of the ring does to the order is in `stays`.
"""

from __future__ import annotations

import math
from typing import Any, Final

from skywalker.clients.call import GRACE_S, Call
from skywalker.clients.exchange import Exchange
from skywalker.clients.line import Line, Stay
from skywalker.clients.requests import MEETINGS, TIMED, Kind, renewed, topic_in
from skywalker.clients.routes import Routes
from skywalker.clients.settings import Settings
from skywalker.clients.stays import Stays
from skywalker.clients.view import View
from skywalker.members import Place
from skywalker.wire import values
from skywalker.wire.junction import TOPIC, frame

BARRIER_S: Final = 0.4
"""Seconds for a barrier, which takes less than a thousandth of one unless a worker hangs: a call that it keeps back
has more time than that, whatever its timeout."""

GONE_S: Final = 0.5
"""Seconds in which a node that left the ring has to show that it lives, so that it may give its calls back."""

TOPICAL: Final[frozenset[Kind]] = MEETINGS | {"topic"}
"""The calls about a topic, which is their first argument."""


class Ordered(Exchange):
    """The calls of one client, in order on each topic over any number of lines."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.routes = Routes(self.main, settings.direct)
        self._version: str | None = None  # of the ring that is used here
        self._stays = Stays()
        self._left: dict[Line, None] = {}  # lines to nodes that are not known any more, and that give calls back
        self._nowhere = Line(self.touched)  # of calls that are kept back

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
        """Whether a call could go to a node, and only waits for another line to take over or to be left."""
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
            if call.line is None:
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
            self._leave(line)
        if line.leaving is None:
            line.end("its node is not known any more")
        elif not line.hang_up:
            self._left[line] = None
            self._check(line, GONE_S, now)

    def _release_unjoined(self) -> None:
        """End the lines whose barrier is under way, since the ring changes, and the way that it goes."""
        for line in [*self.routes.direct().values()]:
            if not line.takes_calls and line.leaving is None:
                self.routes.release(line)
                line.end("the ring changed before it was joined")

    # When lines are lost.

    def _followers(self, line: Line) -> list[Line]:
        if line is self.main and not self.routes.direct():
            return []
        older: dict[bytes, int] = {}
        for call in self._calls.values():
            if call.line is line and _is_topical(call):
                older.setdefault(topic_in(call.frame), call.id)
        followers: dict[Line, None] = {}
        for call in self._calls.values():
            if call.line is line and isinstance(call.joins, Line):
                followers[call.joins] = None
            elif call.line is None or call.line is line or not _is_topical(call):
                continue
            elif call.id > older.get(topic_in(call.frame), math.inf):
                followers[call.line] = None
        return [each for each in followers if each.leaving is None and not each.hang_up]

    def _end_followers(self, line: Line) -> None:
        for follower in self._followers(line):
            self.routes.release(follower)
            follower.takes_calls = False
            follower.end("a connection is lost that has older calls for the same topics")

    def _strand(self, line: Line) -> None:
        """Take every call off a line that is lost."""
        for call in [*self._calls.values()]:
            if call.line is line and not call.ended:
                line.take_off(call)
                # What was to be cancelled went with the connection, and is not issued again.
                if call.cancellers:
                    self._end_cancelled(call)
                elif self._is_ours(call, line):
                    self._drop(call)
                    call.end()
        self._stays.lost(line, self._calls.values())

    def _is_ours(self, call: Call, line: Line) -> bool:
        """Whether a call is no caller's but about the line that it went over, and so ends with it."""
        return call in (line.hello, line.check) or call.joins is not None


def _is_topical(call: Call) -> bool:
    """Whether a call is one of the caller's about a topic."""
    return call.kind in TOPICAL and call.joins is None
