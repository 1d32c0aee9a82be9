"""What goes along with a connection that moves besides calls that wait: subscriptions, wills, what is not acked."""

from __future__ import annotations

import dataclasses
import random
from itertools import count
from typing import Final

import pytest

from skywalker.limits import Limits
from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from skywalker.wire import pubsub, values
from skywalker.wire.frames import split
from tests.workers.core.clients import has_nothing
from tests.workers.core.clusters import Cluster, End, Layout
from tests.workers.core.worlds import LIMITS, Wire
from workers.doors.client import Client
from workers.stats.close_reasons import Close

MINUTE: Final = values.pack(60_000)
HERE, THERE, THIRD = range(3)
WHERE: Final = {HERE: "where it was", THERE: "where it goes", THIRD: "elsewhere"}
LONG_S: Final = 0.6
"""Seconds in which siblings have said what they know of a dead one, or are not waited for."""


class Three:
    """Three siblings, and clients at each."""

    def __init__(self, limits: Limits = LIMITS, workers: int = 3) -> None:
        self.layout = Layout([0] * workers, random.Random(1))
        self.cluster = Cluster(self.layout, limits, 1)
        self.fds = count(10)
        self.ids = count(1)

    def topic(self, owner: int) -> bytes:
        """Return a topic of that worker's."""
        ring = Ring.of_tokens(self.layout.tokens)
        topics = (values.pack(f"topic{number}") for number in count())
        return next(topic for topic in topics if ring.owner(token_of(topic)) == owner)

    def connect(self, at: int, *, pubsub: bool = False) -> Wire:
        made = Wire(next(self.fds))
        self.cluster.worlds[at].wires[made.fd] = made
        self.cluster.workers[at].connect(made.fd, pubsub=pubsub)
        return made

    def say(self, wire_: Wire, method: bytes, *rest: bytes) -> bytes:
        id = values.pack(next(self.ids))
        wire_.coming += wire.frame(method, id, *rest)
        return id

    def ask(self, wire_: Wire, method: bytes, *rest: bytes) -> bytes:
        """Say it, and return what it is answered at once."""
        id = self.say(wire_, method, *rest)
        self.settle()
        (answer,) = [frame[2] for frame in told(wire_) if frame[:2] == [method, id]]
        return answer

    def client(self, wire_: Wire, at: int = HERE) -> Client:
        worker = self.cluster.workers[at]
        (client,) = [each for each in worker.hub.clients if worker.core.fd(each.handle) == wire_.fd]
        return client

    def draw(self, wire_: Wire, whence: int = HERE, whither: int = THERE) -> None:
        worker = self.cluster.workers[whence]
        link = worker.hub.siblings._by_slot[whither]
        worker.core.draw(self.client(wire_, whence).handle, link.handle)

    def end(self, reader: int, writer: int) -> End:
        return self.cluster.ends[reader, writer]

    def kill(self, at: int) -> None:
        """Have one be replaced that has died."""
        self.cluster.kill(at)
        self.settle()
        for one, other in self.layout.links():
            if at in (one, other):
                self.cluster.link(one, other)
        self.pass_long()

    def replace(self, at: int, luck: random.Random) -> None:
        """Have one be replaced as is planned, of which others hear in any order."""
        hear = self.cluster.replace(at)
        luck.shuffle(hear)
        for each in hear:
            each()
            for _ in range(luck.randrange(4)):
                luck.choice([*self.cluster.workers, *self.cluster.replaced]).one_turn()
        self.pass_long()

    def pass_long(self) -> None:
        self.settle()
        self.cluster.pass_until(self.cluster.now + LONG_S)
        self.settle()
        self.cluster.pass_until(self.cluster.now + LONG_S)
        self.settle()

    def has(self, at: int, wire_: Wire) -> bool:
        return wire_.fd in self.cluster.worlds[at].wires and not wire_.is_closed

    def settle(self) -> None:
        self.cluster.settle()

    def end_all(self, *wires: Wire) -> None:
        for wire_ in wires:
            wire_.ended = True
        self.settle()
        everybody = [*self.cluster.workers, *self.cluster.replaced]
        for worker in everybody:
            assert worker.core.moving == 0
            assert not worker.hub.interests.splits._all
            assert not worker.hub.rebalance._interests
        for end in self.cluster.all_ends:
            end.ended = True
        self.settle()
        self.cluster.pass_until(self.cluster.now + 31.0)
        self.settle()
        for worker in everybody:
            has_nothing(worker)
            worker.core.shut()


