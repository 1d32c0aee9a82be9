"""A connection goes to the sibling that owns what it asks for: its calls go on there, and no client notices."""

from __future__ import annotations

import dataclasses
import random
import time
from typing import Final

import pytest

from skywalker.limits import Limits
from skywalker.members import PlaceRing, Share
from skywalker.ring import token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.helpers import time_factor
from tests.workers.core.clients import add_up
from tests.workers.core.clusters import Cluster, End, Layout
from tests.workers.core.worlds import LIMITS, Wire
from workers.core.numbers import StandsAs
from workers.stats import metrics
from workers.stats.close_reasons import Close

MINUTE: Final = values.pack(60_000)


def framed(*elements: bytes) -> bytes:
    body = bytes((0x90 | len(elements),)) + b"".join(elements)
    return len(body).to_bytes(2, "big") + body


class Two:
    """Two siblings, of which the second owns `topic`."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        layout = Layout([0, 0], random.Random(1))
        self.cluster = Cluster(layout, limits, 1)
        self.here, self.there = self.cluster.workers
        self.topic = next(
            topic
            for topic in (values.pack(f"topic {number}") for number in range(100))
            if layout.ring().owner(token_of(topic)) == layout.places[1]
        )
        self.fd = 10

    def connect(self, at: int = 0) -> Wire:
        self.fd += 1
        worker = self.cluster.workers[at]
        worker.world.wires[self.fd] = made = Wire(self.fd)
        worker.connect(self.fd)
        return made

    def draw(self, wire_: Wire) -> None:
        (client,) = [each for each in self.here.hub.clients if self.here.core.fd(each.handle) == wire_.fd]
        self.here.core.draw(client.handle, self.here.hub.siblings.all()[0].handle)

    def settle(self) -> None:
        self.cluster.settle()

    def end(self, one: int = 0) -> End:
        return self.cluster.ends[one, 1 - one]


def answers(wire_: Wire) -> list[list[bytes]]:
    """Take what it was written."""
    frames, left = split(bytes(wire_.taken))
    assert not left
    wire_.taken.clear()
    return [list(frame) for frame in frames]  # type: ignore[arg-type]  # none of them is bad


def test_calls_that_wait_go_along() -> None:
    two = Two()
    one, other = two.connect(), two.connect(1)
    one.coming += b"".join(framed(wire.RECV, values.pack(id), MINUTE, two.topic) for id in range(3))
    one.coming += framed(wire.TAKE, values.pack(7), MINUTE, two.topic, values.pack("group"))
    one.coming += framed(wire.RECV, values.pack("x" * 25), values.pack(1000), values.pack("late"), two.topic)
    half = framed(wire.PING, values.pack(9))
    one.coming += half[:5]
    two.settle()
    two.draw(one)
    two.settle()
    assert one.fd in two.there.world.wires
    assert one.fd not in two.here.world.wires
    assert [two.here.core.holds[name] for name in ("connections", "rows", "calls")] == [0, 0, 0]
    assert two.there.core.holds["calls"] == 5
    assert two.here.core.moving == two.there.core.moving == 0
    two.cluster.pass_until(two.cluster.now + 1.1)
    two.settle()
    assert answers(one) == [[wire.RECV, values.pack("x" * 25), values.pack("late")]]
    one.coming += half[5:]
    other.coming += framed(wire.SEND, values.pack(1), MINUTE, two.topic, values.pack("hello"))
    two.settle()
    assert answers(other) == [[wire.SEND, values.pack(1), wire.TRUE]]
    told = answers(one)
    assert wire.PING in (told[0][0], told[-1][0])
    assert sorted(each for each in told if each[0] != wire.PING) == sorted(
        [[wire.TAKE, values.pack(7), values.pack("hello")]]
        + [[wire.RECV, values.pack(id), values.pack("hello")] for id in range(3)]
    )
    add_up(two.here, [])
    add_up(two.there, [one, other])


def test_two_workers_take_less_than_a_millisecond_for_a_move_with_100_calls() -> None:
    took = []
    for _ in range(10):
        two = Two(dataclasses.replace(LIMITS, max_calls=100, waiting_bytes=1_000_000))
        one = two.connect()
        one.coming += b"".join(framed(wire.RECV, values.pack(id), MINUTE, two.topic) for id in range(100))
        two.settle()
        began = time.process_time()
        two.draw(one)
        two.settle()
        took.append(time.process_time() - began)
        assert two.there.core.holds["calls"] == 100
    assert min(took) < 0.001 * time_factor()


def test_what_has_no_value_for_it_yet_is_taken_along_and_what_has_is_answered_first() -> None:
    """A value crosses the offer of the connection, and is longer than its client takes: that call comes back."""
    two = Two()
    one, other = two.connect(), two.connect(1)
    one.coming += framed(wire.RECV, values.pack(0), MINUTE, two.topic)
    one.coming += framed(wire.TAKE, values.pack(1), MINUTE, two.topic, values.pack("group"))
    two.settle()
    two.end(1).is_delayed = True  # nothing of the offer comes, but what goes the other way does
    two.draw(one)
    two.settle()
    other.coming += framed(wire.SEND, values.pack(2), MINUTE, two.topic, values.pack(bytes(29_990)))
    two.settle()
    two.end(1).is_delayed = False
    two.settle()
    assert one.fd in two.there.world.wires
    assert two.there.core.holds["calls"] == 2, "both wait there"
    assert answers(one) == []
    assert [each[2] == wire.TRUE for each in answers(other)] == [False], "nobody could take it"
    other.coming += framed(wire.SEND, values.pack(3), MINUTE, two.topic, values.pack("short"))
    two.settle()
    assert [each[:2] for each in answers(one)] == [[wire.RECV, values.pack(0)], [wire.TAKE, values.pack(1)]]
    assert answers(other) == [[wire.SEND, values.pack(3), wire.TRUE]]


def test_a_send_whose_value_somebody_has_is_answered_once() -> None:
    """Its connection does not come while another worker has the value, which tells the one that the send came from."""
    two = Two()
    one, taker = two.connect(), two.connect()
    taker.coming += framed(wire.TAKE, values.pack(5), MINUTE, two.topic, values.pack("group"))
    two.settle()
    two.end().is_delayed = True
    one.coming += framed(wire.SEND, values.pack(6), MINUTE, two.topic, values.pack("value"))
    two.settle()
    two.draw(one)
    two.settle()
    two.end().is_delayed = False
    two.settle()
    assert answers(taker) == [[wire.TAKE, values.pack(5), values.pack("value")]]
    assert answers(one) == [[wire.SEND, values.pack(6), wire.TRUE]]
    assert one.fd in two.here.world.wires
    two.cluster.pass_until(two.cluster.now + 0.2)
    one.coming += framed(wire.RECV, values.pack(7), MINUTE, two.topic) + framed(wire.PING, values.pack(8))
    two.settle()
    assert one.fd in two.there.world.wires


def test_it_goes_once_all_is_written_though_its_client_is_slow_to_read() -> None:
    two = Two()
    one, taker = two.connect(), two.connect(1)
    ids = [values.pack(id) for id in range(8)]
    taker.coming += b"".join(framed(wire.TAKE, id, MINUTE, two.topic, values.pack("group")) for id in ids)
    one.coming += b"".join(framed(wire.SEND, id, MINUTE, two.topic, values.pack("value")) for id in ids)
    one.coming += framed(wire.RECV, values.pack(9), MINUTE, two.topic)
    two.end().is_delayed = True  # what is answered, and that it may come, is heard at once
    two.settle()
    one.room = 30
    two.draw(one)
    two.settle()
    two.end().is_delayed = False
    two.settle()
    assert (one.fd in two.here.world.wires, len(one.taken)) == (True, 30), "it waits for its client"
    assert (two.here.core.holds["calls"], two.there.core.holds["calls"]) == (0, 1)
    [client] = two.here.hub.clients
    assert two.here.core.is_owed(client.handle), "that one would be lost with its connection"
    one.room = 1_000_000
    two.settle()
    assert one.fd in two.there.world.wires
    assert answers(one) == [[wire.SEND, id, wire.TRUE] for id in ids]


def test_none_comes_to_a_worker_that_opens_before_all_that_came_there_has_met() -> None:
    two = Two()
    one, taker = two.connect(), two.connect(1)
    two.settle()
    (link,) = two.there.hub.siblings.all()
    link.pause()
    one.coming += framed(wire.SEND, values.pack(1), MINUTE, two.topic, values.pack("value"))
    two.settle()
    two.draw(one)
    two.settle()
    assert two.here.core.moving == 1
    two.there.core.stand_as(StandsAs.OPENING)
    link.go_on()
    two.there.core.stand_as(0)
    two.settle()
    taker.coming += framed(wire.TAKE, values.pack(2), MINUTE, two.topic, values.pack("group"))
    two.settle()
    assert answers(taker) == [[wire.TAKE, values.pack(2), values.pack("value")]]
    assert answers(one) == [[wire.SEND, values.pack(1), wire.TRUE]]


def test_what_waits_there_is_asked_back_though_its_worker_leaves_before_it_hears_that_it_may_not_come() -> None:
    two = Two()
    one = two.connect()
    one.coming += framed(wire.SEND, values.pack(0), MINUTE, two.topic, values.pack("value"))
    two.settle()
    two.end().is_delayed = True
    two.there.hub.drain()
    two.draw(one)
    two.settle()
    assert two.here.core.moving == 1
    two.here.hub.leave()
    two.settle()
    two.end().is_delayed = False
    two.settle()
    assert [worker.core.holds["calls"] for worker in (two.here, two.there)] == [0, 0]
    assert two.here.hub.has_left()


def test_its_peer_leaves_or_a_worker_dies_on_the_way() -> None:
    for who in ("peer", "here", "there"):
        two = Two()
        one = two.connect()
        one.coming += framed(wire.RECV, values.pack(0), MINUTE, two.topic)
        two.settle()
        two.end().is_delayed = True
        two.draw(one)
        two.settle()
        assert (two.here.core.moving, two.there.core.moving) == (1, 1)
        if who == "peer":
            one.ended = True
        else:
            two.cluster.kill(who == "there")
        two.end().is_delayed = False
        two.settle()
        for at, worker in enumerate(two.cluster.workers):
            assert (at, worker.core.moving, worker.core.holds["connections"]) == (at, 0, 0)
            assert not worker.machine.under.reserved
        assert one.is_closed


def test_none_comes_to_a_worker_that_has_no_room_for_its_descriptor_and_it_keeps_that_of_one_that_comes() -> None:
    two = Two()
    one = two.connect()
    one.coming += framed(wire.RECV, values.pack(0), MINUTE, two.topic)
    two.settle()
    there = two.there.machine.under
    for has_room in (False, True):
        there.has_room = has_room
        two.draw(one)
        two.settle()
        assert (one.fd in two.there.world.wires, there.reserved) == (has_room, 0)
        assert not one.is_closed
    moved = {labels: row[0] for labels, row in metrics.MOVED.rows(two.there.memory)}
    assert moved == {("in",): 1, ("out",): 0, ("refused",): 1}


def test_one_that_is_lost_is_not_given_the_descriptor_of_another_that_goes_in_the_same_packet() -> None:
    two = Two()
    lost, goes, third = two.connect(), two.connect(), two.connect()
    lost.coming += framed(wire.RECV, values.pack("of the lost"), MINUTE, two.topic)
    goes.coming += framed(wire.RECV, values.pack("of who goes"), MINUTE, two.topic)
    two.settle()
    two.end().is_delayed = True  # the other agrees, which is not heard yet
    two.draw(lost)
    two.draw(goes)
    two.settle()
    two.end().room = 0  # nor does it hear any more
    third.coming += framed(wire.RECV, values.pack("third"), MINUTE, two.topic)
    two.settle()
    (client,) = [each for each in two.here.hub.clients if two.here.core.fd(each.handle) == lost.fd]
    client.close(Close.PEER, "it is gone")
    two.end().is_delayed = False
    two.settle()
    two.end().room = 10_000_000
    two.settle()
    assert goes.fd in two.there.world.wires
    other = two.connect(1)
    other.coming += framed(wire.SEND, values.pack(1), MINUTE, two.topic, values.pack("value"))
    two.settle()
    assert answers(goes) == [[wire.RECV, values.pack("of who goes"), values.pack("value")]]
    assert two.there.core.moving == two.there.machine.under.reserved == 0


def test_one_that_has_to_stay_is_let_go_if_its_worker_has_begun_to_drain() -> None:
    two = Two()
    one = two.connect()
    one.coming += framed(wire.RECV, values.pack(0), values.pack(0), two.topic)
    two.settle()
    two.cluster.pass_until(two.cluster.now + 0.05)
    two.settle()
    assert answers(one) == [[wire.RECV, values.pack(0), wire.TIMED_OUT]]
    two.there.hub.drain()
    two.draw(one)  # for the first time, so that it is asked whether the other hangs
    two.settle()
    two.end().is_delayed = True
    two.draw(one)
    two.settle()
    assert two.here.core.moving == 1
    two.here.hub.drain()
    two.settle()
    assert not one.is_shut
    two.end().is_delayed = False
    two.settle()
    assert one.is_shut


def test_calls_of_one_that_has_to_stay_are_asked_back_if_its_worker_has_begun_to_leave() -> None:
    two = Two()
    one = two.connect()
    one.coming += framed(wire.RECV, values.pack(0), MINUTE, two.topic)
    two.settle()
    two.there.hub.drain()
    two.end().is_delayed = True
    two.draw(one)
    two.settle()
    assert two.here.core.moving == 1
    two.here.core.stand_as(StandsAs.LEAVING)
    two.here.core.leave()
    two.settle()
    assert two.here.core.holds["calls"] == 1
    two.end().is_delayed = False
    two.settle()
    assert two.here.core.holds["calls"] == 0


def test_it_waits_for_what_it_asked_back_and_goes_then() -> None:
    """The ring changes, and changes back, while somebody has begun to be written the value of a send."""
    two = Two()
    one, taker = two.connect(), two.connect(1)
    taker.coming += framed(wire.TAKE, values.pack(1), MINUTE, two.topic, values.pack("group"))
    two.settle()
    taker.room = 30
    one.coming += framed(wire.SEND, values.pack(2), MINUTE, two.topic, values.pack(bytes(100)))
    two.settle()
    (client,) = two.here.hub.clients
    (taking,) = two.there.hub.clients
    owners = {owner.place: owner for owner in two.here.hub.siblings.owners}
    ring = two.here.layout.ring()
    all_here = PlaceRing(dict.fromkeys(two.here.layout.tokens, Share(*two.here.layout.places[0], 1)))
    for each in (all_here, ring):
        two.here.hub.owners.follow(each, owners)
        two.here.core.reroute(client.handle)
    two.settle()
    two.draw(one)
    two.settle()
    assert (two.here.core.moving, one.fd in two.here.world.wires) == (1, True)
    taking.close(Close.PEER, "it is gone")
    two.settle()
    assert one.fd in two.there.world.wires
    assert two.there.core.holds["calls"] == 1


def test_most_calls_draw_it_and_it_rests_then() -> None:
    two = Two()
    one, other = two.connect(), two.connect(1)
    ours = next(
        topic
        for topic in (values.pack(f"topic {number}") for number in range(100))
        if two.here.layout.ring().owner(token_of(topic)) == two.here.layout.places[0]
    )

    def call(topic: bytes, times: int) -> None:
        for id in range(times):
            one.coming += framed(wire.RECV, values.pack(id), values.pack(0), topic)
            two.settle()
            two.cluster.pass_until(two.cluster.now + 0.05)
            two.settle()

    call(two.topic, 40)
    assert one.fd in two.there.world.wires, "after a second"
    call(ours, 18)
    assert one.fd in two.there.world.wires, "it has just come"
    call(ours, 30)
    assert one.fd in two.here.world.wires
    for id in range(40):
        call(ours if id % 2 else two.topic, 1)
    assert one.fd in two.here.world.wires, "half of them are no reason"
    assert not other.is_closed


@pytest.mark.parametrize(("calls_s", "calls"), [(50, 3_000), (200, 6_000), (3_000, 30_000)])
def test_one_whose_calls_are_for_both_of_two_at_random_does_not_wander(calls_s: int, calls: int) -> None:
    two, luck = Two(), random.Random(4)
    one = two.connect()
    names = [values.pack(f"topic {number}") for number in range(100)]
    owner = two.here.layout.ring().owner
    here, there = ([each for each in names if owner(token_of(each)) == place][:40] for place in two.here.layout.places)
    moves, is_there = 0, False
    for id in range(calls):
        one.coming += framed(wire.RECV, values.pack(id), values.pack(0), luck.choice(luck.choice((here, there))))
        two.settle()
        two.cluster.pass_until(two.cluster.now + 1 / calls_s)
        one.taken.clear()
        moves += is_there is not (one.fd in two.there.world.wires)
        is_there = one.fd in two.there.world.wires
    assert moves <= 1, "a minute, and a few seconds, may have one by chance"


@pytest.mark.parametrize("waiting", [1, 10, 600])
def test_one_that_waits_goes_though_all_else_that_it_asks_ends_at_once(waiting: int) -> None:
    two = Two(dataclasses.replace(LIMITS, max_calls=1000, waiting_bytes=1_000_000))
    one = two.connect()
    one.coming += b"".join(framed(wire.RECV, values.pack(id), MINUTE, two.topic) for id in range(waiting))
    for id in range(40):
        two.end().is_delayed = True  # what is asked takes a while, as it does between processes
        one.coming += framed(wire.RECV, values.pack(1000 + id), values.pack(0), two.topic)
        two.settle()
        two.cluster.pass_until(two.cluster.now + 0.0001)
        two.end().is_delayed = False
        two.settle()
        two.cluster.pass_until(two.cluster.now + 0.05)
    assert one.fd in two.there.world.wires, "when it was answered, nothing was asked"


def test_no_more_leave_a_worker_in_a_second_than_may() -> None:
    two = Two(dataclasses.replace(LIMITS, max_moves=2))
    some = [two.connect() for _ in range(5)]
    for each in some:
        each.coming += framed(wire.RECV, values.pack(0), MINUTE, two.topic)
    two.settle()
    gone = []
    for _ in range(3):
        for _ in range(2):  # at first it may have to be asked whether the other is there
            for each in some:
                if each.fd in two.here.world.wires:
                    two.draw(each)
            two.settle()
        gone.append(sum(each.fd in two.there.world.wires for each in some))
        two.cluster.pass_until(two.cluster.now + 1.1)
    assert gone == [2, 4, 5]


def test_none_is_offered_to_a_worker_that_hangs() -> None:
    two = Two()
    one = two.connect()
    two.settle()
    two.end(1).is_delayed = True  # nothing that it is told does it hear
    two.cluster.pass_until(two.cluster.now + 0.2)
    one.coming += framed(wire.RECV, values.pack(0), values.pack(20), two.topic)
    two.settle()
    two.draw(one)
    two.settle()
    assert two.here.core.moving == 0, "no offer"
    two.cluster.pass_until(two.cluster.now + 0.03)
    two.settle()
    assert answers(one) == [[wire.RECV, values.pack(0), wire.TIMED_OUT]], "its own worker answers it"
    one.coming += framed(wire.RECV, values.pack(1), MINUTE, two.topic)
    two.settle()
    two.end(1).is_delayed = False
    two.settle()
    assert one.fd in two.there.world.wires, "it was asked whether it is there, and says so now"
