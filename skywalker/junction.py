"""Where calls meet: for each topic a line of waiting senders or lines of waiting listeners, and who subscribes.

LocalJunction has it within one process, where nobody subscribes. A node has the same in C, in workers/core/table.c,
which tests compare with this.

A send goes to every receiver that waits at that moment, to one taker of each group, and to every subscriber; with
none of them it waits. A listener takes the oldest waiting send, and only that; a subscriber takes all that wait, and
stays. What is published goes to the same, and waits for nobody. Nothing here knows of connections, of bytes on a wire,
or of time: whoever opens a door to the junction derives from Call what can answer its callers, has calls wait() where
nobody is there to meet them, and withdraws them at their deadlines.

A rendezvous has two steps, because a listener can be lost after it was given a value:

    offer     listener.give(send) says whether the listener can have the value
    outcome   junction.confirm(send): the value is surely the listener's, and send.met() tells the sender. Or
              junction.lost(send): unless another listener may still confirm, send.missed() decides; to
              resume(send) puts it back in its place in the line.

What is published is answered from the beginning, so that neither has more to do. Every operation is O(1), but for the
listeners it reaches, for putting a call back into the middle of a line, and for a count. A topic that nobody waits on
takes no memory.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from skywalker.census import Census
from skywalker.wire.junction import NIL

MAX_GROUPS: Final = 16
MAX_NAMES: Final = 1024
"""Groups that a census names, and bytes of their names: whoever asks pays for a few bytes, however many there are."""


class Call:
    """One call at the junction: a send if it has a value, else one that listens, for a group or for itself.

    `since` is when it came, in seconds on any one clock.
    """

    __slots__ = ("answered", "arrival", "group", "line", "next", "offers", "previous", "since", "topic", "value")

    def __init__(self, topic: bytes, since: float, value: bytes | None, group: bytes | None) -> None:
        self.topic = topic
        self.since = since
        self.arrival = 0  # orders calls of one `since`, as those that were read at once have
        self.value = value
        self.group = group
        self.offers = 0  # of a send: listeners that have the value and have neither confirmed nor lost it
        self.answered = False  # of a send: its caller knows the outcome, nothing more is to be done for it
        self.line: Line | None = None  # where it waits, with its neighbours there
        self.previous: Call
        self.next: Call
        self.previous = self.next = None  # type: ignore[assignment]  # only a line reads them, while it stands there

    @property
    def waits(self) -> bool:
        """Whether it stands in a line."""
        return self.line is not None

    def give(self, send: Call) -> bool:
        """Take the value of `send` towards the caller, or refuse it. Either way this no longer listens.

        After True, the junction must be told of exactly one outcome, confirm() or lost(). After False it is the
        listener's own business to tell its caller, or to listen again, later.
        """
        raise NotImplementedError

    def met(self) -> None:
        """Tell the caller that a listener surely has the value. Called once, with `answered` set."""
        raise NotImplementedError

    def missed(self) -> None:
        """Every listener that was offered the value is lost: resume, or tell the caller that nobody came."""
        raise NotImplementedError

    def precedes(self, other: Call) -> bool:
        """Tell whether this came before `other`."""
        return self.since < other.since or (self.since == other.since and self.arrival < other.arrival)


class Line:
    """Calls of one kind by the time they came: a ring linked through themselves, so that any can leave at once."""

    __slots__ = ("first", "returned", "size")

    def __init__(self) -> None:
        self.first: Call | None = None  # before it in the ring stands the last
        self.returned: Call | None = None  # who last came back to its place: those lost with it follow it here
        self.size = 0

    def add(self, call: Call) -> None:
        """Put `call` behind all that came before it: nearly always last."""
        call.line = self
        self.size += 1
        first = self.first
        if first is None:
            self.first = call.previous = call.next = call
            return
        after = first
        if call.precedes(first.previous):
            after = self._successor(call, first)
            self.returned = call
            if after is first:
                self.first = call
        before = after.previous
        call.previous, call.next = before, after
        before.next = after.previous = call

    def calls(self) -> list[Call]:
        """Return all, the first first."""
        found = [] if self.first is None else [self.first]
        while len(found) < self.size:
            found.append(found[-1].next)
        return found

    def _successor(self, call: Call, first: Call) -> Call:
        """Return who stands behind the place of `call`, which is not the last place."""
        if call.precedes(first):
            return first  # who came for it had no room, perhaps again and again
        after = self.returned if self.returned is not None else first.previous
        while call.precedes(after.previous):
            after = after.previous
        while not call.precedes(after):
            after = after.next
        return after

    def remove(self, call: Call) -> None:
        """Take out `call`, which must be in this line."""
        before, after = call.previous, call.next
        self.size -= 1
        if not self.size:
            self.first = self.returned = None
        else:
            before.next, after.previous = after, before
            if call is self.first:
                self.first = after
            if call is self.returned:
                self.returned = before
        call.line = call.previous = call.next = None  # type: ignore[assignment]  # as __init__ says


class Groups:
    """The takers of one topic: their lines by group, and how many stand in them."""

    __slots__ = ("lines", "size")

    def __init__(self) -> None:
        self.lines: dict[bytes, Line] = {}
        self.size = 0


class Subscriber(Call):
    """A listener that stays, for an `audience` of so many. It is given every value, and each has its own outcome.

    Its give() never answers True for what is answered already: that has no outcome. While it subscribes, its
    audience is changed by the junction.
    """

    __slots__ = ("audience",)

    audience: int


class Subscribers:
    """Those of one topic, and how many they are for."""

    __slots__ = ("audience", "members")

    def __init__(self) -> None:
        self.members: dict[Subscriber, None] = {}
        self.audience = 0


class Junction:
    """The waiting calls of all topics. On one topic senders wait, or listeners, never both. No line is empty."""

    __slots__ = ("_arrivals", "_receivers", "_senders", "_subscribers", "_takers")

    def __init__(self) -> None:
        self._arrivals = 0
        self._senders: dict[bytes, Line] = {}
        self._receivers: dict[bytes, Line] = {}
        self._takers: dict[bytes, Groups] = {}
        self._subscribers: dict[bytes, Subscribers] = {}

    def __len__(self) -> int:
        """Return the number of topics that somebody is at. It takes time where many have callers of several kinds."""
        called = [self._senders.keys(), self._receivers.keys(), self._takers.keys()]
        subscribed = self._subscribers.keys()
        again = len(called[1] & called[2]) + len(set().union(*(subscribed & topics for topics in called)))
        return sum(map(len, called)) + len(subscribed) - again

    def send(self, send: Call) -> bool:
        """Offer a value to all who listen. Returns False if nobody took it and its caller still hopes."""
        self._arrived(send)
        topic = send.topic
        # One offer more while there are listeners to ask: one that is lost meanwhile is not the last hope.
        send.offers += 1
        if topic in self._subscribers:
            # A copy, since one that is given a value may leave, or have others leave.
            for subscriber in self.subscribers(topic):
                if subscriber.give(send):
                    send.offers += 1
        while topic in self._receivers or topic in self._takers:
            self._offer(send)
            if send.offers > 1 or send.answered:
                break
        send.offers -= 1
        return send.offers > 0 or send.answered

    def publish(self, send: Call) -> None:
        """Give a value to all who listen, whether anybody does or not."""
        send.answered = True
        self.send(send)

    def _offer(self, send: Call) -> None:
        topic = send.topic
        # The line is closed first, so that who listens again meanwhile is not asked twice.
        receivers: Line | None = self._receivers.pop(topic, None)
        while receivers is not None and receivers.first is not None:
            receiver = receivers.first
            receivers.remove(receiver)
            if receiver.give(send):
                send.offers += 1
        groups: Groups | None = self._takers.get(topic)
        if groups is not None:
            for group in list(groups.lines):
                self._send_to_group(send, group)

    def _send_to_group(self, send: Call, group: bytes) -> None:
        groups: Groups | None
        line: Line | None
        while (groups := self._takers.get(send.topic)) is not None and (line := groups.lines.get(group)) is not None:
            taker = line.first
            assert taker is not None, "an empty line is not kept"
            self.withdraw(taker)
            if taker.give(send):
                send.offers += 1
                return

    def listen(self, listener: Call) -> bool:
        """Give the oldest waiting value to `listener`. Returns False if none waits.

        After True its give() was called, and has taken or refused the value.
        """
        self._arrived(listener)
        line: Line | None = self._senders.get(listener.topic)
        if line is None:
            return False
        send = line.first
        assert send is not None, "an empty line is not kept"
        self.withdraw(send)
        if listener.give(send):
            send.offers += 1
        elif not send.answered:
            self.wait(send)
        return True

    def subscribe(self, subscriber: Subscriber) -> None:
        """Give all values that wait to `subscriber`, and every one that comes from now on."""
        topic = subscriber.topic
        subscribers: Subscribers | None = self._subscribers.get(topic)
        if subscribers is None:
            subscribers = self._subscribers[topic] = Subscribers()
        if subscriber not in subscribers.members:
            subscribers.members[subscriber] = None
            subscribers.audience += subscriber.audience
        line: Line | None = self._senders.get(topic)
        for send in line.calls() if line is not None else ():
            if not self.withdraw(send):
                continue  # whoever got the one before it had it leave
            if subscriber.give(send):
                send.offers += 1
            elif not send.answered:
                self.wait(send)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Give `subscriber` nothing more; without effect for one that does not subscribe."""
        subscribers: Subscribers | None = self._subscribers.get(subscriber.topic)
        if subscribers is not None and subscriber in subscribers.members:
            del subscribers.members[subscriber]
            subscribers.audience -= subscriber.audience
            if not subscribers.members:
                del self._subscribers[subscriber.topic]

    def resize(self, subscriber: Subscriber, audience: int) -> None:
        """Have `subscriber` be for so many, whether or not it subscribes now."""
        subscribers: Subscribers | None = self._subscribers.get(subscriber.topic)
        if subscribers is not None and subscriber in subscribers.members:
            subscribers.audience += audience - subscriber.audience
        subscriber.audience = audience

    def subscribers(self, topic: bytes) -> list[Subscriber]:
        """Return who subscribes to `topic`."""
        subscribers: Subscribers | None = self._subscribers.get(topic)
        return [] if subscribers is None else list(subscribers.members)

    def _arrived(self, call: Call) -> None:
        if not call.arrival:
            self._arrivals += 1
            call.arrival = self._arrivals

    def wait(self, call: Call) -> None:
        """Put a call that met nobody in its line."""
        assert call.line is None, "it stands in one line"
        lines: dict[bytes, Line]
        if call.value is not None:
            lines, key = self._senders, call.topic
        elif call.group is None:
            lines, key = self._receivers, call.topic
        else:
            groups: Groups | None = self._takers.get(call.topic)
            if groups is None:
                groups = self._takers[call.topic] = Groups()
            groups.size += 1
            lines, key = groups.lines, call.group
        line: Line | None = lines.get(key)
        if line is None:
            line = lines[key] = Line()
        line.add(call)

    def withdraw(self, call: Call) -> bool:
        """Take a call out of its line. Returns False if it stands in none, because it was offered or given."""
        line = call.line
        if line is None:
            return False
        line.remove(call)
        if call.group is not None:
            groups: Groups = self._takers[call.topic]
            groups.size -= 1
        if not line.size:
            self._close(line, call)
        return True

    def _close(self, line: Line, last: Call) -> None:
        """Forget a line that its last call has left, if it is not forgotten already."""
        lines: dict[bytes, Line]
        if last.value is not None:
            lines, key = self._senders, last.topic
        elif last.group is None:
            lines, key = self._receivers, last.topic
        else:
            groups: Groups = self._takers[last.topic]
            lines, key = groups.lines, last.group
        if lines.get(key) is line:
            del lines[key]
            if last.group is not None and not lines:
                del self._takers[last.topic]

    def confirm(self, send: Call) -> None:
        """One listener that was given the value surely has it."""
        assert send.offers > 0, "each offer has one outcome"
        send.offers -= 1
        if not send.answered:
            send.answered = True
            send.met()

    def lost(self, send: Call) -> None:
        """One listener that was given the value is gone; if it was the last hope, the send waits again."""
        assert send.offers > 0, "each offer has one outcome"
        send.offers -= 1
        if not send.offers and not send.answered:
            send.missed()

    def resume(self, send: Call) -> None:
        """Offer a value again, or have it wait in its place by the time it first came."""
        assert not send.offers, "nobody may still have it"
        assert not send.answered, "its caller still hopes"
        if not self.send(send):
            self.wait(send)

    def census(self, topic: bytes) -> Census:
        """Count who is at `topic`, its first groups each and the others together; `oldest` is of those."""
        receivers: Line | None = self._receivers.get(topic)
        senders: Line | None = self._senders.get(topic)
        groups: Groups | None = self._takers.get(topic)
        subscribers: Subscribers | None = self._subscribers.get(topic)
        lines = [line for line in (receivers, senders) if line is not None]
        takers: dict[bytes, int] = {}
        if groups is not None:
            others, room = groups.size, MAX_NAMES
            for group, line in islice(groups.lines.items(), MAX_GROUPS):
                room -= len(group)
                if room < 0:
                    break
                lines.append(line)
                takers[group] = line.size
                others -= line.size
            if others:
                takers[NIL] = takers.get(NIL, 0) + others
        oldest = None
        for line in lines:
            if line.first is not None and (oldest is None or line.first.since < oldest):
                oldest = line.first.since
        return Census(
            receivers=receivers.size if receivers is not None else 0,
            takers=takers,
            senders=senders.size if senders is not None else 0,
            subscribers=subscribers.audience if subscribers is not None else 0,
            oldest=oldest,
        )