@pytest.fixture
def three() -> Three:
    return Three()


def told(wire_: Wire) -> list[list[bytes]]:
    frames, left = split(bytes(wire_.taken))
    assert not left
    wire_.taken.clear()
    return [[*frame] for frame in frames]


def of_messages(wire_: Wire) -> list[int]:
    return [values.unpack(frame[2]) for frame in told(wire_) if frame[0] == wire.MESSAGE]


@pytest.mark.parametrize("owner", WHERE, ids=WHERE.values())
@pytest.mark.parametrize("seed", range(12))
def test_each_value_comes_once_and_in_order_whatever_is_heard_first(owner: int, seed: int) -> None:
    three, luck = Three(dataclasses.replace(LIMITS, max_calls=200, waiting_bytes=1_000_000)), random.Random(seed)
    mover, other = three.connect(HERE), three.connect(THERE)
    topics = [three.topic(owner), three.topic(luck.randrange(3))]
    subscribed = [(mover, values.pack(f"of {topic!r}"), topic) for topic in dict.fromkeys(topics)]
    subscribed += [(other, values.pack("other"), topics[0])] * luck.randrange(2)  # the worker may subscribe already
    for wire_, id, topic in subscribed:
        wire_.coming += wire.frame(wire.SUBSCRIBE, id, topic)
    three.settle()
    senders = [three.connect(at) for at in WHERE]
    three.settle()
    told(mover)
    ends = [end for end in three.cluster.all_ends if luck.random() < 0.7]
    sent = dict.fromkeys(topics, 0)
    for step in range(200):
        if step == 20:
            three.draw(mover)
        for end in ends:
            end.is_delayed = luck.random() < 0.8
        if luck.random() < 0.5:
            topic = luck.choice(topics)
            # By one worker, or another may overtake it.
            three.say(senders[topics.index(topic)], wire.SEND, MINUTE, topic, values.pack(sent[topic]))
            sent[topic] += 1
        three.cluster.workers[luck.randrange(3)].one_turn()
    for end in ends:
        end.is_delayed = False
    three.settle()
    assert three.has(THERE, mover)
    came = [frame[1:] for frame in told(mover) if frame[0] == wire.MESSAGE]
    for id, topic in [(id, topic) for wire_, id, topic in subscribed if wire_ is mover]:
        assert [values.unpack(value) for each, value in came if each == id] == [*range(sent[topic])]
    answers = [frame[2] for sender in senders for frame in told(sender)]
    assert answers == [wire.TRUE] * sum(sent.values())
    unsubscribed = three.ask(mover, wire.UNSUBSCRIBE, subscribed[0][1])
    assert unsubscribed == wire.TRUE
    three.end_all(mover, other, *senders)


@pytest.mark.parametrize("how", ["killed", "replaced"])
@pytest.mark.parametrize("whose", WHERE, ids=WHERE.values())
@pytest.mark.parametrize("steps", range(12))
def test_nothing_is_missed_though_a_worker_has_a_successor_meanwhile(how: str, whose: int, steps: int) -> None:
    three, luck = Three(dataclasses.replace(LIMITS, max_calls=200, waiting_bytes=1_000_000)), random.Random(steps)
    killed = THIRD if how == "killed" else luck.randrange(3)
    mover, sender = three.connect(HERE), three.connect(THERE if killed != THERE else HERE)
    other = three.connect(THERE if killed != THERE else HERE)
    topic = three.topic(whose)
    for each in (mover, other):
        assert three.ask(each, wire.SUBSCRIBE, topic) == wire.TRUE
    sent = count()
    three.draw(mover)
    for _ in range(steps):
        if luck.random() < 0.3:
            three.say(sender, wire.SEND, MINUTE, topic, values.pack(next(sent)))
        luck.choice(three.cluster.workers).one_turn()
    if how == "killed":
        three.kill(killed)
    else:
        three.replace(killed, luck)
    three.say(sender, wire.SEND, MINUTE, topic, values.pack(next(sent)))
    three.settle()
    assert not mover.is_closed
    everything = [*range(next(sent))]
    assert of_messages(other) == everything
    assert of_messages(mover) == everything
    three.end_all(mover, sender, other)


