"""Where calls meet: for each topic a line of waiting senders or lines of waiting listeners.

A send goes to every receiver that waits at that moment and to one taker of each group; with
none it waits. A listener takes the oldest waiting send, and only that. Nothing here knows of
connections, of bytes on a wire, or of time: whoever opens a door to the junction derives a
Send and a Listener that can answer their callers, has them wait() where nobody is there to
meet them, and withdraws them at their deadlines.

A rendezvous has two steps, because a listener can be lost after it was given a value:

    offer     listener.give(send) says whether the listener can have the value
    outcome   junction.confirm(send): the value is surely the listener's, and send.met() tells
              the sender. Or junction.lost(send): unless another listener may still confirm,
              send.missed() decides; to resume(send) puts it back in its place in the line.

Every operation is O(1), but for the listeners it reaches and for putting a call back into
the middle of a line. A topic that nobody waits on takes no memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Waiter:
    """What can stand in a line. `since` is when its call arrived, in seconds on any one clock."""

    __slots__ = ("arrival", "next", "previous", "since", "topic", "waits")

    def __init__(self, topic: bytes, since: float) -> None:
        self.topic = topic
        self.since = since
        self.arrival = 0  # orders calls with one `since`, as all those that were read at once have
        self.waits = False  # whether it stands in a line; its neighbours there follow
        self.previous: Any = None
        self.next: Any = None

    def precedes(self, other: Waiter) -> bool:
        """Tell whether this came before `other`."""
        return self.since < other.since or (self.since == other.since and self.arrival < other.arrival)


class Send(Waiter):
    """A value on its way to the listeners of a topic."""

    __slots__ = ("answered", "offers", "value")

    def __init__(self, topic: bytes, since: float, value: bytes) -> None:
        super().__init__(topic, since)
        self.value = value
        self.offers = 0  # listeners that have the value and have neither confirmed nor lost it
        self.answered = False  # its caller knows the outcome: nothing more is to be done for it

    def met(self) -> None:
        """Tell the caller that a listener surely has the value. Called once, with `answered` set."""
        raise NotImplementedError

    def missed(self) -> None:
        """Every listener that was offered the value is lost: resume, or tell the caller that nobody came."""
        raise NotImplementedError


class Listener(Waiter):
    """A call that waits for one value. `group` is that of a taker, None for a receiver."""

    __slots__ = ("group",)

    def __init__(self, topic: bytes, since: float, group: bytes | None = None) -> None:
        super().__init__(topic, since)
        self.group = group

    def give(self, send: Send) -> bool:
        """Take the value towards the caller, or refuse it. Either way this no longer listens.

        After True, the junction must be told of exactly one outcome, confirm() or lost(), and
        not before give() has returned. After False it is the listener's own business to listen
        again or to tell its caller.
        """
        raise NotImplementedError


class Line:
    """Waiters of one kind by the time they came, linked through themselves so that any can leave at once."""

    __slots__ = ("first", "last", "returned", "size")

    def __init__(self) -> None:
        self.first: Any = None
        self.last: Any = None
        self.returned: Any = None  # who last came back to its place; those lost with it follow it here
        self.size = 0

    def add(self, waiter: Waiter) -> None:
        """Put `waiter` behind all that came before it: nearly always last."""
        before = self.last
        if before is not None and waiter.precedes(before):
            before = self._predecessor(waiter)
            self.returned = waiter
        after = self.first if before is None else before.next
        waiter.waits = True
        waiter.previous, waiter.next = before, after
        if before is None:
            self.first = waiter
        else:
            before.next = waiter
        if after is None:
            self.last = waiter
        else:
            after.previous = waiter
        self.size += 1

    def _predecessor(self, waiter: Waiter) -> Any:
        if waiter.precedes(self.first):
            return None
        before = self.returned or self.last
        while waiter.precedes(before):
            before = before.previous
        while not waiter.precedes(before.next):
            before = before.next
        return before

    def remove(self, waiter: Waiter) -> None:
        """Take out `waiter`, which must be in this line."""
        before, after = waiter.previous, waiter.next
        if waiter is self.returned:
            self.returned = before
        if before is None:
            self.first = after
        else:
            before.next = after
        if after is None:
            self.last = before
        else:
            after.previous = before
        waiter.waits = False
        waiter.previous = waiter.next = None
        self.size -= 1

    def take_all(self) -> list[Any]:
        """Take out and return every waiter, first come first."""
        waiters = []
        while self.first is not None:
            waiters.append(self.first)
            self.remove(self.first)
        return waiters


class Census(NamedTuple):
    """Who waits on a topic; `oldest` is when the longest waiting of them came, None if nobody waits."""

    receivers: int
    takers: dict[bytes, int]
    senders: int
    oldest: float | None


class Junction:
    """The waiting calls of all topics. On one topic senders wait, or listeners, never both."""

    __slots__ = ("_arrivals", "_receivers", "_senders", "_takers")

    def __init__(self) -> None:
        self._arrivals = 0
        # A line that is empty is not kept.
        self._senders: dict[bytes, Line] = {}
        self._receivers: dict[bytes, Line] = {}
        self._takers: dict[bytes, dict[bytes, Line]] = {}  # by topic, then by group

    def __len__(self) -> int:
        """Return the number of topics that somebody waits on."""
        return len(self._senders) + len(self._receivers.keys() | self._takers.keys())

    def send(self, send: Send) -> bool:
        """Offer a value to all who listen. Returns False if nobody took it and its caller still hopes."""
        if not send.arrival:
            self._arrivals = send.arrival = self._arrivals + 1
        topic = send.topic
        # One offer more while there are listeners to ask: one that is lost meanwhile is not the last hope.
        send.offers += 1
        while topic in self._receivers or topic in self._takers:
            self._offer(send)
            if send.offers > 1 or send.answered:
                break
        send.offers -= 1
        return send.offers > 0 or send.answered

    def _offer(self, send: Send) -> None:
        topic = send.topic
        receivers = self._receivers.pop(topic, None)
        if receivers is not None:
            # All leave the line first: giving to one may close its connection, and with it withdraw others.
            for receiver in receivers.take_all():
                if receiver.give(send):
                    send.offers += 1
        if topic in self._takers:
            for group in list(self._takers[topic]):
                self._send_to_group(send, group)

    def _send_to_group(self, send: Send, group: bytes) -> None:
        while (line := self._takers.get(send.topic, {}).get(group)) is not None:
            taker = line.first
            self.withdraw(taker)
            if taker.give(send):
                send.offers += 1
                return

    def listen(self, listener: Listener) -> bool:
        """Give the oldest waiting value to `listener`. Returns False if none waits.

        After True its give() was called, and has taken or refused the value.
        """
        if not listener.arrival:
            self._arrivals = listener.arrival = self._arrivals + 1
        line = self._senders.get(listener.topic)
        if line is None:
            return False
        send = line.first
        self.withdraw(send)
        if listener.give(send):
            send.offers += 1
        elif not send.answered:
            self.wait(send)
        return True

    def wait(self, waiter: Waiter) -> None:
        """Put a call that met nobody in its line."""
        if isinstance(waiter, Listener):
            if waiter.group is None:
                lines, key = self._receivers, waiter.topic
            else:
                lines, key = self._takers.setdefault(waiter.topic, {}), waiter.group
        else:
            lines, key = self._senders, waiter.topic
        line = lines.get(key)
        if line is None:
            line = lines[key] = Line()
        line.add(waiter)

    def withdraw(self, waiter: Waiter) -> bool:
        """Take a call out of its line. Returns False if it stands in none, because it was offered or given."""
        if not waiter.waits:
            return False
        if not isinstance(waiter, Listener):
            _leave(self._senders, waiter.topic, waiter)
        elif waiter.group is None:
            _leave(self._receivers, waiter.topic, waiter)
        else:
            groups = self._takers[waiter.topic]
            _leave(groups, waiter.group, waiter)
            if not groups:
                del self._takers[waiter.topic]
        return True

    def confirm(self, send: Send) -> None:
        """One listener that was given the value surely has it."""
        send.offers -= 1
        if not send.answered:
            send.answered = True
            send.met()

    def lost(self, send: Send) -> None:
        """One listener that was given the value is gone; if it was the last hope, the send waits again."""
        send.offers -= 1
        if not send.offers and not send.answered:
            send.missed()

    def resume(self, send: Send) -> None:
        """Offer a value again, or have it wait in its place by the time it first came."""
        if not self.send(send):
            self.wait(send)

    def census(self, topic: bytes) -> Census:
        """Count who waits on `topic`."""
        receivers, senders = self._receivers.get(topic), self._senders.get(topic)
        groups = self._takers.get(topic, {})
        lines = [line for line in (receivers, senders, *groups.values()) if line]
        return Census(
            receivers=receivers.size if receivers else 0,
            takers={group: line.size for group, line in groups.items()},
            senders=senders.size if senders else 0,
            oldest=min((line.first.since for line in lines), default=None),
        )


def _leave(lines: dict[bytes, Line], key: bytes, waiter: Waiter) -> None:
    line = lines[key]
    line.remove(waiter)
    if not line.size:
        del lines[key]
