"""Which connection a call goes over: with many workers at the node, one to each, so that nothing is forwarded.

Every client has a *main* line, to whichever worker the kernel chose, which takes any call. Once
a client has made enough calls to profit it adds direct lines to the other workers, one after
another, and where that cannot be had it goes on with those it has. This module decides; it knows
no socket and no clock.

Steering: a node may say in its :hello that the source port of a connection chooses the worker,
`(port >> 1) % workers`. So one dial meets each worker. Behind a router that changes the port, or
at a node that does not steer, a dial meets a random one; then we dial until all are met, with a limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from skywalker.clients.line import Line
from skywalker.ring import Ring, token_of
from skywalker.wire import values

DIRECT_AFTER_CALLS: Final = 32
"""Calls from which on direct lines pay: a program that asks a question or two makes one connection."""

RETRY_S: Final = 600.0
"""Seconds without a new attempt after one that failed."""

REDIAL_S: Final = 1.0
"""Seconds after which a direct line that was lost is made anew, once: a worker that died is replaced by then."""

DRAINED_S: Final = 15.0
"""The same where the worker drains, for which it has ten seconds unless told otherwise."""

_FIRST_PORT, _LAST_PORT = 32_769, 60_999
"""Where Linux takes the ports of clients from by itself."""


class Dial(NamedTuple):
    """A connection that is wanted: to this worker of so many, by its source port; None is as well met by any."""

    worker: int | None
    workers: int


@dataclass(frozen=True, slots=True)
class Greeting:
    """What counts here of a node's answer to :hello."""

    node: str
    worker: int
    workers: int
    steering: bool
    owners: frozenset[int]  # the workers that have tokens
    ring: Ring[int]

    @classmethod
    def parse(cls, answer: Any) -> Greeting | None:
        """Return None for the answer of something else than our nodes."""
        match answer:
            case {"node": str(node), "worker": int(worker), "workers": int(workers), "tokens": dict(tokens)}:
                try:
                    if tokens.keys() == set(range(workers)) and 0 <= worker < workers:
                        owners = frozenset(worker for worker in tokens if tokens[worker])
                        return cls(node, worker, workers, answer.get("steering") is True, owners, Ring(tokens))
                except (TypeError, ValueError):
                    pass
        return None

    def is_same_node(self, other: Greeting) -> bool:
        """Whether both come from workers of one node, in one division of its tokens."""
        return self.node == other.node and self.workers == other.workers


def source_port(dial: Dial, luck: float) -> int:
    """Return a port that steers to the worker; `luck` is random, from 0 to below 1."""
    # Odd ones: connect() itself prefers the even ones, so these are free.
    worker, workers = dial.worker or 0, dial.workers
    first, last = _FIRST_PORT >> 1, (_LAST_PORT - 1) >> 1
    first += (worker - first) % workers
    count = (last - first) // workers + 1
    return (first + int(luck * count) * workers) << 1 | 1


