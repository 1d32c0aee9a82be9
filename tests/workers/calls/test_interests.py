"""Where values come from, against a scripted world: a state machine that answers, dies and moves topics as it likes.

An interest asks one source at a time, over a link that answers in order. The model knows what each source was asked and
what it has answered, and so which of them may still send something.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skywalker.junction import Junction
from skywalker.members import Place
from workers.calls.call import GRACE_S, Carrier
from workers.calls.interests import Interests, TopicInterest
from workers.calls.owner import Owner

TOPICS = [b"\xa1a", b"\xa1b", b"\xa1c"]
some_topic = st.sampled_from([TOPICS[0], TOPICS[0], TOPICS[0], TOPICS[1], TOPICS[2]])
rarely = st.sampled_from([False, False, False, True])


class Link(Carrier):
    """A link that works. What is asked over it has its answer when the world says so, in the order it was asked."""

    def __init__(self, owner: Owner, world: World) -> None:
        super().__init__(owner, GRACE_S)
        self.owner = owner
        self.world = world
        self.interests: dict[bytes, TopicInterest] = {}
        self.asked: list[tuple[bytes, int, int]] = []  # not answered: topic, how many subscribe, and when that was
        self.answered: dict[bytes, tuple[int, int]] = {}  # by topic, the last of those that was answered
        self.works = True

    def subscribe(self, interest: TopicInterest) -> None:
        assert self.works, "it asks a source that is gone"
        self.interests[interest.topic] = interest
        self.asked.append((interest.topic, interest.audience, self.world.step))

    def settle(self) -> None:
        """Values come over it as soon as the world says."""

    def unsubscribe(self, interest: TopicInterest) -> None:
        assert self.works
        self.asked.append((interest.topic, 0, self.world.step))

    def forget_interest(self, interest: TopicInterest) -> None:
        if self.interests.get(interest.topic) is interest:
            del self.interests[interest.topic]

    def may_send(self, topic: bytes) -> bool:
        """Tell whether a value can still come: it was asked for, and has not said that none comes any more."""
        asked = any(name == topic and count for name, count, _ in self.asked)
        return self.works and (asked or self.answered.get(topic, (0, 0))[0] > 0)

    def answer(self) -> None:
        topic, count, since = self.asked.pop(0)
        self.answered[topic] = (count, since)
        self.interests[topic].answered(self)

    def die(self) -> None:
        self.works = False
        self.owner.lost(self)
        for interest in [*self.interests.values()]:
            interest.lost(self)


class Change:
    """What somebody who subscribes, or does no more, waits for; being told, it may subscribe anew."""

    def __init__(self, world: World, topic: bytes, *, subscribes: bool, again: bool) -> None:
        self.world = world
        self.topic = topic
        self.since = world.step
        self.subscribes = subscribes
        self.again = again
        self.ended = False
        self.told = 0

    def in_effect(self) -> None:
        self.told += 1
        self.world.told(self)


class World(RuleBasedStateMachine):
    """The interests of one worker, those that they ask, and a ring that changes."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0
        self.here = Owner(Place("us", 0), is_here=True)
        self.others = [Owner(Place("us", 1)), Owner(Place("them", 0)), Owner(Place("them", 1))]
        self.ring = dict.fromkeys(TOPICS, self.here)
        self.links: list[Link] = []
        self.junction = Junction()
        self.interests = Interests(self.junction, self.owner)
        self.subscribed: dict[bytes, list[Change]] = {topic: [] for topic in TOPICS}
        self.changes: list[Change] = []
        self.expected: list[Change] = []  # to be told, in this order
        self.nested = 0  # that are told while one before them is
        self.moved: set[bytes] = set()  # topics whose interest was not told yet that the ring is another

    # What interests ask of who knows the ring, and of those who wait.

    def owner(self, topic: bytes) -> Owner:
        return self.ring[topic]

    def told(self, change: Change) -> None:
        assert change.told == 1
        first = next(each for each in self.expected if each.topic == change.topic)
        assert first is change or self.nested, "in the order they came"
        self.expected.remove(change)
        links = [link for link in self.links if link.may_send(change.topic)]
        known = [link.answered.get(change.topic, (0, 0)) for link in links]
        if not change.subscribes:
            assert all(since >= change.since for count, since in known if count), "the source still counts it"
        elif not change.ended:
            assert all(since >= change.since for _, since in known), "the source does not count it yet"
            source = self.interests.source(change.topic)
            assert links or source.carrier is None or change.topic in self.moved, "nobody was asked"
        if change.again:
            self.nested += 1
            self.change(change.topic, subscribes=True)
            self.nested -= 1

    # Steps.

    def change(self, topic: bytes, *, subscribes: bool, again: bool = False) -> None:
        self.step += 1
        change = Change(self, topic, subscribes=subscribes, again=again)
        self.changes.append(change)
        self.expected.append(change)
        if subscribes:
            self.subscribed[topic].append(change)
        self.interests.change(topic, 1 if subscribes else -1, change)

    def pick(self, data: st.DataObject, among: Iterable[Any]) -> Any:
        found = list(among)
        return data.draw(st.sampled_from(found)) if found else None

    @rule(topic=some_topic, again=rarely)
    def subscribe(self, topic: bytes, again: bool) -> None:
        self.change(topic, subscribes=True, again=again)

    @rule(topic=some_topic, which=st.integers(0, 3), again=rarely)
    def unsubscribe(self, topic: bytes, which: int, again: bool) -> None:
        if which < len(self.subscribed[topic]):
            self.subscribed[topic].pop(which).ended = True
            self.change(topic, subscribes=False, again=again)

    @rule(topic=some_topic, count=st.integers(0, 3))
    def go_without_a_word(self, topic: bytes, count: int) -> None:
        gone, self.subscribed[topic] = self.subscribed[topic][:count], self.subscribed[topic][count:]
        for change in gone:
            change.ended = True
        self.step += 1
        self.interests.change(topic, -len(gone), None)

    @rule(data=st.data(), count=st.integers(1, 4))
    def answer(self, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            link = self.pick(data, (link for link in self.links if link.asked and link.works))
            if link is not None:
                link.answer()

    @rule(data=st.data())
    def find_an_owner(self, data: st.DataObject) -> None:
        there = [link.owner for link in self.links if link.works]
        owner = self.pick(data, (owner for owner in self.others if owner not in there))
        if owner is not None:
            link = Link(owner, self)
            self.links.append(link)
            owner.met(link)

    @rule(data=st.data())
    def lose_a_link(self, data: st.DataObject) -> None:
        link = self.pick(data, (link for link in self.links if link.works))
        if link is not None:
            link.die()

    @rule(topic=some_topic, data=st.data())
    def move_a_topic(self, topic: bytes, data: st.DataObject) -> None:
        """Have the ring say another owner: interests hear of it a while later."""
        self.ring[topic] = self.pick(data, [self.here, *self.others])
        self.moved.add(topic)

    @rule(data=st.data())
    def tell_of_the_ring(self, data: st.DataObject) -> None:
        for interest in data.draw(st.permutations(self.interests.all())):
            interest.ring_changed()
        self.moved.clear()

    # What always holds.

    @invariant()
    def there_is_one_source_at_a_time(self) -> None:
        for topic in TOPICS:
            assert sum(link.may_send(topic) for link in self.links) <= 1

    @invariant()
    def nobody_is_told_twice_or_forgotten(self) -> None:
        assert all(change.told == (change not in self.expected) for change in self.changes)

    @invariant()
    def who_is_told_nothing_waits_for_somebody(self) -> None:
        for change in self.expected:
            absent = [owner.absent for owner in self.others]
            asked = any(name == change.topic for link in self.links if link.works for name, _, _ in link.asked)
            assert asked or any(len(each) for each in absent), "nobody will ever tell it"

    @invariant()
    def topics_without_subscribers_take_no_memory(self) -> None:
        # While an owner cannot be asked, what was wanted of it waits, even if that is nothing any more.
        awaited = {name for link in self.links if link.works for name, _, _ in link.asked}
        if not any(len(owner.absent) for owner in self.others):
            assert all(interest.audience or interest.topic in awaited for interest in self.interests.all())
        assert all(interest.audience == len(self.subscribed[interest.topic]) for interest in self.interests.all())

    def teardown(self) -> None:
        for owner in self.others:
            if owner.carrier is owner.absent:
                self.links.append(Link(owner, self))
                owner.met(self.links[-1])
        for interest in self.interests.all():
            interest.ring_changed()
        self.answer_all()
        # All is settled: the right source has the right number.
        for topic in TOPICS:
            link, count = self.interests.source(topic).carrier, len(self.subscribed[topic])
            known = {each: each.answered.get(topic, (0, 0))[0] for each in self.links if each.works}
            assert {each: some for each, some in known.items() if some} == ({link: count} if link and count else {})
        for topic in TOPICS:
            self.interests.change(topic, -len(self.subscribed[topic]), None)
        self.answer_all()
        assert self.expected == []
        assert len(self.interests) == 0
        assert not any(link.interests for link in self.links if link.works)
        assert not any(len(owner.absent) for owner in self.others)

    def answer_all(self) -> None:
        while asked := [link for link in self.links if link.asked and link.works]:
            asked[0].answer()


World.TestCase.settings = settings(max_examples=200, stateful_step_count=40)
TestFeedsInAScriptedWorld = World.TestCase