@pytest.mark.parametrize("how", ["killed", "replaced"])
@pytest.mark.parametrize("is_split", [False, True])
def test_what_a_successor_hands_out_first_is_not_missed(three: Three, how: str, is_split: bool) -> None:
    mover, sender, topic = three.connect(HERE), three.connect(THERE), three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.end(THIRD, THERE).is_delayed = not is_split
    three.end(THERE, THIRD).is_delayed = is_split
    three.draw(mover)
    three.settle()
    if how == "killed":
        three.cluster.kill(THIRD)
        three.settle()
        three.say(sender, wire.SEND, MINUTE, topic, values.pack(1))
        three.end(THERE, THIRD).is_delayed = False
        for at in (HERE, THERE):
            three.cluster.link(at, THIRD)
    else:
        ends = three.end(THIRD, THERE), three.end(THERE, THIRD)
        hear = three.cluster.replace(THIRD)
        three.say(sender, wire.SEND, MINUTE, topic, values.pack(1))
        for each in hear:
            each()
        for end in ends:
            end.is_delayed = False
    three.pass_long()
    assert three.has(THERE, mover)
    assert three.ask(sender, wire.SEND, MINUTE, topic, values.pack(2)) == wire.TRUE
    assert of_messages(mover) == [1, 2]
    three.end_all(mover, sender)


@pytest.mark.parametrize("how", ["killed", "replaced"])
def test_one_that_may_not_come_since_an_owner_has_a_successor_is_subscribed_as_before(three: Three, how: str) -> None:
    mover, sender, topic = three.connect(HERE), three.connect(THERE), three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.end(THERE, HERE).is_delayed = True
    three.draw(mover)
    three.cluster.workers[HERE].one_turn()
    assert three.cluster.workers[HERE].core.moving == 1
    if how == "killed":
        three.kill(THIRD)
    else:
        three.replace(THIRD, random.Random(1))
    three.end(THERE, HERE).is_delayed = False
    three.settle()
    assert three.has(HERE, mover)
    assert three.ask(sender, wire.SEND, MINUTE, topic, values.pack(1)) == wire.TRUE
    assert of_messages(mover) == [1]
    three.end_all(mover, sender)


@pytest.mark.parametrize("has_other", [False, True])
def test_what_is_sent_without_waiting_is_for_a_subscriber_on_its_way_as_well(three: Three, has_other: bool) -> None:
    mover, other, sender = three.connect(HERE), three.connect(THERE), three.connect(THIRD)
    topic = three.topic(THERE)
    for each in (mover, other) if has_other else (mover,):
        assert three.ask(each, wire.SUBSCRIBE, topic) == wire.TRUE
    three.draw(mover)
    three.cluster.workers[HERE].one_turn()
    three.cluster.workers[THERE].one_turn()
    three.end(THERE, HERE).is_delayed = True  # its descriptor comes later than what is sent
    sent = three.say(sender, wire.SEND, values.pack(0), topic, values.pack(1))
    three.settle()
    three.end(THERE, HERE).is_delayed = False
    three.settle()
    assert three.has(THERE, mover)
    assert of_messages(mover) == [1]
    assert told(sender) == [[wire.SEND, sent, wire.TRUE]]
    three.end_all(mover, other, sender)


def test_one_on_its_way_is_not_given_what_comes_too_late(three: Three) -> None:
    mover, sender = three.connect(HERE), three.connect(THIRD)
    topic = three.topic(THERE)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.draw(mover)
    three.cluster.workers[HERE].one_turn()
    three.cluster.workers[THERE].one_turn()
    three.end(THERE, HERE).is_delayed = True
    sent = three.say(sender, wire.SEND, values.pack(0), topic, values.pack(1))
    three.settle()
    three.cluster.pass_until(three.cluster.now + 0.2)
    three.settle()
    three.end(THERE, HERE).is_delayed = False
    three.settle()
    (answer,) = told(sender)
    assert answer[1] == sent
    assert answer[2] != wire.TRUE
    assert of_messages(mover) == []
    three.end_all(mover, sender)


