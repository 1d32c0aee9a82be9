"""The topics that somebody here subscribes to, and where their values come from.

Each worker asks the owner of a topic for its values, once for all who subscribe here, and no other
worker stands between: one that dies, or is replaced, has nothing in its hands that is for others'
subscribers. Subscribers stand in the junction only where the values meet, or one that is published
by another ring could overtake those on their way.

When the ring changes, a worker first has the old owner say that it sends nothing more, and only
then asks the new one: no value comes twice, or after one that was published later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workers.calls.inquiries import Carrier
from workers.calls.owner import Owner
from workers.calls.splits import Splits, Traveller
from workers.core._core import Core


class Waiter(Protocol):
    """Who waits for a change of a topic's audience."""

    def in_effect(self) -> None:
        """The owner of the topic knows of it."""


class Subscriber(Protocol):
    """Who is given the values of a topic."""

    topic: bytes
    row: int
    """By which the core knows it."""

    def cut_off(self) -> None: ...


class Movable(Subscriber, Traveller, Protocol):
    """One that may go from one worker of this node to another: it stands at the one until it does at the other."""

    def owner_is_lost(self) -> None:
        """Who is asked for its values is dead, or has a successor, and has said its last."""


class TopicInterest:
    """The values of one topic, for all who subscribe to it here or through here."""

    __slots__ = (
        "_asked", "_carrier", "_core", "_interests", "_moving", "_parting", "_pending", "_source", "_subscribers",
        "audience", "topic",
    )  # fmt: skip

    def __init__(self, topic: bytes, interests: Interests, core: Core) -> None:
        self.topic = topic
        self._core = core
        self._subscribers: dict[Subscriber, None] = {}  # whose subscription is in effect
        self.audience = 0  # how many they are
        self._interests = interests
        self._source = interests.source(topic)
        self._carrier: Carrier | None = self._source.carrier  # by which it is asked for; None where values meet here
        self._asked: list[list[Waiter]] = []  # who waits for each answer, in the order of what was asked
        self._pending: list[Waiter] = []  # who waits until the new source can be asked
        self._parting = False  # from the old one
        self._moving: dict[Movable, None] = {}

    def source(self) -> Carrier | None:
        """By which way its values come, None from here; Absent where that is about to be another."""
        return self._carrier if self._is_current() and not self._parting else self._source.absent

    def _is_current(self) -> bool:
        """Whether who is asked for its values is who should be."""
        source = self._interests.source(self.topic)
        return source is self._source and source.carrier is self._carrier

    # Who comes from another worker, or goes to one.

    def leaves(self, subscriber: Movable) -> None:
        """It is to go, and stands until it does."""
        self._moving[subscriber] = None

    def comes(self, subscriber: Movable) -> None:
        """It is one of those who subscribe, and stands once the owner has it split."""
        assert subscriber.split_as is not None, "it comes from somewhere"
        self._moving[subscriber] = None
        self.change(1, None)
        if self._carrier is None:
            self._interests.splits.tell(*subscriber.split_as)
            self._interests.splits.cut(*subscriber.split_as)
        else:
            self._carrier.split(self.topic, *subscriber.split_as)

    def moves_no_more(self, subscriber: Movable) -> None:
        """It has come, or gone, or does neither."""
        self._moving.pop(subscriber, None)

    def stand(self, subscriber: Subscriber) -> None:
        """Give all values to `subscriber` from now on."""
        self._subscribers[subscriber] = None
        self._have_stand(subscriber)

    def _have_stand(self, subscriber: Subscriber) -> None:
        """Give it what meets here as well, or only what comes over links."""
        if self._carrier is None:
            self._core.stand(subscriber.row)
        else:
            self._core.hear_afar(subscriber.row)

    def leave(self, subscriber: Subscriber) -> None:
        """Give it none any more."""
        self._subscribers.pop(subscriber, None)
        self._core.stand_no_more(subscriber.row)

    def cut_off(self) -> None:
        """Values were lost on their way here."""
        everybody: dict[Subscriber, None] = {**self._subscribers, **dict.fromkeys(self._moving)}
        for subscriber in everybody:
            subscriber.cut_off()

    def change(self, by: int, waiter: Waiter | None) -> None:
        """Have so many more subscribe; the waiter is told once that is in effect."""
        self.audience += by
        assert self.audience >= 0, "nobody leaves who has not come"
        waiters = [] if waiter is None else [waiter]
        if self._parting:
            self._pending += waiters
        elif self._carrier is None:
            self._effected(waiters)
        else:
            self._asked.append(waiters)
            self._carrier.subscribe(self)

    def goes_by(self, carrier: Carrier) -> bool:
        """Return whether it is asked for by this way now."""
        return carrier is self._carrier

    def answered(self, by: Carrier) -> None:
        """What was asked longest ago is in effect at the source."""
        if by is not self._carrier or not self._asked:
            return  # it had its place before, and may have it again
        waiters = self._asked.pop(0)
        if self._asked or not self._parting:
            self._effected(waiters)
        else:
            by.forget_interest(self)
            self._begin()

    def lost(self, by: Carrier) -> None:
        """The carrier is gone, or another has its place: ask anew."""
        if by is self._carrier:
            by.forget_interest(self)
            self._ask_anew()
            for subscriber in [*self._moving]:
                subscriber.owner_is_lost()

    def handed_over(self, by: Carrier) -> None:
        """Another has the place of the carrier, if it is this one. What that one has sent may still come."""
        if by is self._carrier and not self._parting:
            self._ask_anew()

    def _ask_anew(self) -> None:
        self._pending += [waiter for waiters in self._asked for waiter in waiters]
        self._begin()

    def ring_changed(self) -> bool:
        """Part from the source if it is another's turn; return whether that can be done now.

        It cannot as long as that source is to say from when on a subscription is another worker's.
        """
        if self._parting or self._is_current():
            return True
        if self._carrier is None:
            self._begin()
            return True
        if self._moving:
            return False
        self._parting = True
        self._pending = [waiter for waiters in self._asked for waiter in waiters]
        self._asked = [[] for _ in range(len(self._asked) + 1)]  # the last is the farewell
        self._carrier.unsubscribe(self)
        return True

    def _begin(self) -> None:
        """Ask whoever is the source now."""
        was_here = self._carrier is None
        self._parting = False
        self._source = self._interests.source(self.topic)
        self._carrier = self._source.carrier
        if was_here != (self._carrier is None):
            for subscriber in [*self._subscribers]:
                self._core.stand_no_more(subscriber.row)
                self._have_stand(subscriber)
        waiters, self._pending = self._pending, []
        self._asked = []
        if self._carrier is not None and self.audience:
            self._asked.append(waiters)
            self._carrier.subscribe(self)
        else:
            self._effected(waiters)

    def _effected(self, waiters: list[Waiter]) -> None:
        for waiter in waiters:
            waiter.in_effect()
        if not self.audience and not self._asked:
            if self._carrier is not None:
                self._carrier.forget_interest(self)
            self._interests.forget(self)


