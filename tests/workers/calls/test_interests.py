"""Where values of a topic come from, when who is asked for them is replaced, or a ring has another owner, meanwhile.

That subscribers miss nothing whatever happens is simulated; here is what seldom matters there.
"""

from __future__ import annotations

from typing import Any

import pytest

from skywalker.members import Place
from workers.calls.inquiries import Interest, Question
from workers.calls.interests import Interests, TopicInterest
from workers.calls.owner import Owner
from workers.calls.worker_states import Standing
from workers.mesh.messages import SUBSCRIBED
from workers.mesh.remote_interests import RemoteInterests

TOPIC = b"\xa5topic"
NO_CORE: Any = None
"""Of it subscribers are asked for, of whom there are none, and owners that are on a ring."""


class Link:
    """A link, and how many subscribers it was told of, each time."""

    handle = 1
    is_congested = False

    def __init__(self, owner: Owner) -> None:
        self.asked: list[int] = []
        owner.met(self)

    def subscribe(self, interest: Interest) -> None:
        self.asked.append(interest.audience)

    def unsubscribe(self, interest: Interest) -> None:
        self.asked.append(0)

    def settle(self) -> None:
        """All that was asked is in effect when the test says so."""

    def forget_interest(self, interest: Interest) -> None:
        """It has no list of them."""

    def ask_census(self, question: Question, topic: bytes) -> None:
        raise AssertionError("nobody counts")

    def forget(self, question: Question) -> None:
        raise AssertionError("nobody counts")


class Said:
    """A core, as far as one subscriber at another worker needs it, and what it was to say there."""

    def __init__(self) -> None:
        self.kinds: list[int] = []

    def say(self, _link: int, kind: int, *, topic: bytes) -> None:
        assert topic == TOPIC
        self.kinds.append(kind)

    def interest(self, _link: int, _topic: bytes) -> int:
        return 1

    def stand_no_more(self, row: int) -> None:
        """It never stood."""

    def end_interest(self, row: int) -> None:
        """Nothing is left of it."""


class World:
    """An owner who was asked for a topic, and what it is that waits for the answer."""

    def __init__(self) -> None:
        self.told = 0
        self.owner, self.other = Owner(NO_CORE, Place("us", 1)), Owner(NO_CORE, Place("them", 0))
        self.source = self.owner
        self.link = Link(self.owner)
        self.interests = Interests(NO_CORE, lambda _: self.source)
        self.interests.change(TOPIC, 1, self)
        self.interest: TopicInterest = self.interests.all()[0]
        assert (self.link.asked, self.told) == ([1], 0)

    def in_effect(self) -> None:
        self.told += 1


@pytest.fixture
def world() -> World:
    return World()


def test_what_one_answers_that_has_a_successor_is_not_for_those_who_wait_for_that(world: World) -> None:
    successor = Link(world.owner)
    world.interest.handed_over(world.link)
    assert successor.asked == [1]
    world.interest.answered(world.link)
    assert not world.told
    world.interest.answered(successor)
    assert world.told == 1


def test_nobody_else_is_asked_before_one_that_is_parted_from_has_said_its_last_though_it_has_a_successor(
    world: World,
) -> None:
    other, world.source = Link(world.other), world.other
    world.interest.ring_changed()
    assert world.link.asked == [1, 0]
    Link(world.owner)
    world.interest.handed_over(world.link)
    world.interest.answered(world.link)
    assert not other.asked, "values of both would come twice"
    world.interest.answered(world.link)
    assert (other.asked, world.told) == ([1], 0)
    world.interest.answered(other)
    assert world.told == 1


def test_who_asks_for_nothing_more_is_told_so_though_what_it_asked_before_is_not_in_effect(world: World) -> None:
    # Its answer may be what the other worker waits for before it says so.
    said: Any = Said()
    rows: dict[int, Any] = {}
    sibling = RemoteInterests(said, 1, False, True, Standing(), Interests(said, lambda _: world.owner), NO_CORE, rows)
    sibling.ask(TOPIC, 2)
    assert (world.link.asked, said.kinds) == ([1, 2], [])
    sibling.ask(TOPIC, 0)
    assert (world.link.asked, said.kinds) == ([1, 2, 0], [SUBSCRIBED, SUBSCRIBED])
    assert not rows
