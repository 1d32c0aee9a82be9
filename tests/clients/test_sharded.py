"""A topic that is spread over several: whatever comes is somebody's, and is taken once."""

from __future__ import annotations

import functools
import random
import threading
from collections import defaultdict
from typing import Any

import pytest

import skywalker
from tests.clients.driving import Driver, Place, background
from tests.helpers import eventually, time_factor

SOON = 10.0
SHARDS = 5


def waits(junction: Driver, topics: Any, kind: str, count: int = 1) -> None:
    """Return once so many calls of a kind wait on each of the topics."""
    for topic in topics:
        eventually(lambda topic=topic: junction.topic(topic)[kind] == count, within=SOON)


def test_a_sender_takes_shards_in_turn_and_a_taker_waits_on_all(place: Place, topic: str) -> None:
    sender, taker = place.join().sharded(topic, SHARDS), place.join().sharded(topic, SHARDS)
    assert sender.topics == tuple(f"{topic}/{number}" for number in range(SHARDS))
    sent = [background(lambda value=value: sender.send(value, timeout=SOON)) for value in range(3 * SHARDS)]
    assert sorted(taker.take(timeout=SOON) for _ in sent) == list(range(3 * SHARDS))
    assert all(each.result(SOON * time_factor()) is True for each in sent)
    assert taker.close() == []
    other = place.join()
    assert [other.topic(each)["takers"] for each in sender.topics] == [{}] * SHARDS


def test_a_value_that_comes_between_two_takes_is_the_next_ones(place: Place, topic: str) -> None:
    taker, other = place.join().sharded(topic, SHARDS), place.join()
    with pytest.raises(skywalker.TimedOut, match="nobody came to a shard of topic"):
        taker.take(timeout=0.01)
    assert taker.take(timeout=0.0, default="none") == "none"
    waits(other, taker.topics, "takers", {"": 1})  # type: ignore[arg-type]  # as the node counts them
    assert other.send(taker.topics[3], "kept", timeout=SOON)
    assert taker.take(timeout=SOON) == "kept"


def test_who_only_asks_for_what_has_come_gets_it(place: Place, topic: str) -> None:
    taker, other = place.join().sharded(topic, SHARDS), place.join()
    for number in range(2):
        assert taker.take(timeout=0, default=None) is None
        assert other.send(taker.topics[3], number, timeout=SOON)
        eventually(lambda number=number: taker.take(timeout=0, default=None) == number, within=SOON)


def test_what_has_come_and_nobody_asked_for_is_handed_back_at_the_end(place: Place, topic: str) -> None:
    taker, other = place.join().sharded(topic, SHARDS), place.join()
    assert taker.take(timeout=0.0, default=None) is None
    waits(other, taker.topics, "takers", {"": 1})  # type: ignore[arg-type]  # as the node counts them
    for number in range(3):
        assert other.send(taker.topics[number], number, timeout=SOON)
    assert sorted(taker.close()) == [0, 1, 2]
    assert taker.close() == []
    with pytest.raises(skywalker.TimedOut):
        other.send(taker.topics[0], "nobody", timeout=0.0)


@pytest.mark.parametrize("ack", [False, True])
def test_no_value_is_lost_or_comes_twice_while_takers_come_and_go(place: Place, topic: str, ack: bool) -> None:
    luck = random.Random(topic)
    got: list[Any] = []
    lock, is_over = threading.Lock(), threading.Event()

    def take(junction: Driver) -> None:
        while not is_over.is_set():
            shards = junction.sharded(topic, SHARDS)
            mine = []
            for _ in range(luck.randrange(12)):
                if (value := shards.take(timeout=0.05, default=None)) is not None:
                    mine.append(value)
            mine += shards.close()
            with lock:
                got.append(mine)

    def send(junction: Driver, name: int) -> list[Any]:
        shards = junction.sharded(topic, SHARDS)
        return [
            value for number in range(60) if shards.send(value := [name, number], timeout=SOON * time_factor()) is True
        ]

    takers = [background(functools.partial(take, place.join(ack=ack))) for _ in range(3)]
    senders = [background(functools.partial(send, place.join(), name)) for name in range(4)]
    sent = [value for each in senders for value in each.result(60 * time_factor())]
    is_over.set()
    for each in takers:
        each.result(SOON * time_factor())
    assert len(sent) == 4 * 60
    assert sorted(value for mine in got for value in mine) == sorted(sent)


def test_several_may_take_from_one_object(place: Place, topic: str) -> None:
    junction, sender = place.join(), place.join().sharded(topic, SHARDS)
    shards = junction.sharded(topic, SHARDS)
    taken = [background(lambda: [shards.take(timeout=SOON) for _ in range(20)]) for _ in range(3)]
    for value in range(60):
        assert sender.send(value, timeout=SOON)
    found = [each.result(SOON * time_factor()) for each in taken]
    assert sorted(value for mine in found for value in mine) == list(range(60))
    shards.close()


def test_the_order_of_a_sender_holds_on_each_shard(place: Place, topic: str) -> None:
    taker, sender = place.join().sharded(topic, SHARDS, "group"), place.join().sharded(topic, SHARDS)
    sent = background(lambda: [sender.send(value, timeout=SOON) for value in range(40)])
    orders: dict[int, list[int]] = defaultdict(list)
    for value in [taker.take(timeout=SOON) for _ in range(40)]:
        orders[value % SHARDS].append(value)
    assert sorted(orders.values()) == [[*range(shard, 40, SHARDS)] for shard in range(SHARDS)]
    assert sent.result(SOON * time_factor()) == [True] * 40
    taker.close()


def test_a_client_that_is_closed_says_so(place: Place, topic: str) -> None:
    junction = place.join()
    shards = junction.sharded(topic, SHARDS)
    shards.take(timeout=0.0, default=None)
    junction.close()
    with pytest.raises(skywalker.Closed):
        shards.take(timeout=SOON)


@pytest.mark.parametrize(("name", "shards"), [("jobs", 0), ("jobs", -1), ("jobs", 1025), (b"jobs", 2), (None, 2)])
def test_what_is_no_number_of_shards_or_no_name_is_refused(place: Place, name: Any, shards: int) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="shards"):
        place.join().sharded(name, shards)
