"""The junction against a list: a state machine drives both and compares them after each step.

The model is one list of all that wait, in the order in which they came, and one of those that
subscribe. The callers of the machine behave badly: they refuse values, and being given one makes
them close connections, their own and others, and with these all that their calls are in the middle of.
"""

from __future__ import annotations

import enum
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skywalker.junction import MAX_GROUPS, MAX_NAMES, Call, Junction, Subscriber
from skywalker.wire.junction import NIL
from tests.calls import Listener, Send

T = TypeVar("T")

TOPICS = [b"\xa1a", b"\xa1b"]


class Manner(enum.Enum):
    """What a listener does with a value it is given."""

    TAKES = "takes it"
    REFUSES = "refuses it"
    BREAKS = "breaks a connection, maybe its own, and takes it if it still can"


some_topic = st.sampled_from([TOPICS[0], TOPICS[0], TOPICS[0], TOPICS[1]])
some_group = st.sampled_from([None, b"\xa1g", b"\xa1g", b"\xa1h"])
some_manner = st.sampled_from([Manner.TAKES, Manner.TAKES, Manner.REFUSES, Manner.BREAKS])
some_age = st.sampled_from([0.0, 0.0, 0.0, 0.001, 1.0])
rarely = st.sampled_from([False, False, False, False, True])


@dataclass(eq=False)
class Connection:
    """Whoever calls: all its calls go down with it."""

    calls: list[CallerSend | CallerListener] = field(default_factory=list)
    subscriptions: list[CallerSubscriber] = field(default_factory=list)
    open: bool = True


class CallerSend(Send):
    """A send that notes what its caller is told."""

    def __init__(self, world: World, connection: Connection, topic: bytes, since: float, *, patient: bool) -> None:
        super().__init__(topic, since, b"value")
        self.world = world
        self.connection = connection
        self.patient = patient  # whether it goes on when every listener that was offered its value is lost
        self.published = False  # it is for who listens now, and its caller is told nothing
        self.resumed = 0  # how often it was offered anew
        self.told: list[str] = []

    def met(self) -> None:
        assert not self.published
        self.told.append("met")

    def missed(self) -> None:
        assert not self.published
        self.world.missed(self)


class CallerListener(Listener):
    """A listener that asks the world what to do with a value."""

    def __init__(
        self, world: World, connection: Connection, topic: bytes, since: float, group: bytes | None, manner: Manner
    ) -> None:
        super().__init__(topic, since, group)
        self.world = world
        self.connection = connection
        self.manner = manner
        self.given: list[Call] = []

    def give(self, send: Call) -> bool:
        assert isinstance(send, CallerSend)
        return self.world.give(self, send)


class CallerSubscriber(Subscriber):
    """A subscriber that asks the world what to do with a value."""

    def __init__(self, world: World, connection: Connection, topic: bytes, manner: Manner, audience: int) -> None:
        super().__init__(topic, world.now, None, None)
        self.world = world
        self.connection = connection
        self.manner = manner
        self.audience = audience
        self.came = 0
        self.given: dict[CallerSend, int] = {}  # how often each value

    def give(self, send: Call) -> bool:
        assert isinstance(send, CallerSend)
        return self.world.give_to_subscriber(self, send)


@dataclass(eq=False)
class Meeting:
    """A send while it is being offered, and who must be asked before that is over."""

    send: CallerSend
    receivers: list[CallerListener]
    groups: set[bytes]
    subscribers: list[CallerSubscriber] = field(default_factory=list)
    only: CallerListener | None = None  # a listener that came to a waiting send: nobody else is asked
    anew: bool = False  # all that took it are lost already: whoever is left may be asked, of any group


@dataclass(eq=False)
class Coming:
    """A subscriber while it is given what waits, the oldest first."""

    subscriber: CallerSubscriber
    left: list[CallerSend]


