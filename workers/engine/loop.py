"""The loop of a worker: descriptors with their handlers, times at which something is due, and its turns.

Everything that a turn brings about is written at its end, one write for each connection. Values
go first, because what the kernel has taken of them earns their senders a `true`, then replies,
then what is said to other workers, first to siblings, who so know what goes to other nodes. That
something was handed out is said last, once it is written: a worker that is killed in between has
acknowledged nothing that others then miss.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final, Protocol

from skywalker.deadlines import Deadlines
from workers.engine.machine import Machine
from workers.engine.points import reached
from workers.stats import metrics
from workers.stats.counters import Counters
from workers.stats.hands import Hand, own_hand

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLERR | select.EPOLLHUP

TURN: Final = metrics.TURN.at

LONG_S: Final = 0.0005
"""Seconds after which a turn is long, and who wants more than its share waits for the next: there may be many such."""

SHARE_S: Final = 0.00025
"""Seconds of a turn that are one connection's share, whatever it says: 64 sends take about half of it."""


class Output(Protocol):
    """Who has something to write at the end of the turn."""

    def flush(self) -> None:
        """Write it."""


class Acknowledging(Protocol):
    """Who handed something out, and is to say so, or to look what became of it, once that is written."""

    def acknowledge(self) -> None:
        """Do so."""


class Deferred(Protocol):
    """Who found something to do in the middle of an event, and does it when nothing else is half done."""

    def attend(self) -> None:
        """Do it."""


class Resting(Protocol):
    """Who has had its share of a turn, and does more in the next."""

    def rested(self) -> None:
        """Go on."""


class Turn:
    """The turn that is on, for all that one worker has."""

    __slots__ = (
        "_began",
        "acks",
        "batches",
        "behind",
        "clock",
        "counters",
        "deadlines",
        "distant",
        "hand",
        "heavy",
        "later",
        "now",
        "replies",
        "resting",
        "values",
    )  # fmt: skip

    def __init__(self, now: float, counters: Counters, clock: Callable[[], float], hand: Hand | None = None) -> None:
        """`hand` is where it is written down what the worker is handing out."""
        self.clock = clock
        self.hand = own_hand() if hand is None else hand
        # When it began, or later: when the calls that it now deals with were read, or the values in them written.
        self.now = self._began = now
        self.counters = counters
        self.deadlines = Deadlines()  # of all that has an expired(): calls and alarms
        self.values: list[Output] = []  # connections that have values to write, and perhaps replies
        self.replies: list[Output] = []  # connections that have something to write
        self.batches: list[Output] = []  # links to siblings that have something to say
        self.distant: list[Output] = []  # links to other nodes that have
        self.behind = 0  # of those siblings, how many do not take all that is said
        self.acks: list[Acknowledging] = []  # who goes on once what was handed out is written
        self.later: list[Deferred] = []  # who has something to do once this event is dealt with
        self.resting: list[Resting] = []  # who goes on in the next turn
        self.heavy: list[Resting] = []  # who does so in any case, with a share of its own that is no part of the turn

    def begin(self, now: float) -> None:
        """End what is due, before anything new may meet it."""
        self.now = self._began = now
        for item in self.deadlines.due(now):
            item.expired()

    def has_more(self) -> bool:
        """Whether somebody goes on in the next turn, which must not wait for anything else."""
        return bool(self.resting or self.heavy)

    def wait(self, patient: bool = True) -> float | None:
        """Return the seconds until the next one has something to do, whatever comes; None if that depends on others.

        Without patience it does not wait, nor while somebody has more to do.
        """
        return self.deadlines.wait(self.clock()) if patient and not self.has_more() else 0.0

    def is_long(self) -> bool:
        """Whether who wants much should wait for the next one."""
        return self.now - self._began >= LONG_S

    def go_on(self) -> None:
        """Have those do more that had their share of the turn before, as many as there is time for."""
        if self.heavy:
            heavy, self.heavy = self.heavy, []
            for each in heavy:
                each.rested()
                if self.later:
                    self.attend()
            self._began = self.now
        resting, self.resting = self.resting, []
        for at, each in enumerate(resting):
            if self.is_long():
                self.resting = resting[at:] + self.resting  # first in the next turn
                return
            each.rested()
            if self.later:
                self.attend()

    def attend(self) -> None:
        """Have them do it."""
        later, self.later = self.later, []
        for each in later:
            each.attend()

    def end(self) -> None:
        """Write everything out. What was met in this turn is confirmed by these very writes."""
        # A write that fails, or makes room, may set off more to write, so what comes first is looked at again.
        while True:
            if self.later:
                self.attend()
                continue
            if self.values:
                outputs, self.values = self.values, []
            elif self.replies:
                outputs, self.replies = self.replies, []
            elif self.batches:
                outputs, self.batches = self.batches, []
            elif self.distant:
                outputs, self.distant = self.distant, []
            elif self.acks:
                assert reached("an acknowledgement is due")
                acks, self.acks = self.acks, []
                for each in acks:
                    each.acknowledge()
                continue
            else:
                break
            for output in outputs:
                output.flush()
        if self.hand.count and not self.behind:
            self.hand.clear()


class Alarm:
    """Calls somebody when the time has come, unless it is put off before.

    While it is not set it refers to nobody: whoever has it, and is called by it, would else refer to itself.
    """

    __slots__ = ("_ring", "at")

    def __init__(self) -> None:
        self._ring: Callable[[], None] | None = None
        self.at: float | None = None

    def set(self, turn: Turn, at: float, ring: Callable[[], None]) -> None:
        """Call `ring` at that time and at no other."""
        self.off(turn)
        self.at, self._ring = at, ring
        turn.deadlines.add(self, at)

    def off(self, turn: Turn) -> None:
        """Do not ring."""
        if self.at is not None:
            turn.deadlines.discard(self, self.at)
            self.at = self._ring = None

    def expired(self) -> None:
        """Ring: the time has come, unless another that was due with it has put it off."""
        ring = self._ring
        if ring is not None:
            self.at = self._ring = None
            ring()


class Handler(Protocol):
    """Is told that its descriptor is ready. Events may be stale: a read or write may still find nothing to do."""

    def ready(self, events: int) -> None:
        """Deal with the events, a mask of READ, WRITE and the kernel's error bits."""


class Loop:
    """A poller and its handlers."""

    def __init__(self, machine: Machine) -> None:
        self._poller = machine.poller()
        self._handlers: dict[int, Handler] = {}

    def add(self, fd: int, handler: Handler, events: int = READ) -> None:
        """Call handler.ready() whenever one of `events` holds."""
        self._poller.register(fd, events)
        self._handlers[fd] = handler

    def change(self, fd: int, events: int) -> None:
        """Wait for other events on a descriptor that was added."""
        self._poller.modify(fd, events)

    def remove(self, fd: int) -> None:
        """Forget a descriptor, before it is closed."""
        self._poller.unregister(fd)
        del self._handlers[fd]

    def turn(self, turn: Turn, patient: bool = True) -> int:
        """Wait until something is ready or due, deal with it, and write what came of it; return how many were ready.

        How long it waits at most, and what `patient` is, Turn.wait() says.
        """
        has_more = turn.has_more()
        events = self._poller.poll(turn.wait(patient))
        began = turn.clock()
        turn.begin(began)
        if has_more:
            turn.go_on()
        for fd, mask in events:
            # One that was handled before may have removed it.
            handler = self._handlers.get(fd)
            if handler is not None:
                handler.ready(mask)
                if turn.later:
                    turn.attend()
        turn.end()
        turn.counters.took(TURN, turn.clock() - began)
        return len(events)