class Routes:
    """The lines of one client by worker, and which are still wanted."""

    def __init__(self, main: Line, direct: bool) -> None:
        self.dial_at = 0.0 if direct else math.inf  # when dial() may want something, not before
        self.candidate: Line | None = None  # the one that has said :hello and waits for the answer
        self._dialling = False  # whether an attempt is under way, up to the answer
        self._direct = direct
        self._main = main
        self._node: Greeting | None = None  # by the main line
        self._main_worker: int | None = None
        self._lines: dict[int, Line] = {}
        self._dials = 0  # left, until all workers must be met
        self._steering = False
        self._not_before = 0.0  # no dial at all, since one failed
        self._redialled: dict[int, float] = {}  # by worker: when its line was last made anew

    @property
    def known(self) -> bool:
        """Whether the node is known to have workers to go to directly."""
        return self._node is not None

    def owner(self, topic: bytes) -> int | None:
        """Return the worker that owns a topic, given in canonical form; None while that does not matter."""
        return None if self._node is None else self._node.ring.owner(token_of(topic))

    def line(self, worker: int | None) -> Line:
        """Return the line to a worker: its own, or the main one."""
        return self._main if worker is None else self._lines.get(worker, self._main)

    def direct(self) -> dict[int, Line]:
        """Return the direct lines by worker, joined or about to be."""
        return self._lines

    # Dialling: one attempt at a time.

    def dial(self, now: float) -> Dial | None:
        """Return the connection that is wanted now, if any; then either greeted() or failed() must follow."""
        if now < self.dial_at or self._dialling:
            return None
        self.dial_at = math.inf
        if self._node is None:
            self._dialling = True
            return Dial(None, 1)
        missing = self._missing()
        if not missing:
            return None
        if not self._dials:
            self.failed(now)
            return None
        self._dials -= 1
        self._dialling = True
        return Dial(missing[0] if self._steering else None, self._node.workers)

    def failed(self, now: float) -> None:
        """An attempt came to nothing: leave it at what there is, for long."""
        self._settled()
        self._not_before = now + RETRY_S
        self._want(now)

    def _settled(self) -> None:
        self.candidate = None
        self._dialling = False

    def _missing(self) -> list[int]:
        if self._node is None:
            return []
        return sorted(self._node.owners - self._lines.keys() - {self._main_worker})

    def _want(self, now: float) -> None:
        """Dial for those that are missing, as soon as that may be."""
        if self._direct:
            self._dials = 2 * (self._node.workers if self._node else 0) + 8
            self.dial_at = max(now, self._not_before)

    # What the node says.

    def main_greeted(self, answer: Any, now: float) -> list[Line]:
        """The main line's :hello was answered. Returns the direct lines that are of no use any more."""
        if not self._direct:
            return []
        node = Greeting.parse(answer)
        if node is not None and self._node is not None and self._node.is_same_node(node):
            self._main_worker = node.worker
            self._want(now)
            return []
        useless, self._lines = [*self._lines.values()], {}
        self._redialled.clear()
        if node is None or node.workers == 1:
            self._node = self._main_worker = None
            self.dial_at = math.inf  # until the main line is another
        else:
            self._node, self._main_worker, self._steering = node, node.worker, node.steering
            self._want(now)
        return useless

    def scouted(self, answer: Any, now: float) -> bool:
        """A candidate's :hello was answered before that of the main line, whose node may not know it, was said.

        Returns whether to say it there.
        """
        self._settled()
        greeting = Greeting.parse(answer)
        if greeting is None:
            self.failed(now)
        return greeting is not None and greeting.workers > 1

    def greeted(self, line: Line, answer: Any, now: float) -> int | None:
        """The candidate's :hello was answered. Returns the worker that it is for now kept for, None if it is not."""
        self._settled()
        greeting = Greeting.parse(answer)
        if greeting is None or self._node is None or not self._node.is_same_node(greeting):
            self.failed(now)
            return None
        self.dial_at = now
        if greeting.worker in self._missing():
            self._lines[greeting.worker] = line
            return greeting.worker
        self._steering = False  # a steered dial meets who is missing, unless something between changes the port
        return None

    # What is lost.

    def release(self, line: Line) -> None:
        """Forget a direct line that is wanted anew as soon as the main one is back."""
        self._lines = {worker: each for worker, each in self._lines.items() if each is not line}

    def lost(self, line: Line, now: float) -> None:
        """A direct line, or the candidate, is lost, or was not answered on the way to becoming one."""
        if line is self.candidate:
            self.failed(now)
        for worker, each in self._lines.items():
            if each is line:
                del self._lines[worker]
                after = DRAINED_S if line.leaving is not None else REDIAL_S if line.takes_calls else RETRY_S
                if now - self._redialled.get(worker, -math.inf) < RETRY_S:
                    after = RETRY_S
                self._redialled[worker] = now
                self._not_before = max(self._not_before, now + after)
                self._want(now)
                return

    def main_changed(self, main: Line, now: float) -> None:
        """The main line is lost, and `main` is the one to come."""
        self._main = main
        self._main_worker = None
        if self._node is None and self.dial_at == math.inf and self._direct:
            self.failed(now)  # perhaps the next node is another

    def forget(self) -> None:
        """The node that answers now may not know :hello."""
        self._node = None


def barrier_topic(routes: Routes, worker: int) -> list[Any]:
    """Return a topic that `worker` owns: what is asked about it is answered after all that was asked before."""
    number = 0
    while True:
        topic = ["skywalker.barrier", number]
        if routes.owner(values.pack(topic)) == worker:
            return topic
        number += 1