class World(RuleBasedStateMachine):
    """Callers on connections, the junction, and the model of it."""

    def __init__(self) -> None:
        super().__init__()
        self.junction = Junction()
        self.now = 100.0
        self.connections: list[Connection] = []
        self.sends: list[CallerSend] = []
        # The model.
        self.waiting: list[CallerSend | CallerListener] = []
        self.came: dict[Call, int] = {}
        self.subscribed: list[CallerSubscriber] = []
        self.offered: list[tuple[CallerSend, CallerListener | CallerSubscriber]] = []  # of which the outcome is unknown
        self.meetings: list[Meeting] = []  # those under way, the innermost last
        self.coming: Coming | None = None

    # The model.

    def waits(self, call: CallerSend | CallerListener) -> None:
        """Put a call into the list, by the time it came."""
        self.waiting.append(call)
        self.waiting.sort(key=lambda one: (one.since, self.came[one]))

    def listeners(self, topic: bytes, group: bytes | None) -> list[CallerListener]:
        return [
            call
            for call in self.waiting
            if isinstance(call, CallerListener) and (call.topic, call.group) == (topic, group)
        ]

    def groups(self, topic: bytes) -> set[bytes]:
        calls = (call for call in self.waiting if isinstance(call, CallerListener) and call.topic == topic)
        return {call.group for call in calls if call.group is not None}

    def subscribers(self, topic: bytes) -> list[CallerSubscriber]:
        return [subscriber for subscriber in self.subscribed if subscriber.topic == topic]

    def senders(self, topic: bytes) -> list[CallerSend]:
        return [call for call in self.waiting if isinstance(call, CallerSend) and call.topic == topic]

    def offers(self, send: CallerSend) -> int:
        return sum(offered is send for offered, _ in self.offered)

    # What the junction asks of its callers.

    def give(self, listener: CallerListener, send: CallerSend) -> bool:
        meeting = self.meetings[-1]
        assert meeting.send is send
        assert meeting.subscribers == [], "who subscribes comes first"
        assert not listener.waits
        assert listener not in self.waiting or listener.group is not None
        assert not listener.given, "it asked for one value"
        if meeting.only is not None:
            assert meeting.only is listener
        elif listener.group is None:
            assert meeting.receivers.pop(0) is listener, "receivers in the order they came"
        else:
            assert listener.group in meeting.groups or meeting.anew, "one taker of each group"
            assert self.listeners(send.topic, listener.group)[0] is listener, "takers in the order they came"
            self.waiting.remove(listener)
        if listener.manner is Manner.BREAKS:
            for connection in self.victims(listener):
                self.close(connection)
        if listener.manner is Manner.REFUSES or not listener.connection.open:
            return False
        if listener.group is not None:
            meeting.groups.discard(listener.group)
        meeting.anew = False
        listener.given.append(send)
        self.offered.append((send, listener))
        return True

    def give_to_subscriber(self, subscriber: CallerSubscriber, send: CallerSend) -> bool:
        if self.meetings and self.meetings[-1].send is send:
            assert self.meetings[-1].subscribers.pop(0) is subscriber, "each once, in the order they came"
            return self.takes(subscriber, send)
        assert self.coming is not None
        assert self.coming.subscriber is subscriber
        while self.coming.left[0] not in self.waiting:
            del self.coming.left[0]  # its caller went while one before it was given
        assert self.coming.left.pop(0) is send, "the oldest first"
        self.waiting.remove(send)
        taken = self.takes(subscriber, send)
        if not taken and not send.answered:
            self.waits(send)
        return taken

    def takes(self, subscriber: CallerSubscriber, send: CallerSend) -> bool:
        given = subscriber.given[send] = subscriber.given.get(send, 0) + 1
        assert given <= 1 + send.resumed, "it was given this value before, and has not lost it"
        if subscriber.manner is Manner.BREAKS:
            for connection in self.victims(subscriber):
                self.close(connection)
        # What is answered already has no outcome.
        if subscriber.manner is Manner.REFUSES or not subscriber.connection.open or send.answered:
            return False
        if self.meetings:
            self.meetings[-1].anew = False
        self.offered.append((send, subscriber))
        return True

    def victims(self, listener: CallerListener | CallerSubscriber) -> list[Connection]:
        """Return the connections that break when this listener is given a value: about half of them."""
        came = listener.came if isinstance(listener, CallerSubscriber) else self.came[listener]
        return [connection for index, connection in enumerate(self.connections) if came >> index % 8 & 1]

    def missed(self, send: CallerSend) -> None:
        assert not self.offers(send), "another listener may still have it"
        if send.patient:
            send.resumed += 1
            self.begin_meeting(send)
            self.junction.resume(send)
            if self.end_meeting(send):
                self.waits(send)
        else:
            send.answered = True
            send.told.append("missed")

    # Steps that both take.

    def begin_meeting(self, send: CallerSend) -> None:
        """Before a value is offered: all receivers leave the list, and are asked one by one."""
        receivers = self.listeners(send.topic, None)
        self.waiting = [call for call in self.waiting if call not in receivers]
        self.meetings.append(Meeting(send, receivers, self.groups(send.topic), self.subscribers(send.topic)))

    def end_meeting(self, send: CallerSend) -> bool:
        """After a value was offered: tell whether it met nobody and is to wait."""
        meeting = self.meetings.pop()
        assert meeting.subscribers == [], "every subscriber was asked"
        assert meeting.receivers == [], "every receiver was asked"
        assert not meeting.groups & self.groups(send.topic), "every group was asked until one took it"
        if send.answered or self.offers(send):
            return False
        assert not self.groups(send.topic), "it waits although somebody listens"
        return True

    def close(self, connection: Connection) -> None:
        """Do what a session does when its connection is lost."""
        if not connection.open:
            return
        connection.open = False
        for subscriber in connection.subscriptions:
            self.unsubscribe(subscriber)
        for call in connection.calls:
            self.withdraw(call)
            if isinstance(call, CallerSend):
                call.answered = True
        for send, listener in list(self.offered):
            if listener.connection is connection and (send, listener) in self.offered:
                self.lose(send, listener)

    def withdraw(self, call: CallerSend | CallerListener) -> None:
        # A receiver that is withdrawn before its turn in a meeting is not asked.
        lines = [self.waiting, *(meeting.receivers for meeting in self.meetings)]
        assert self.junction.withdraw(call) == any(call in line for line in lines)
        for line in lines:
            if call in line:
                line.remove(call)  # type: ignore[arg-type]  # it is of the kind that it found there
        assert not call.waits

    def unsubscribe(self, subscriber: CallerSubscriber) -> None:
        # One that leaves while a value is handed out is asked nevertheless: it refuses.
        self.junction.unsubscribe(subscriber)
        if subscriber in self.subscribed:
            self.subscribed.remove(subscriber)

    def lose(self, send: CallerSend, listener: CallerListener | CallerSubscriber) -> None:
        self.offered.remove((send, listener))
        for meeting in self.meetings:
            if meeting.send is send and not self.offers(send):
                meeting.anew = True
        self.junction.lost(send)

    def pick(self, data: st.DataObject, among: list[T]) -> T | None:
        return data.draw(st.sampled_from(among)) if among else None

    # Rules.

    @initialize(count=st.integers(2, 5))
    def connect_some(self, count: int) -> None:
        self.connections = [Connection() for _ in range(count)]

    @rule()
    def connect(self) -> None:
        self.connections.append(Connection())

    @rule(seconds=st.sampled_from([0.001, 1.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        data=st.data(),
        topic=some_topic,
        age=some_age,
        patient=st.sampled_from([True, True, True, False]),
        zero_timeout=rarely,
    )
    def send(self, data: st.DataObject, topic: bytes, age: float, patient: bool, zero_timeout: bool) -> None:
        connection = self.pick(data, [each for each in self.connections if each.open])
        if connection is None:
            return
        send = CallerSend(self, connection, topic, self.now - age, patient=patient)
        connection.calls.append(send)
        self.sends.append(send)
        self.came[send] = len(self.came)
        self.begin_meeting(send)
        met = self.junction.send(send)
        assert self.end_meeting(send) == (not met)
        if not met and zero_timeout:
            send.answered = True
        elif not met:
            self.waits(send)
            self.junction.wait(send)

    @rule(data=st.data(), topic=some_topic)
    def publish(self, data: st.DataObject, topic: bytes) -> None:
        connection = self.pick(data, [each for each in self.connections if each.open])
        if connection is None:
            return
        publication = CallerSend(self, connection, topic, self.now, patient=False)
        publication.published = True
        self.came[publication] = len(self.came)
        self.sends.append(publication)
        waiting = self.senders(topic)
        self.begin_meeting(publication)
        self.junction.publish(publication)
        assert not self.end_meeting(publication), "it waits for nobody"
        takers = [taker for offered, taker in self.offered if offered is publication]
        assert not any(isinstance(taker, CallerSubscriber) for taker in takers), "it is answered from the beginning"
        assert not publication.waits
        assert publication.told == []
        assert [each for each in self.senders(topic) if each in waiting] == [each for each in waiting if each.waits]

    @rule(data=st.data(), topic=some_topic, manner=some_manner, audience=st.integers(1, 3))
    def subscribe(self, data: st.DataObject, topic: bytes, manner: Manner, audience: int) -> None:
        connection = self.pick(data, [each for each in self.connections if each.open])
        if connection is None:
            return
        subscriber = CallerSubscriber(self, connection, topic, manner, audience)
        subscriber.came = len(self.came) + len(self.subscribed)
        connection.subscriptions.append(subscriber)
        self.subscribed.append(subscriber)
        self.coming = Coming(subscriber, self.senders(topic))
        self.junction.subscribe(subscriber)
        assert not any(each in self.waiting for each in self.coming.left), "every one that waits was offered"
        self.coming = None

    @rule(data=st.data())
    def unsubscribe_one(self, data: st.DataObject) -> None:
        subscriber = self.pick(data, [each for one in self.connections for each in one.subscriptions])
        if subscriber is not None:
            self.unsubscribe(subscriber)

    @rule(
        data=st.data(),
        topic=some_topic,
        crowd=st.lists(st.tuples(some_group, some_manner, some_age, rarely), min_size=1, max_size=6),
    )
    def listen(self, data: st.DataObject, topic: bytes, crowd: list[tuple[bytes | None, Manner, float, bool]]) -> None:
        for group, manner, age, zero_timeout in crowd:
            connection = self.pick(data, [each for each in self.connections if each.open])
            if connection is None:
                return
            listener = CallerListener(self, connection, topic, self.now - age, group, manner)
            connection.calls.append(listener)
            self.came[listener] = len(self.came)
            oldest = next(iter(self.senders(topic)), None)
            if oldest is not None:
                self.waiting.remove(oldest)
                self.meetings.append(Meeting(oldest, [], set(), only=listener))
            asked = self.junction.listen(listener)
            assert asked == (oldest is not None)
            if oldest is not None:
                self.meetings.pop()
                if not oldest.answered and not self.offers(oldest):
                    self.waits(oldest)
            elif not zero_timeout:
                self.waits(listener)
                self.junction.wait(listener)

    @rule(data=st.data())
    def end_a_call_at_its_deadline_or_by_a_cancel(self, data: st.DataObject) -> None:
        calls = [call for connection in self.connections if connection.open for call in connection.calls]
        call = self.pick(data, calls)
        if call is not None:
            self.withdraw(call)

    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        offer = self.pick(data, self.offered)
        if offer is not None:
            self.offered.remove(offer)
            self.junction.confirm(offer[0])
            assert offer[0].answered

    @rule(data=st.data())
    def lose_a_listener(self, data: st.DataObject) -> None:
        offer = self.pick(data, self.offered)
        if offer is not None:
            self.lose(*offer)

    @rule(data=st.data())
    def lose_a_connection(self, data: st.DataObject) -> None:
        connection = self.pick(data, self.connections)
        if connection is not None:
            self.close(connection)

    # What always holds.

    @invariant()
    def the_same_calls_wait(self) -> None:
        assert self.meetings == []
        assert len(self.junction) == len({each.topic for each in (*self.waiting, *self.subscribed)})
        for topic in TOPICS:
            calls = [call for call in self.waiting if call.topic == topic]
            census = self.junction.census(topic)
            assert census.senders == len(self.senders(topic))
            assert census.subscribers == sum(each.audience for each in self.subscribers(topic))
            assert self.junction.subscribers(topic) == self.subscribers(topic)
            assert census.receivers == len(self.listeners(topic, None))
            assert census.takers == {group: len(self.listeners(topic, group)) for group in self.groups(topic)}
            assert census.oldest == min((call.since for call in calls), default=None)
            assert not (census.senders and (census.receivers or census.takers)), "they missed each other"

    @invariant()
    def everybody_who_waits_knows_it(self) -> None:
        for connection in self.connections:
            for call in connection.calls:
                assert call.waits == (call in self.waiting)
                assert connection.open or not call.waits

    @invariant()
    def every_sender_is_told_once_and_the_truth(self) -> None:
        for send in self.sends:
            assert send.offers == self.offers(send)
            assert len(send.told) <= 1
            assert send.answered or not send.told
            if send.offers:
                assert not send.waits

    def teardown(self) -> None:
        while self.offered:
            send, _ = self.offered.pop()
            self.junction.confirm(send)
        for connection in self.connections:
            self.close(connection)
        assert self.waiting == self.subscribed == []
        assert_nothing_is_left_of(self.junction)


World.TestCase.settings = settings(max_examples=200, stateful_step_count=40)
TestJunctionAgainstAList = World.TestCase


def assert_nothing_is_left_of(junction: Junction) -> None:
    assert len(junction) == 0
    assert (junction._senders, junction._receivers, junction._takers, junction._subscribers) == ({}, {}, {}, {})


# What the machine above is too small for.


class PlainSend(Send):
    """A send that goes on if a listener is lost."""

    def __init__(self, junction: Junction, value: bytes, since: float = 0.0) -> None:
        super().__init__(b"\xa1a", since, value)
        self.junction = junction

    def missed(self) -> None:
        self.junction.resume(self)


class PlainListener(Listener):
    """A listener that takes what it is given."""

    def __init__(self, group: bytes | None = None, since: float = 0.0) -> None:
        super().__init__(b"\xa1a", since, group)
        self.values: list[bytes] = []

    def give(self, send: Call) -> bool:
        self.values.append(send.value)
        return True


def send(junction: Junction, value: bytes, since: float = 0.0) -> PlainSend:
    call = PlainSend(junction, value, since)
    if not junction.send(call):
        junction.wait(call)
    return call


def listen(junction: Junction, listener: PlainListener) -> PlainListener:
    if not junction.listen(listener):
        junction.wait(listener)
    return listener


class PlainSubscriber(Subscriber):
    """A subscriber that takes what it is given, or nothing."""

    def __init__(self, take: bool = True) -> None:
        super().__init__(b"\xa1a", 0.0, None, None)
        self.audience = 1
        self.take = take
        self.values: list[bytes] = []

    def give(self, send: Call) -> bool:
        if self.take:
            self.values.append(send.value)
        return self.take and not send.answered


def subscribe(junction: Junction, subscriber: PlainSubscriber) -> PlainSubscriber:
    junction.subscribe(subscriber)
    return subscriber


def publish(junction: Junction, value: bytes) -> PlainSend:
    call = PlainSend(junction, value)
    junction.publish(call)
    return call


def test_who_subscribes_twice_is_given_a_value_once_and_leaves_at_once() -> None:
    junction = Junction()
    subscriber = PlainSubscriber()
    for _ in range(2):
        junction.subscribe(subscriber)
    publish(junction, b"1")
    assert subscriber.values == [b"1"]
    for _ in range(2):
        junction.unsubscribe(subscriber)
    assert_nothing_is_left_of(junction)


@pytest.mark.timeout(60)
def test_many_subscribers_and_many_sends_that_wait_cost_no_more_than_they_are() -> None:
    junction = Junction()
    count = 100_000
    calls = [send(junction, b"1", since=number // 7) for number in range(count)]
    refuses = subscribe(junction, PlainSubscriber(take=False))
    assert all(call.waits for call in calls)
    junction.unsubscribe(refuses)
    assert len(subscribe(junction, PlainSubscriber()).values) == count
    many = [subscribe(junction, PlainSubscriber()) for _ in range(count)]
    random.Random(1).shuffle(many)
    publish(junction, b"2")
    assert all(each.values == [b"2"] for each in many)
    for each in many:
        junction.unsubscribe(each)


# Each of these takes half a second, and a quarter of an hour if leaving a line took time by its length.


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["senders", "receivers", "takers", "groups"])
def test_any_of_many_who_wait_on_one_topic_can_leave_at_once(kind: str) -> None:
    junction = Junction()
    count = 100_000
    calls: list[Send | Listener] = []
    for number in range(count):
        if kind == "senders":
            calls.append(send(junction, b"1", since=number // 7))
        else:
            group = {"receivers": None, "takers": b"g", "groups": str(number).encode()}[kind]
            calls.append(listen(junction, PlainListener(group, since=number // 7)))
    random.Random(1).shuffle(calls)
    assert all(map(junction.withdraw, calls))
    assert_nothing_is_left_of(junction)


@pytest.mark.timeout(60)
def test_many_sends_that_lose_their_listeners_at_once_go_back_before_many_others() -> None:
    junction = Junction()
    count = 50_000
    for _ in range(count):
        listen(junction, PlainListener(b"g"))
    calls = [send(junction, number.to_bytes(4, "big"), since=1.0) for number in range(2 * count)]
    for call in calls[:count]:
        junction.lost(call)
    takers = [listen(junction, PlainListener(b"g")) for _ in calls]
    assert [taker.values[0] for taker in takers] == [call.value for call in calls]
    assert_nothing_is_left_of(junction)


def test_a_census_names_so_many_groups_and_counts_all() -> None:
    junction = Junction()
    for number in range(MAX_GROUPS + 10):
        listen(junction, PlainListener(b"%d" % number))
    named = {b"%d" % number: 1 for number in range(MAX_GROUPS)}
    assert junction.census(TOPICS[0]).takers == {**named, NIL: 10}
    listen(junction, PlainListener(NIL))
    assert junction.census(TOPICS[0]).takers == {**named, NIL: 11}


def test_a_census_names_no_more_groups_than_a_client_can_be_told() -> None:
    junction = Junction()
    for letter in (b"a", b"b", b"c"):
        listen(junction, PlainListener(letter * (MAX_NAMES // 2)))
    half = MAX_NAMES // 2
    assert junction.census(TOPICS[0]).takers == {b"a" * half: 1, b"b" * half: 1, NIL: 1}


def test_a_census_takes_no_longer_for_a_crowd() -> None:
    few, many = Junction(), Junction()
    for junction, count in ((few, 20), (many, 20_000)):
        for number in range(count):
            listen(junction, PlainListener(b"%d" % number))
            subscribe(junction, PlainSubscriber())
    assert many.census(TOPICS[0]).subscribers == 20_000
    assert least_s(lambda: many.census(TOPICS[0])) < 20 * least_s(lambda: few.census(TOPICS[0]))


def least_s(call: Callable[[], object]) -> float:
    """Return the seconds of the processor's time that a call takes, if nothing disturbs it."""
    times = []
    for _ in range(20):
        began = time.thread_time()
        call()
        times.append(time.thread_time() - began)
    return min(times)


def test_a_subscriber_counts_for_as_many_as_it_is_for_at_any_time() -> None:
    junction = Junction()
    first, second = PlainSubscriber(), PlainSubscriber()
    junction.resize(first, 3)
    assert junction.census(TOPICS[0]).subscribers == 0
    subscribe(junction, first)
    subscribe(junction, second)
    assert junction.census(TOPICS[0]).subscribers == 4
    junction.resize(first, 2)
    assert junction.census(TOPICS[0]).subscribers == 3
    junction.unsubscribe(first)
    junction.resize(first, 10)
    assert junction.census(TOPICS[0]).subscribers == 1
    junction.unsubscribe(second)
    assert_nothing_is_left_of(junction)
