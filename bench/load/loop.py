"""The channels of one generator, in one thread: the calls of its pairs for the length of a window.

A connection that is lost is dialled again in another thread until the node takes it, and a call
that failed is made again after a pause; both are counted and neither ends the load.
"""

from __future__ import annotations

import heapq
import itertools
import select
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from bench.errors import BenchError
from bench.load.channel import Channel, PacedSender, Sender
from bench.load.contact import Contact, Contacts
from bench.load.counts import AFTER, DOUBLED, NOT_RECEIVED, UNANSWERED, Counts
from bench.load.journal import Journal
from bench.load.plan import Load
from bench.load.schedule import Schedule
from bench.load.scripts import scripts_of
from bench.plan import Window
from skywalker.journal.record import RECV, SEND
from skywalker.ring import Ring

PAUSE_S: Final = 0.1
"""Seconds before a call that failed is made again, or a node that does not listen is dialled again."""

LOOK_S: Final = 0.02
"""Seconds between looks at what other threads do, while there is something to look for."""


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
        self._resting: list[tuple[float, int, Channel, int, int]] = []  # when, unique, channel, its epoch, lane
        self._unique = itertools.count()
        self._dialling: dict[Channel, Future[Contact]] = {}
        self._dialer = ThreadPoolExecutor(1)
        self._sent = self._received = 0  # from the first call to the last report
        self._clean = True  # whether nothing has failed until then
        self._stopped = False
        self._over = False
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
        self._epoll.register(stdin, select.EPOLLIN)
        self._ready[stdin] = self._stop
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
        self._over = True
        self._dialer.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Hang up everywhere."""
        self._epoll.close()
        for channel in (*self._receivers, *self._senders):
            channel.close()
        if self._journal:
            self._journal.close()

    def lost(self, channel: Channel) -> None:
        """See Owner: dial again."""
        if isinstance(channel, PacedSender) and self._schedule:
            self._schedule.withdraw(channel)
        self._dialling[channel] = self._dialer.submit(self._dial, channel.worker)

    def failed(self, channel: Channel, lane: int) -> None:
        """See Owner: make it again after a pause."""
        entry = (time.monotonic() + PAUSE_S, next(self._unique), channel, channel.epoch, lane)
        heapq.heappush(self._resting, entry)

    def _open(self, channel: Channel, contact: Contact) -> None:
        # Tokens that are not those of the beginning make a new node, in which nothing is where it was.
        same = contact.greeting is not None and contact.greeting.tokens == self._tokens
        if self._load.direct and not (same and contact.worker == channel.worker):
            self._strays.add(channel)
        else:
            self._strays.discard(channel)
        self._ready[contact.sock.fileno()] = channel.ready
        channel.open(contact, self._ring if same else None)

    def _dial(self, worker: int | None) -> Contact:
        """Connect again, however long that takes. Runs in another thread."""
        while True:
            contacts = Contacts(self._load)
            try:
                return contacts.meet(worker, self._workers)
            except BenchError:
                if self._over:
                    raise
                time.sleep(PAUSE_S)
            finally:
                contacts.close()

    def _stop(self) -> None:
        self._epoll.unregister(sys.stdin.fileno())
        self._stopped = True

    def _turn_until(self, deadline: float) -> None:
        ready, poll, schedule = self._ready, self._epoll.poll, self._schedule
        while (now := time.monotonic()) < deadline and not self._stopped:
            wait = deadline - now
            if self._dialling or self._resting:
                self._mend(now)
                wait = min(wait, LOOK_S)
            if schedule:
                # An epoll waits for whole milliseconds, which would make every call late.
                wait = min(wait, schedule.make(now) - time.monotonic())
                select.select([self._epoll], [], [], max(0.0, wait))
                wait = 0.0
            for fd, _ in poll(wait):
                ready[fd]()

    def _mend(self, now: float) -> None:
        """Take up connections that were dialled again, and calls that have rested."""
        for channel in [channel for channel, dialled in self._dialling.items() if dialled.done()]:
            dialled = self._dialling.pop(channel)
            if not dialled.cancelled() and not dialled.exception():
                self._open(channel, dialled.result())
        while self._resting and self._resting[0][0] <= now:
            _, _, channel, epoch, lane = heapq.heappop(self._resting)
            if epoch == channel.epoch and channel not in self._dialling:
                channel.retry(lane, now)

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