@pytest.mark.parametrize("sender_at", [THERE, THIRD])
def test_what_is_cancelled_is_taken_back_once_it_turns_out_that_it_is_not_read(sender_at: int) -> None:
    three, fourth = Three(workers=4), 3
    mover, sender = three.connect(HERE), three.connect(sender_at)
    topics = three.topic(THERE), three.topic(fourth)
    for topic in topics:
        assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.ask(sender, wire.HELLO, values.pack({}))
    three.end(fourth, THERE).is_delayed = True  # so that it stays on its way
    three.draw(mover)
    three.settle()
    sent = three.say(sender, wire.SEND, MINUTE, topics[0], values.pack(1))
    three.settle()
    cancel = three.say(sender, wire.CANCEL, sent)
    three.settle()
    assert told(sender) == []
    mover.room = 0
    three.end(fourth, THERE).is_delayed = False
    three.settle()
    assert [frame[1] for frame in told(sender)] == [sent, cancel]
    mover.room = 10_000
    three.settle()
    assert of_messages(mover) == []
    three.end_all(mover, sender)


def test_what_a_dead_owner_gave_one_on_its_way_is_not_given_twice() -> None:
    three = Three(workers=4)
    fourth = 3
    mover, sender = three.connect(HERE), three.connect(THERE)
    topics = three.topic(THIRD), three.topic(fourth)
    for topic in topics:
        assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.end(fourth, THERE).is_delayed = True  # so that it stays on its way
    three.draw(mover)
    three.settle()
    sent = three.say(sender, wire.SEND, MINUTE, topics[0], values.pack(1))
    three.settle()
    three.kill(THIRD)
    three.end(fourth, THERE).is_delayed = False
    three.pass_long()
    assert three.has(THERE, mover)
    assert of_messages(mover) == [1]
    assert told(sender) == [[wire.SEND, sent, wire.TRUE]]
    three.end_all(mover, sender)


def test_none_comes_along_once_the_ring_has_changed_for_what_it_subscribes_to(three: Three) -> None:
    first, second, topic = three.connect(HERE), three.connect(HERE), three.topic(THIRD)
    for each in (first, second):
        assert three.ask(each, wire.SUBSCRIBE, topic) == wire.TRUE
    three.end(THIRD, THERE).is_delayed = True
    three.draw(first)
    three.settle()
    here = three.cluster.workers[HERE].hub
    here.interests.source = lambda _: here.siblings.owners[THERE]
    three.draw(second)
    three.settle()
    assert three.cluster.workers[HERE].core.moving == 1, "or there might be one on its way for ever"


def test_what_is_sent_without_waiting_is_for_one_whose_ack_comes_first_as_well(three: Three) -> None:
    name = three.layout.published_to(THERE)
    subscriber, sender = three.connect(HERE, pubsub=True), three.connect(THIRD)
    subscriber.coming += pubsub.subscribe(name)
    three.settle()
    subscriber.taken.clear()
    subscriber.coming += pubsub.publish(name, b"its own")
    sent = three.say(sender, wire.SEND, values.pack(0), pubsub.bus_topic(name), values.pack(b"sent"))
    for at in (HERE, THIRD):
        three.cluster.workers[at].one_turn()
    three.settle()
    assert bytes(subscriber.taken) == b"\x04" + pubsub.publish(name, b"its own") + pubsub.publish(name, b"sent")
    assert told(sender) == [[wire.SEND, sent, wire.TRUE]]
    three.end_all(subscriber, sender)


def test_those_that_cannot_go_do_not_count_as_moved() -> None:
    three = Three(dataclasses.replace(LIMITS, max_moves=1))
    stays, mover, topic = three.connect(HERE), three.connect(HERE), three.topic(THIRD)
    assert three.ask(stays, wire.SUBSCRIBE, topic) == wire.TRUE
    three.cluster.workers[HERE].hub.interests.comes_from = lambda _: 0  # type: ignore[method-assign]  # as of another node
    three.draw(stays)
    three.draw(mover)
    three.settle()
    assert (three.has(HERE, stays), three.has(THERE, mover)) == (True, True)


@pytest.mark.parametrize("told_first", [HERE, THERE])
def test_an_owner_dies_that_has_told_only_one_of_the_two(three: Three, told_first: int) -> None:
    mover, sender = three.connect(HERE), three.connect(THERE)
    topic = three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    assert three.ask(sender, wire.SEND, MINUTE, topic, values.pack(0)) == wire.TRUE
    three.end(THIRD, HERE + THERE - told_first).room = 0
    three.draw(mover)
    three.settle()
    assert any(worker.hub.interests.splits._all for worker in three.cluster.workers)
    three.kill(THIRD)
    assert three.has(THERE, mover)
    assert three.ask(sender, wire.SEND, MINUTE, topic, values.pack(1)) == wire.TRUE
    assert of_messages(mover) == [0, 1]
    three.end_all(mover, sender)


