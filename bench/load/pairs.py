"""Pairs of connections that meet: one receives what the other sends.

A connection that is lost, or left since its worker drains, is dialled again in another thread until
the node takes it, and a call that failed is made again after a pause; all of that is counted, and
nothing ends the load unless it is a strict one.
"""

from __future__ import annotations

import functools
import itertools
import os
import select
import socket
import struct
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from bench import servers
from bench.errors import BenchError
from bench.load.channel import Channel, Pace, Schedule, Step, Turn
from bench.load.dial import Contact, Contacts, dial
from bench.load.journal import Journal
from bench.load.loop import LOOK_S, Loop
from bench.load.plan import DOUBLED, NOT_RECEIVED, UNANSWERED, UNREACHABLE, Counts, Load
from bench.servers.peer import Lanes, Pair
from skywalker.journal.record import RECV, SEND
from skywalker.members import PlaceRing
from skywalker.ring import token_of
from skywalker.wire import values

PAUSE_S: Final = 0.1
"""Seconds before a call that failed is made again, or a node that does not listen is dialled again, or one that has
just been."""

OURS: Final = "skywalker"


class Pairs:
    """Those of one part of a load."""

    def __init__(self, load: Load, loop: Loop) -> None:
        self._load = load
        self._loop = loop
        self._schedule = Schedule(load.rate) if load.rate else None
        self._turn: Turn | None = None
        self._senders: list[Channel] = []
        self._receivers: list[Channel] = []
        self._ring: PlaceRing | None = None
        self._tokens: dict[int, list[int]] = {}
        self._workers = 1
        self._strays: set[Channel] = set()
        self._opened: list[tuple[Channel, Contact]] = []
        self._dialling: dict[Channel, Future[Contact]] = {}
        self._dialer = ThreadPoolExecutor(1)
        self._dialled = os.eventfd(0, os.EFD_NONBLOCK)  # ready when that has done something
        self._told = [0, 0, 0, 0]
        self._journal = Journal(load) if load.journal else None

    @property
    def sent(self) -> int:
        """The send!s answered true, from the first on."""
        return sum(sender.answered for sender in self._senders)

    @property
    def received(self) -> int:
        """Values received, from the first on."""
        return sum(receiver.answered for receiver in self._receivers)

    def connect(self) -> None:
        """Open every connection; no calls are made yet. Raises BenchError."""
        contacts = Contacts(self._load)
        try:
            greeting = contacts.greeting() if self._load.server == OURS else None
            if greeting:
                self._tokens, self._workers = greeting.tokens, len(greeting.tokens)
                self._ring = greeting.ring()
            for number in self._load.own_pairs():
                self._open_pair(number, contacts)
        finally:
            contacts.close()

    def _open_pair(self, number: int, contacts: Contacts) -> None:
        owner = self._load.group_of(number) % self._workers if self._load.direct else None
        pair = pair_of(self._load, number, self._ring, owner)
        make = functools.partial(Channel, worker=owner, loop=self._loop, wanted=self._wanted, failed=self._failed)
        pace: Pace | None = Step() if pair.sender.in_step and not self._load.in_turn else None
        hearing, saying = (
            self._journal.notes(script, method, self._load) if self._journal else None
            for script, method in ((pair.receiver, RECV), (pair.sender, SEND))
        )
        timed = self._load.timed and not self._load.in_turn
        receiver = make(pair.receiver, pace=pace, notes=hearing)
        sender = make(pair.sender, pace=self._schedule or pace, notes=saying, timed=timed)
        if isinstance(pace, Step):
            pace.sides = receiver, sender
        self._receivers.append(receiver)
        self._senders.append(sender)
        # The receiver first: where it has to subscribe, nothing can be sent before.
        for channel in (receiver, sender):
            if self._load.server == OURS:
                self._opened.append((channel, contacts.meet(owner, self._workers)))
            else:
                self._opened.append((channel, Contact(dial(self._load, channel.script.opening)[0], None)))

    def begin(self) -> None:
        """Make the first calls."""
        self._loop.epoll.register(self._dialled, select.EPOLLIN)
        self._loop.watch(self._dialled, self._mend)
        if self._load.in_turn:
            self._turn = Turn([*zip(self._receivers, self._senders, strict=True)])
            for channel, contact in self._opened:
                channel.refills = False
                _wait_in(contact, self._load.patience_s)
        for channel, contact in self._opened:
            self._open(channel, contact)
        if self._schedule:
            self._loop.pace = self._schedule.make
            self._schedule.start(time.monotonic())

    def turn_until(self, deadline: float) -> None:
        """Have them meet until a time, or until the loop is stopped."""
        if self._turn is None:
            self._loop.turn_until(deadline)
            return
        noted = self._loop.counts.latencies_us
        while time.monotonic() < deadline and not self._loop.stopped:
            us = self._turn.take()
            noted[us] = noted.get(us, 0) + 1

    def pause(self) -> None:
        """What is under way at the end of the window belongs to what comes after."""

    def tell(self, counts: Counts) -> None:
        """Add what has happened since this was called last."""
        both = [*self._senders, *self._receivers]
        totals = [self.sent, self.received, sum(each.forwarded for each in both), sum(each.placed for each in both)]
        counts.sent, counts.received, counts.forwarded, counts.placed = map(int.__sub__, totals, self._told)
        self._told = totals
        counts.strays = len(self._strays)
        if self._schedule:
            counts.behind = max(0, self._schedule.due(time.monotonic()) - self._schedule.made)
        if self._journal:
            self._journal.flush()

    def finish(self) -> None:
        """Make no new send!s, have those in flight answered, and judge whether every value arrived once."""
        self._loop.pace = self._schedule = None
        meet = all(receiver.script.meets for receiver in self._receivers)
        for channel in self._judged(meet):
            channel.refills = False
        self._loop.turn_while(lambda: not self._settled(meet), self._load.patience_s)
        self._loop.turn_until(time.monotonic() + LOOK_S)  # one that is too many may just be on its way
        self._judge(meet)
        if self._journal:  # before the last is reported, after which nobody waits for this process
            self._journal.close()
            self._journal = None

    def _judge(self, meet: bool) -> None:
        if unanswered := sum(sender.in_flight for sender in self._senders):
            self._loop.fail(UNANSWERED, unanswered)
        if not self._loop.clean:
            return  # it would not be known on which side of an error a value is
        missing = self.sent - self.received if meet and not self._load.shared else 0
        if missing:
            self._loop.fail(NOT_RECEIVED if missing > 0 else DOUBLED, abs(missing))
        elif twice := sum(max(0, -channel.open_calls) for channel in self._judged(meet)):
            self._loop.fail(DOUBLED, twice)

    def _judged(self, meet: bool) -> list[Channel]:
        """Return those of whom every call must be answered in the end."""
        return self._senders if meet else [*self._senders, *self._receivers]

    def _settled(self, meet: bool) -> bool:
        if any(channel.in_flight for channel in self._judged(meet)):
            return False
        return not meet or self.sent <= self.received or not self._loop.clean

    def close(self) -> None:
        """Hang up everywhere."""
        self._dialer.shutdown(cancel_futures=True)
        for dialled in self._dialling.values():
            if not dialled.cancelled() and not dialled.exception():
                dialled.result().link.close()
        os.close(self._dialled)
        for channel in (*self._receivers, *self._senders):
            channel.close()
        for _, contact in self._opened:
            contact.link.close()  # where it did not come to any calls
        if self._journal:
            self._journal.close()

    def _wanted(self, channel: Channel) -> None:
        """Dial again, after a pause if what is answered there is only that it is to go elsewhere."""
        self._dial(channel, channel.opened_at + PAUSE_S)

    def _failed(self, channel: Channel, lane: int) -> None:
        """Make a call again after a pause."""
        when = time.monotonic() + PAUSE_S
        self._loop.later(when, lambda: channel.refill(bytes((lane,)), time.monotonic()))

    def _open(self, channel: Channel, contact: Contact) -> None:
        # Tokens that are not those of the beginning make a new node, in which nothing is where it was.
        same = contact.greeting is not None and contact.greeting.tokens == self._tokens
        if self._load.direct and not (same and contact.worker == channel.worker):
            self._strays.add(channel)
        else:
            self._strays.discard(channel)
        fd = contact.link.fileno()
        self._loop.watch(fd, channel.open(contact, self._ring if same else None))

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
                self._loop.fail(UNREACHABLE)
                self._dial(channel, time.monotonic() + PAUSE_S)
            else:
                self._open(channel, found)


