"""Calls, and the lines in which they stand while nobody is there to meet them. The junction has the lines."""

from __future__ import annotations


class Call:
    """One call at the junction: a send if it has a value, else one that listens, for a group or for itself.

    `since` is when it came, in seconds on any one clock.
    """

    __slots__ = ("answered", "arrival", "group", "line", "next", "offers", "previous", "since", "topic", "value")

    def __init__(self, topic: bytes, since: float, value: bytes | None, group: bytes | None) -> None:
        self.begin(topic, since, value, group)

    def begin(self, topic: bytes, since: float, value: bytes | None, group: bytes | None) -> None:
        """Set up a new call: what __init__ does, for those who derive from this and are made often."""
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
        call.line = call.previous = call.next = None  # type: ignore[assignment]  # as begin() says


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

    def cut_off(self) -> None:
        """Values were lost on their way here: see that whoever listens through this knows."""
        raise NotImplementedError


class Subscribers:
    """Those of one topic, and how many they are for."""

    __slots__ = ("audience", "members")

    def __init__(self) -> None:
        self.members: dict[Subscriber, None] = {}
        self.audience = 0