@pytest.mark.parametrize("killed", [HERE, THERE])
@pytest.mark.parametrize("steps", range(12))
def test_it_is_closed_if_one_of_the_two_dies_before_it_has_moved(three: Three, killed: int, steps: int) -> None:
    mover, sender = three.connect(HERE), three.connect(THIRD)
    topic = three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.draw(mover)
    for step in range(steps):
        three.cluster.workers[(step + steps) % 3].one_turn()
    is_moving = three.cluster.workers[HERE].core.moving or three.cluster.workers[THERE].core.moving
    was = THERE if three.has(THERE, mover) else HERE
    three.kill(killed)
    assert is_moving or mover.is_closed == (killed == was)
    if not mover.is_closed:
        assert three.ask(mover, wire.PING) == wire.TRUE
        assert three.ask(sender, wire.SEND, MINUTE, topic, values.pack(1)) == wire.TRUE
        assert of_messages(mover) == [1]
    three.end_all(mover, sender)


def test_the_ring_changes_where_a_subscription_is_about_to_go_once_it_has(three: Three) -> None:
    mover, sender = three.connect(HERE), three.connect(THERE)
    topic = three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.end(THIRD, THERE).is_delayed = True  # nothing is split yet
    three.draw(mover)
    three.settle()
    assert three.cluster.workers[HERE].core.moving == 1
    (interest,) = three.cluster.workers[HERE].hub.interests.all()
    interest._interests.source = lambda _: three.cluster.workers[HERE].hub.siblings.owners[THERE]
    assert not interest.ring_changed()
    three.end(THIRD, THERE).is_delayed = False
    three.settle()
    assert three.has(THERE, mover)
    assert interest.ring_changed()
    assert three.ask(sender, wire.SEND, MINUTE, topic, values.pack(1)) == wire.TRUE
    assert of_messages(mover) == [1]


def test_it_stays_while_the_owner_of_what_it_subscribes_to_hangs(three: Three) -> None:
    mover, topic = three.connect(HERE), three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.end(THIRD, HERE).is_delayed = True
    three.cluster.pass_until(three.cluster.now + 0.2)
    three.draw(mover)
    three.settle()
    assert three.cluster.workers[HERE].core.moving == 0
    assert three.ask(mover, wire.PING) == wire.TRUE
    three.end(THIRD, HERE).is_delayed = False
    three.settle()
    assert three.has(THERE, mover), "it was asked whether it is there"


def test_one_that_may_not_come_has_its_subscriptions_as_before(three: Three) -> None:
    mover, sender = three.connect(HERE), three.connect(THERE)
    topic = three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.cluster.workers[THERE].machine.under.has_room = False
    three.draw(mover)
    three.settle()
    assert three.has(HERE, mover)
    assert three.ask(sender, wire.SEND, MINUTE, topic, values.pack(1)) == wire.TRUE
    assert of_messages(mover) == [1]
    three.cluster.workers[THERE].machine.under.has_room = True
    three.draw(mover)
    three.settle()
    assert three.has(THERE, mover)
    three.end_all(mover, sender)