def pair_of(load: Load, number: int, ring: PlaceRing | None, owner: int | None) -> Pair:
    """Return what the receiver and the sender of a pair say and hear.

    With an `owner` the topics are named so that this worker owns them.
    """
    numbers = load.topics_by_lane(number)
    names = {topic: _name(load.prefix, topic, ring, owner) for topic in dict.fromkeys(numbers)}
    lanes = Lanes(
        [names[topic] for topic in numbers],
        [load.value_of(topic) for topic in numbers],
        round(load.timeout_s * 1000),
        load.dialect == "first",
        load.takes,
    )
    return servers.SERVERS[load.server].encode(lanes)


def _name(prefix: str, number: int, ring: PlaceRing | None, owner: int | None) -> str:
    name = f"{prefix}/{number:08}"
    if ring is None or owner is None:
        return name
    names = (f"{name}/{attempt}" for attempt in itertools.count())
    return next(name for name in names if ring.owner(token_of(values.pack(name))).worker == owner)


def _wait_in(contact: Contact, seconds: float) -> None:
    """Have reads of a socket wait, but no longer than so many seconds."""
    whole, part = divmod(seconds, 1)
    # Unlike settimeout(), this costs no system call of its own at each read.
    with socket.socket(fileno=os.dup(contact.link.fileno())) as sock:  # both are one connection, without TLS
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(whole), int(part * 1e6)))
