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


class Movable(Subscriber, Waiter, Traveller, Protocol):
    """One that may come from another worker of this node, or go to one: splits.py has how.

    One that comes has itself split once it is in effect, and stands once that is done.
    """


class TopicInterest:
    """The values of one topic, for all who subscribe to it here or through here."""

    __slots__ = (
        "_arriving", "_asked", "_carrier", "_core", "_departing", "_interests", "_parting", "_pending", "_source",
        "_subscribers", "audience", "topic",
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
        self._arriving: dict[Movable, None] = {}
        self._departing: dict[Movable, None] = {}

    # Who comes from another worker, or goes to one.

    @property
    def comes_from(self) -> int:
        """The life of the worker of this node whose values these are; 0 if they come from elsewhere, or may soon."""
        if self._parting:
            return 0
        return self._core.life if self._carrier is None else self._carrier.life

    def depart(self, subscriber: Movable) -> None:
        """It stands until it is told to end, or who is asked for its values is dead."""
        self._departing[subscriber] = None

    def arrive(self, subscriber: Movable) -> None:
        """It is one of those who subscribe, and stands later."""
        self._arriving[subscriber] = None
        self.change(1, subscriber)

    def goes_nowhere(self, subscriber: Movable) -> None:
        """It has come, or gone, or does neither."""
        self._arriving.pop(subscriber, None)
        self._departing.pop(subscriber, None)

    def split(self, subscriber: Movable) -> None:
        """Have the owner say when it stands."""
        assert subscriber.split is not None, "it comes from somewhere"
        if self._carrier is None:
            self._interests.splits.tell(*subscriber.split)
            self._interests.splits.cut(*subscriber.split)
        else:
            self._carrier.split(self.topic, *subscriber.split)

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
        for subscriber in [*self._subscribers, *self._arriving]:
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
            for subscriber in [*self._departing]:
                subscriber.departs()  # what the next one hands out is for where it goes

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
        if self._parting:
            return True
        source = self._interests.source(self.topic)
        if source is self._source and source.carrier is self._carrier:
            return True
        if self._carrier is None:
            self._begin()
            return True
        if self._arriving or self._departing:
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
        waiters += [subscriber for subscriber in self._arriving if subscriber not in waiters]
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
        if interest is not None:
            return interest.comes_from
        carrier = self.source(topic).carrier
        return self._core.life if carrier is None else carrier.life

    def depart(self, subscriber: Movable) -> None:
        """Have one that stands go, once the owner of its topic says so."""
        self.splits.depart(subscriber)
        self._interests[subscriber.topic].depart(subscriber)

    def arrive(self, subscriber: Movable) -> None:
        """Have one come, whose values come from the same worker as where it departs."""
        self.splits.arrive(subscriber)
        self._interest(subscriber.topic).arrive(subscriber)

    def goes_nowhere(self, subscriber: Movable) -> None:
        """One has come, or gone, or does neither."""
        self.splits.forget(subscriber)
        interest = self._interests.get(subscriber.topic)
        if interest is not None:
            interest.goes_nowhere(subscriber)

    def split(self, subscriber: Movable) -> None:
        """Have the owner of its topic, which knows of it, say when it stands here."""
        self._interests[subscriber.topic].split(subscriber)

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