def test_who_publishes_goes_where_what_it_publishes_is_owned_and_is_told_hints_there_as_well(three: Three) -> None:
    name = three.layout.published_to(THERE)
    mover, other = three.connect(HERE, pubsub=True), three.connect(THIRD, pubsub=True)
    mover.coming += pubsub.subscribe(name, typed=True) + pubsub.subscribe(b"plain")
    three.settle()
    for _ in range(40):
        mover.coming += pubsub.publish(b"elsewhere than " + name, b"") if three.has(THERE, mover) else b""
        mover.coming += pubsub.publish_typed(name, b"\x07\x00", b"value")
        three.settle()
        three.cluster.pass_until(three.cluster.now + 0.05)
    three.settle()
    assert three.has(THERE, mover)
    mover.taken.clear()
    other.coming += pubsub.publish_typed(name, b"\x07\x00", b"typed") + pubsub.publish_typed(
        b"plain", b"\x07\x00", b"not"
    )
    three.settle()
    assert bytes(mover.taken) == pubsub.publish_typed(name, b"\x07\x00", b"typed") + pubsub.publish(b"plain", b"not")
    three.end_all(mover, other)


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_what_is_unacknowledged_is_acknowledged_where_it_goes_or_in_doubt(three: Three, is_acknowledged: bool) -> None:
    mover, sender, taker = three.connect(HERE), three.connect(THIRD), three.connect(THERE)
    topic = three.topic(THERE)
    for each in (mover, sender):
        three.ask(each, wire.HELLO, values.pack({"ack": True}))
    group = values.pack("group")
    taken = [three.say(mover, wire.TAKE, MINUTE, topic, group) for _ in range(3)]
    three.settle()
    sent = [three.say(sender, wire.SEND, values.pack(100), topic, values.pack(number)) for number in range(2)]
    three.settle()
    assert [frame[1] for frame in told(mover)] == taken[:2]
    mover.coming += wire.frame(wire.ACK, taken[1])
    three.draw(mover)
    three.settle()
    assert three.has(THERE, mover)
    assert told(sender) == [[wire.SEND, sent[1], wire.TRUE]]
    if is_acknowledged:
        mover.coming += wire.frame(wire.ACK, taken[0])
        three.settle()
        assert told(sender) == [[wire.SEND, sent[0], wire.TRUE]]
    else:
        mover.ended = True
        three.say(taker, wire.TAKE, MINUTE, topic, group)
        three.settle()
        assert [frame[2] for frame in told(taker)] == [values.pack(0)]
        assert told(sender) == [[wire.SEND, sent[0], wire.TRUE]]
    three.end_all(mover, sender, taker)


@pytest.mark.parametrize("sender_at", [HERE, THIRD])
def test_what_is_unacknowledged_is_in_doubt_if_the_owner_that_it_goes_to_dies(three: Three, sender_at: int) -> None:
    mover, sender = three.connect(HERE), three.connect(sender_at)
    topic = three.topic(THERE)
    for each in (mover, sender):
        three.ask(each, wire.HELLO, values.pack({"ack": True}))
    three.say(mover, wire.TAKE, MINUTE, topic, values.pack("group"))
    three.settle()
    sent = three.say(sender, wire.SEND, values.pack(2000), topic, values.pack("value"))
    three.end(THERE, HERE).is_delayed = True  # it hears of the value and of who has it when it dies
    three.end(THERE, sender_at).is_delayed = False
    three.settle()
    three.end(THERE, HERE).is_delayed = False
    while not told(mover):
        for worker in three.cluster.workers:
            worker.one_turn()
    three.end(HERE, THERE).is_delayed = three.end(sender_at, THERE).is_delayed = False
    three.draw(mover)
    three.cluster.workers[HERE].one_turn()
    three.cluster.workers[THERE].one_turn()
    three.end(THERE, HERE).room = three.end(THERE, sender_at).room = 0  # nor does it say anything more
    three.settle()
    three.kill(THERE)
    three.cluster.pass_until(three.cluster.now + 2.0)
    three.settle()
    assert mover.is_closed
    (answer,) = told(sender)
    assert answer[1] == sent
    assert answer[2] not in (wire.TRUE, wire.TIMED_OUT), "that client may have it"


def test_what_another_worker_gave_is_acknowledged_before_it_goes(three: Three) -> None:
    mover, sender = three.connect(HERE), three.connect(THERE)
    topic = three.topic(THIRD)
    three.ask(mover, wire.HELLO, values.pack({"ack": True}))
    taken = three.say(mover, wire.TAKE, MINUTE, topic, values.pack("group"))
    three.settle()
    sent = three.say(sender, wire.SEND, MINUTE, topic, values.pack(1))
    three.settle()
    three.draw(mover)
    three.settle()
    assert three.has(HERE, mover)
    mover.coming += wire.frame(wire.ACK, taken)
    three.settle()
    assert told(sender) == [[wire.SEND, sent, wire.TRUE]]
    assert three.has(THERE, mover)


