"""The channels of one generator, in one thread: the calls of its pairs for the length of a window.

A connection that is lost, or left since its worker drains, is dialled again in another thread until
the node takes it, and a call that failed is made again after a pause; all of that is counted, and
nothing ends the load.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from bench.errors import BenchError
from bench.load.channel import Channel, PacedSender, Sender
from bench.load.contact import Contact, Contacts
from bench.load.counts import AFTER, DOUBLED, NOT_RECEIVED, UNANSWERED, UNREACHABLE, Counts
from bench.load.journal import Journal
from bench.load.plan import Load
from bench.load.schedule import Schedule
from bench.load.scripts import scripts_of
from bench.plan import Window
from skywalker.journal.record import RECV, SEND
from skywalker.ring import Ring

PAUSE_S: Final = 0.1
"""Seconds before a call that failed is made again, or a node that does not listen is dialled again, or one that has
just been."""

LOOK_S: Final = 0.02
"""Seconds between looks whether all is answered."""


class Loop:
    """Makes the calls of one part of a load. `report` is given what each second has brought."""

    def __init__(self, load: Load, report: Callable[[Counts], None]) -> None:
        self.counts = Counts(0)
        self._load = load
        self._report = report
        self._epoll = select.epoll()
        self._schedule = Schedule(load.rate) if load.rate else None
        self._ready: dict[int, Callable[[], None]] = {}
        self._senders: list[Sender] = []
        self._receivers: list[Channel] = []
        self._ring: Ring[int] | None = None
        self._tokens: dict[int, list[int]] = {}
        self._workers = 1
        self._strays: set[Channel] = set()
        self._opened: list[tuple[Channel, Contact]] = []
        self._resting: list[tuple[float, int, Channel, int]] = []  # when, unique, channel, lane
        self._unique = itertools.count()
        self._dialling: dict[Channel, Future[Contact]] = {}
        self._dialer = ThreadPoolExecutor(1)
        self._dialled = os.eventfd(0, os.EFD_NONBLOCK)  # ready when that has done something
        self._sent = self._received = 0  # from the first call to the last report
        self._clean = True  # whether nothing has failed until then
        self._stopped = False
        self._journal = Journal(load) if load.journal else None

    def connect(self) -> None:
        """Open every connection; no calls are made yet. Raises BenchError."""
        contacts = Contacts(self._load)
        try:
            greeting = contacts.greeting()
            if greeting:
                self._tokens, self._workers = greeting.tokens, len(greeting.tokens)
                self._ring = Ring(self._tokens)
            self._opened = [channels for pair in self._load.own_pairs() for channels in self._pair(pair, contacts)]
        finally:
            contacts.close()

    def _pair(self, pair: int, contacts: Contacts) -> list[tuple[Channel, Contact]]:
        owner = self._load.group_of(pair) % self._workers if self._load.direct else None
        heard, said = scripts_of(self._load, pair, self._ring, owner)
        hearing = self._journal.notes(heard, RECV, self._load) if self._journal else None
        saying = self._journal.notes(said, SEND, self._load) if self._journal else None
        receiver = Channel(heard, owner, self, self._epoll, hearing)
        if self._schedule:
            sender: Sender = PacedSender(said, owner, self, self._epoll, self._schedule, saying)
        else:
            sender = Sender(said, owner, self, self._epoll, saying)
        self._receivers.append(receiver)
        self._senders.append(sender)
        return [(channel, contacts.meet(owner, self._workers)) for channel in (receiver, sender)]

    def run(self, window: Window) -> None:
        """Make calls until the window ends or standard input has something to say; then have the last ones answered."""
        stdin = sys.stdin.fileno()
        for fd, act in ((stdin, self._stop), (self._dialled, self._mend)):
            self._epoll.register(fd, select.EPOLLIN)
            self._ready[fd] = act
        for channel, contact in self._opened:
            self._open(channel, contact)
        if self._schedule:
            self._schedule.start(time.monotonic())
        self._turn_until(window.start)
        warm_up = self._begin(0)
        # What goes wrong is wrong at any time.
        self.counts.errors, self.counts.example = warm_up.errors, warm_up.example
        second, began = 0, time.monotonic()
        while began < window.stop and not self._stopped:
            cpu = time.process_time()
            self._turn_until(min(window.start + second + 1, window.stop))
            now = time.monotonic()
            self.counts.seconds, self.counts.cpu_s = now - began, time.process_time() - cpu
            second, began = second + 1, now
            self._report(self._begin(second))
        self.counts.second = AFTER
        self._finish()
        self._report(self._begin(AFTER))

    def close(self) -> None:
        """Hang up everywhere."""
        self._dialer.shutdown(cancel_futures=True)
        for dialled in self._dialling.values():
            if not dialled.cancelled() and not dialled.exception():
                dialled.result().sock.close()
        os.close(self._dialled)
        self._epoll.close()
        for channel in (*self._receivers, *self._senders):
            channel.close()
        if self._journal:
            self._journal.close()

    def wanted(self, channel: Channel) -> None:
        """See Owner: dial again, after a pause if what is answered there is only that it is to go elsewhere."""
        self._dial(channel, channel.opened_at + PAUSE_S)

    def failed(self, channel: Channel, lane: int) -> None:
        """See Owner: make it again after a pause."""
        heapq.heappush(self._resting, (time.monotonic() + PAUSE_S, next(self._unique), channel, lane))

    def _open(self, channel: Channel, contact: Contact) -> None:
        # Tokens that are not those of the beginning make a new node, in which nothing is where it was.
        same = contact.greeting is not None and contact.greeting.tokens == self._tokens
        if self._load.direct and not (same and contact.worker == channel.worker):
            self._strays.add(channel)
        else:
            self._strays.discard(channel)
        fd = contact.sock.fileno()
        self._ready[fd] = channel.open(contact, self._ring if same else None)

    def _dial(self, channel: Channel, when: float) -> None:
        self._dialling[channel] = dialled = self._dialer.submit(self._meet, channel.worker, when)
        dialled.add_done_callback(lambda _: os.eventfd_write(self._dialled, 1))

    def _meet(self, worker: int | None, when: float) -> Contact:
        """Connect, not before a time. Runs in another thread. Raises BenchError."""
        time.sleep(max(0.0, when - time.monotonic()))
        contacts = Contacts(self._load)
        try:
            return contacts.meet(worker, self._workers)
        finally:
            contacts.close()

    def _mend(self) -> None:
        """Take up connections that were dialled again."""
        os.eventfd_read(self._dialled)
        for channel in [channel for channel, dialled in self._dialling.items() if dialled.done()]:
            try:
                found = self._dialling.pop(channel).result()
            except BenchError:
                self.counts.fail(UNREACHABLE)
                self._dial(channel, time.monotonic() + PAUSE_S)
            else:
                self._open(channel, found)

    def _stop(self) -> None:
        self._epoll.unregister(sys.stdin.fileno())
        self._stopped = True

    def _turn_until(self, deadline: float) -> None:
        ready, poll, schedule = self._ready, self._epoll.poll, self._schedule
        while (now := time.monotonic()) < deadline and not self._stopped:
            wait = deadline - now
            self._refill(now)
            if self._resting:
                wait = min(wait, self._resting[0][0] - now)
            if schedule:
                # An epoll waits for whole milliseconds, which would make every call late.
                wait = min(wait, schedule.make(now) - time.monotonic())
                select.select([self._epoll], [], [], max(0.0, wait))
                wait = 0.0
            for fd, _ in poll(wait):
                ready[fd]()

    def _refill(self, now: float) -> None:
        """Have lanes go on that have rested."""
        while self._resting and self._resting[0][0] <= now:
            _, _, channel, lane = heapq.heappop(self._resting)
            channel.refill(bytes((lane,)), now)

    def _finish(self) -> None:
        """Make no new send!s, have those in flight answered, and judge whether every value arrived once."""
        self._stopped = False
        self._schedule = None
        for sender in self._senders:
            sender.refills = False
        deadline = time.monotonic() + self._load.patience_s
        while not self._settled() and (now := time.monotonic()) < deadline:
            self._turn_until(now + LOOK_S)
        self._turn_until(time.monotonic() + LOOK_S)  # one that is too many may just be on its way
        self.counts.fail(UNANSWERED, sum(sender.in_flight for sender in self._senders))
        if self._clean and not self.counts.errors and not self._load.shared:
            # After an error it would not be known on which side of it a value is.
            missing = self._sent + self.counts.sent - self._received - self.counts.received
            self.counts.fail(NOT_RECEIVED if missing > 0 else DOUBLED, abs(missing))

    def _settled(self) -> bool:
        if any(sender.in_flight for sender in self._senders):
            return False
        all_there = self._sent + self.counts.sent <= self._received + self.counts.received
        return all_there or not self._clean or bool(self.counts.errors)

    def _begin(self, second: int) -> Counts:
        """Begin to count for a second; return what was counted until now."""
        counts, self.counts = self.counts, Counts(second)
        if self._journal:
            self._journal.flush()
        counts.strays = len(self._strays)
        if self._schedule:
            counts.behind = max(0, self._schedule.due(time.monotonic()) - self._schedule.made)
        self._sent += counts.sent
        self._received += counts.received
        self._clean = self._clean and not counts.errors
        return counts