class Interests:
    """All of one worker."""

    def __init__(self, core: Core, source: Callable[[bytes], Owner]) -> None:
        """`source` tells whom a topic's values come from."""
        self.source = source
        self.splits = Splits(core)
        self._core = core
        self._interests: dict[bytes, TopicInterest] = {}

    def __len__(self) -> int:
        """Return the number of topics."""
        return len(self._interests)

    def change(self, topic: bytes, by: int, waiter: Waiter | None) -> None:
        """Have so many more subscribe to a topic, here or through here; the waiter is told once that is in effect."""
        self._interest(topic).change(by, waiter)

    def _interest(self, topic: bytes) -> TopicInterest:
        interest = self._interests.get(topic)
        if interest is None:
            interest = self._interests[topic] = TopicInterest(topic, self, self._core)
        return interest

    def comes_from(self, topic: bytes) -> int:
        """Return the life of the worker of this node that values of a topic come from here.

        Where they come from elsewhere, or may soon, it is 0.
        """
        interest = self._interests.get(topic)
        carrier = self.source(topic).carrier if interest is None else interest.source()
        return self._core.life if carrier is None else carrier.life

    def leaves(self, subscriber: Movable) -> None:
        """Have one that stands go, once the owner of its topic says so."""
        self.splits.leaves(subscriber)
        self._interests[subscriber.topic].leaves(subscriber)

    def comes(self, subscriber: Movable) -> None:
        """Have one come, whose values come from the same worker here as where it leaves."""
        self.splits.comes(subscriber)
        self._interest(subscriber.topic).comes(subscriber)

    def moves_no_more(self, subscriber: Movable) -> None:
        """One has come, or gone, or does neither."""
        self.splits.forget(subscriber)
        interest = self._interests.get(subscriber.topic)
        if interest is not None:
            interest.moves_no_more(subscriber)

    def stand(self, subscriber: Subscriber) -> None:
        """Give all values of its topic, to which somebody is subscribing, to `subscriber` from now on."""
        self._interests[subscriber.topic].stand(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        """Give it none any more; without effect for one that does not stand."""
        interest = self._interests.get(subscriber.topic)
        if interest is not None:
            interest.leave(subscriber)

    def forget(self, interest: TopicInterest) -> None:
        """Nobody subscribes to that topic any more."""
        if self._interests.get(interest.topic) is interest:
            del self._interests[interest.topic]

    def all(self) -> list[TopicInterest]:
        """Return those there are."""
        return list(self._interests.values())
