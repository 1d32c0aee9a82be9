"""Endpoints where a node may be that is no member: each is visited, over and over, until somebody answers.

Three kinds of them: where this node was told to join, where others say that there is a member, and where a member
failed, which may be on the other side of a cut. Only the first may be anybody: who lives where a member failed may be
of another cluster by now. Of members that failed there may be very many, so they take turns. And so do those that
others tell of, lest they have this node knock at the doors of a third.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Set
from typing import Final

from skywalker.deadlines import Deadlines
from skywalker.silk import pace
from skywalker.silk.endpoints import HERE, host
from skywalker.silk.info import NodeInfo
from skywalker.silk.outbox import Outbox, Part, Reached
from skywalker.wire import silk as wire

MAX_VISITS: Final = 4096
"""Endpoints; what is told beyond that is not looked at."""

MAX_TOLD: Final = 64
"""Visits at a time where others say that somebody is, each with a socket; the rest wait in line."""

MAX_TOLD_AT_HOST: Final = 8
"""Of these, on one host, unless it is this one."""

MAX_IN_VAIN: Final = 8
"""Visits to one host where nobody was met, after which none is begun there for pace.QUIET_S."""

MAX_QUIET: Final = 1024
"""Hosts of which that is kept; past that, those from before are forgotten first."""

MAX_LOST: Final = 2048
"""Endpoints of members that failed, as many as a cluster has: those that failed first are given up for the next."""

MAX_WAITING: Final = 32
"""Of these, where a message, and so a socket, waits for somebody to be there: those that were tried last. Of all whom
a cut has parted from us one is enough, as it tells of the others."""


NEXT: Final = object()
"""What is due when a place has become free for those in line."""


@dataclasses.dataclass(eq=False, slots=True)
class Visit:
    """One of them."""

    endpoint: str
    began_at: float
    id: str = ""  # of the node that is to be there; empty if it may be anybody
    lasts_s: float = math.inf  # until it is given up
    at: float = 0.0  # when it is tried next
    tries: int = 0  # so far
    message_id: str = ""  # of the latest
    said: NodeInfo | None = None  # what that told of this node
    host: str = ""  # of one that others have told of


class Visits:
    """All of them, by endpoint."""

    def __init__(self, outbox: Outbox, luck: Callable[[], float]) -> None:
        self._outbox = outbox
        self._luck = luck
        self._seeds: dict[str, str] = {}  # where this node was told to join, and the id of who was there last
        self._visits: dict[str, Visit] = {}
        self._lost: dict[str, None] = {}  # where members failed, the first first
        self._waiting: dict[str, None] = {}  # of those, where a message waits, the one that was tried first first
        self._line: dict[Visit, None] = {}  # those that others told of, and that are not under way yet
        self._told: Counter[str] = Counter()  # how many of them are under way on each host
        self._in_vain: dict[str, tuple[int, float]] = {}  # how many were, by host, and when the last was
        self._asked: dict[str, Visit] = {}  # by the id of the message that it is to answer
        self._arrivals: dict[
            str, set[str]
        ] = {}  # where this node has just joined, and where it is still to meet others
        self._deadlines = Deadlines()  # of visits, and of arrivals by endpoint

    def wait(self, now: float) -> float | None:
        """Return the seconds until tick() has something to do, None if it has not."""
        return self._deadlines.wait(now)

    def join(self, endpoint: str, there: str, now: float) -> None:
        """Join there, whoever it is, and again whenever that one is a member no more; `there` is who is known to be."""
        self._seeds[endpoint] = ""
        if there:
            self.reached(endpoint, there, now)
        else:
            self._end(endpoint)
            self._begin(Visit(endpoint, now), now)

    def abandon(self, endpoint: str) -> None:
        """Join there no more."""
        if self._seeds.pop(endpoint, None) == "":
            self._give_up(endpoint)

    def told(self, endpoint: str, id: str, now: float) -> bool:
        """Others say that this node, or somebody, is there; return whether that is looked into now."""
        visit = self._visits.get(endpoint)
        if visit is None:
            visit = Visit(endpoint, now, id, pace.TOLD_S, host=host(endpoint))
            if len(self._visits) < MAX_VISITS and not self._is_quiet(visit.host, now):
                self._visits[endpoint] = visit
                self._line[visit] = None
                return self._begin_told(visit, now)
        elif visit.id not in ("", id) and not visit.lasts_s <= pace.TOLD_S:
            self._end(endpoint)  # it failed there, and another one is said to be there since
            return self.told(endpoint, id, now)
        elif visit not in self._line and visit.at - now > pace.VISIT_S:
            self._deadlines.discard(visit, visit.at)
            self._try(visit, now)
            return True
        return False

    def lost(self, endpoint: str, id: str, now: float) -> None:
        """This member was there until now."""
        if endpoint not in self._visits:
            if len(self._lost) >= MAX_LOST:
                self._give_up(next(iter(self._lost)))
            self._lost[endpoint] = None
            self._begin(Visit(endpoint, now, id, pace.FORGET_S), now, at_once=False)

    def reached(self, endpoint: str, id: str, now: float, others: Set[str] = frozenset()) -> None:
        """This node is there, and told of others who are at these endpoints."""
        self._in_vain.pop(host(endpoint), None)
        self._end(endpoint)
        if endpoint in self._seeds:
            self._seeds[endpoint] = id
            self._arrivals[endpoint] = set(others & self._visits.keys())
            self._deadlines.add(endpoint, now + pace.ARRIVE_S)
            self._arrive()

    def gone(self, id: str, now: float) -> None:
        """This node is a member no more."""
        for endpoint, joined in self._seeds.items():
            if joined == id:
                self._seeds[endpoint] = ""
                self._end(endpoint)
                self._begin(Visit(endpoint, now), now, at_once=False)

    def clear(self) -> None:
        """Look nowhere any more."""
        self._seeds.clear()
        self._arrivals.clear()
        for endpoint in [*self._visits]:
            self._give_up(endpoint)

    def asked_by(self, message_id: str) -> Visit | None:
        """Return the visit of which this message was the latest, if there is one."""
        return self._asked.get(message_id)

    def tick(self, now: float) -> None:
        """Go where it is time to."""
        for visit in self._deadlines.due(now):
            if visit is NEXT:
                self._go_on(now)
                continue
            if not isinstance(visit, Visit):
                self._arrivals.get(visit, set()).clear()
                self._arrive()
            elif now - visit.began_at >= visit.lasts_s:
                self._was_in_vain(visit, now)
                self._give_up(visit.endpoint)
            else:
                self._try(visit, now)

    def _go_on(self, now: float) -> None:
        """Begin with those in line whose turn it is."""
        for visit in [*self._line]:
            if self._told.total() >= MAX_TOLD:
                return
            if self._is_quiet(visit.host, now):
                self._end(visit.endpoint)
            else:
                self._begin_told(visit, now)

    def _begin_told(self, visit: Visit, now: float) -> bool:
        most = MAX_TOLD if visit.host == HERE else MAX_TOLD_AT_HOST
        if self._told[visit.host] < most and self._told.total() < MAX_TOLD:
            del self._line[visit]
            self._told[visit.host] += 1
            visit.began_at = now
            self._try(visit, now)
            return True
        return False

    def _was_in_vain(self, visit: Visit, now: float) -> None:
        if visit.host not in ("", HERE):
            times, _ = self._in_vain.pop(visit.host, (0, now))
            self._in_vain[visit.host] = times + 1, now
            if len(self._in_vain) > MAX_QUIET:
                del self._in_vain[next(iter(self._in_vain))]

    def _is_quiet(self, host: str, now: float) -> bool:
        times, last_at = self._in_vain.get(host, (0, now))
        if now - last_at >= pace.QUIET_S:
            self._in_vain.pop(host, None)
            return False
        return times >= MAX_IN_VAIN

    def _arrive(self) -> None:
        """Tell where all whom this node was to meet have been met."""
        for endpoint in [endpoint for endpoint, others in self._arrivals.items() if not others]:
            del self._arrivals[endpoint]
            self._outbox.do(Reached(endpoint))

    def _give_up(self, endpoint: str) -> None:
        self._end(endpoint)
        self._outbox.do(Part(endpoint))

    def _end(self, endpoint: str) -> None:
        for others in self._arrivals.values():
            others.discard(endpoint)
        self._arrive()
        self._lost.pop(endpoint, None)
        self._waiting.pop(endpoint, None)
        visit = self._visits.pop(endpoint, None)
        if visit is not None:
            self._deadlines.discard(visit, visit.at)
            self._asked.pop(visit.message_id, None)
            if visit in self._line:
                del self._line[visit]
            elif visit.host:
                self._told[visit.host] -= 1
                if not self._told[visit.host]:
                    del self._told[visit.host]
                if self._line:
                    self._deadlines.add(NEXT, 0.0)

    def _begin(self, visit: Visit, now: float, *, at_once: bool = True) -> None:
        self._visits[visit.endpoint] = visit
        if at_once:
            self._try(visit, now)
        else:
            self._try_at(visit, now + self._pause(visit, now))

    def _try(self, visit: Visit, now: float) -> None:
        if visit.tries:
            del self._asked[visit.message_id]
            # Lest whoever comes back there is told of all attempts at once.
            self._outbox.do(Part(visit.endpoint))
        visit.tries += 1
        type = wire.CONNECT if visit.id else wire.JOIN
        visit.said = self._outbox.me
        visit.message_id = self._outbox.send(visit.endpoint, visit.id, type, visit.said.as_map())
        self._asked[visit.message_id] = visit
        self._try_at(visit, now + self._pause(visit, now))
        if visit.endpoint in self._lost:
            self._wait(visit.endpoint)

    def _wait(self, endpoint: str) -> None:
        self._waiting.pop(endpoint, None)
        self._waiting[endpoint] = None
        if len(self._waiting) > MAX_WAITING:
            first = next(iter(self._waiting))
            del self._waiting[first]
            self._outbox.do(Part(first))

    def _try_at(self, visit: Visit, at: float) -> None:
        visit.at = at
        self._deadlines.add(visit, at)

    def _pause(self, visit: Visit, now: float) -> float:
        pause = min(max(pace.VISIT_S, (now - visit.began_at) * pace.VISIT_PART), pace.VISIT_CAP_S)
        if visit.endpoint in self._lost:
            pause = max(pause, len(self._lost) * pace.WAIT_S / MAX_WAITING)
        return pause * (1 + self._luck()) / 2