def test_who_has_a_value_of_a_dead_owner_and_goes_without_acknowledging_it_leaves_a_doubt(three: Three) -> None:
    leaver, sender = three.connect(HERE), three.connect(THIRD)
    topic = three.topic(THERE)
    for each in (leaver, sender):
        three.ask(each, wire.HELLO, values.pack({"ack": True}))
    three.say(leaver, wire.TAKE, MINUTE, topic, values.pack("group"))
    three.settle()
    three.end(THERE, HERE).is_delayed = True  # its owner hangs from the moment on in which it has given the value
    sent = three.say(sender, wire.SEND, values.pack(2000), topic, values.pack("value"))
    three.settle()
    assert len(told(leaver)) == 1
    leaver.ended = True
    three.settle()
    three.kill(THERE)
    three.cluster.pass_until(three.cluster.now + 2.0)
    three.settle()
    (answer,) = told(sender)
    assert answer[:2] == [wire.ERROR, sent] or answer[2] != wire.TIMED_OUT


@pytest.mark.parametrize("end", ["it leaves", "here", "there"])
def test_a_will_goes_along_and_is_published_once(three: Three, end: str) -> None:
    mover, heir = three.connect(HERE), three.connect(THIRD)
    topic = three.topic(THIRD)
    assert three.ask(heir, wire.SUBSCRIBE, topic) == wire.TRUE
    three.ask(mover, wire.HELLO, values.pack({}))
    will = three.say(mover, wire.WILL, MINUTE, topic, values.pack(7))
    three.settle()
    three.draw(mover)
    three.settle()
    assert three.has(THERE, mover)
    if end == "there":
        assert three.ask(mover, wire.CANCEL, will) == wire.TRUE
        assert three.cluster.workers[THERE].core.holds["calls"] == 0
        return
    if end == "here":
        three.kill(HERE)  # of which it is nothing any more
        assert of_messages(heir) == []
    mover.ended = True
    three.settle()
    assert of_messages(heir) == [7]
    three.end_all(mover, heir)


def test_a_will_of_one_that_is_lost_where_it_goes_is_published_once(three: Three) -> None:
    mover, heir = three.connect(HERE), three.connect(THIRD)
    topic = three.topic(THIRD)
    assert three.ask(heir, wire.SUBSCRIBE, topic) == wire.TRUE
    three.ask(mover, wire.HELLO, values.pack({}))
    three.say(mover, wire.WILL, MINUTE, topic, values.pack(7))
    three.settle()
    three.end(THERE, HERE).is_delayed = True
    three.draw(mover)
    three.settle()
    for crosses in (True, False):
        three.end(THERE, HERE).is_delayed = False
        three.cluster.workers[THERE].one_turn()
        if crosses:
            three.end(THERE, HERE).is_delayed = True
            three.settle()  # it is passed on, and not heard yet
            (arriving,) = [each for each in three.cluster.workers[THERE].hub.clients if each.handle]
            arriving.close(Close.SLOW_SUBSCRIBER, "it is lost")
            assert of_messages(heir) == []
    three.settle()
    assert mover.is_closed
    assert of_messages(heir) == [7]
    three.end_all(mover, heir)


def test_one_that_is_lost_where_it_goes_is_closed_where_it_is(three: Three) -> None:
    mover, topic = three.connect(HERE), three.topic(THIRD)
    assert three.ask(mover, wire.SUBSCRIBE, topic) == wire.TRUE
    three.end(THIRD, THERE).is_delayed = True
    three.draw(mover)
    three.settle()
    (arriving,) = three.cluster.workers[THERE].hub.clients
    arriving.close(Close.SLOW_SUBSCRIBER, "it is lost")
    three.settle()
    assert mover.is_closed
    three.end(THIRD, THERE).is_delayed = False
    three.settle()
    three.end_all(mover)


def test_what_it_may_ask_in_a_second_goes_along() -> None:
    three = Three(dataclasses.replace(LIMITS, max_rate=10))
    mover, topic = three.connect(HERE), three.topic(THERE)
    three.ask(mover, wire.HELLO, values.pack({}))
    answers = [three.ask(mover, wire.PING) for _ in range(8)]
    assert answers == [wire.TRUE] * 8
    three.draw(mover)
    three.settle()
    assert three.has(THERE, mover)
    ids = [three.say(mover, wire.RECV, MINUTE, topic) for _ in range(3)]
    three.settle()
    assert [frame[1] for frame in told(mover)] == ids[1:], "one was left of ten"
