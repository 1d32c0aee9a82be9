"""Which of several links to a place is asked: to its worker, or to another one that comes after it, or seems to."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from skywalker.members import Place
from workers.engine.loop import Alarm
from workers.nodes import peer as peers
from workers.nodes.peer import CROSSED_S, PARTING_S, Peer
from workers.nodes.peer_link import PeerLink, PeerLinks, Way

PLACE = Place("node", 0)


class Clock:
    """A turn in which time goes by when a test says so, and alarms ring."""

    def __init__(self) -> None:
        self.now = 100.0
        self.core = Core()
        self._alarms: dict[int, tuple[float, Alarm]] = {}
        self._count = 0

    def set_alarm(self, alarm: Alarm, at: float) -> int:
        self._count += 1
        self._alarms[self._count] = at, alarm
        return self._count

    def drop_alarm(self, number: int) -> None:
        self._alarms.pop(number, None)

    def go_on(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [number for number, (at, _) in self._alarms.items() if at <= end]:
            first = min(due, key=lambda number: self._alarms[number][0])
            self.now, alarm = self._alarms.pop(first)
            alarm.expired()
        self.now = end


class Core:
    """Knows of no calls."""

    def __getattr__(self, name: str) -> Callable[..., bool]:
        return lambda *arguments, **named: False


class Link:
    """One over which something of the other end's waits as long as it lasts."""

    parts = subscribes = False
    streams: tuple[()] = ()
    unsent = 0
    handle = 1

    def __init__(self, ended: Callable[[Link, str], None], retired: Callable[[], None]) -> None:
        self.closed = False
        self.answers = True
        self.asked: list[Any] = []  # that it has not answered
        self.retired = retired
        self._ended = ended

    def is_unused(self) -> bool:
        return False

    def last_used(self) -> float:
        return float("inf")

    def ask_census(self, question: Any, topic: bytes) -> None:
        if self.answers:
            question.answer(b"")
        else:
            self.asked.append(question)

    def catch_up(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def die(self) -> None:
        self.closed = True
        self._ended(self, "it is dead")


class Question:
    """How many wait there."""

    carrier: Any = None

    def answer(self, info: bytes) -> None:
        pass


class Dial:
    """An attempt, of which a test says how it ends."""

    is_asking = True
    is_shaking_hands = False

    def __init__(self, place: Place, member: Any, by: Any, dialler: Any) -> None:
        self.dialler = dialler

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass


class Here:
    """A worker of one node, and the links that the workers in a place of another one make to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        self.dials: list[Dial] = []
        self.links = PeerLinks()
        self._relays = SimpleNamespace(awaits=lambda place: False, attempt=lambda *_: None, met=lambda place: None)
        nothing = lambda *_: None  # noqa: E731  # one for all
        self._context: Any = SimpleNamespace(
            turn=self.clock,
            log=SimpleNamespace(info=lambda *_, **named: None, warning=lambda *_, **named: None),
            links=SimpleNamespace(abroad=lambda _, place, ended, settled, retired, **named: Link(ended, retired)),
            barrier=SimpleNamespace(gone=nothing, linked=nothing, settled=nothing),
            rebalance=SimpleNamespace(succeed=nothing, hold_back=nothing, begin=lambda then: then()),
            node=SimpleNamespace(snapshot=SimpleNamespace(by_id={PLACE.node: None}), id="here", slot=0),
            standing=SimpleNamespace(leaving=False, replaced=False, opening=False),
            machine=SimpleNamespace(random=lambda: 0.5),
            have_visited=lambda place, life, then: then(),
            idle_s=1e9,
        )
        monkeypatch.setattr(peers, "Attempt", self._dial)

    def _dial(self, *arguments: Any) -> Dial:
        self.dials.append(Dial(*arguments))
        return self.dials[-1]

    def peer(self, workers: int = 1) -> Peer:
        """Return who stands for them, at a node with so many workers."""
        member: Any = SimpleNamespace(address="there", workers=workers, steering=True)
        relays: Any = self._relays
        return Peer(PLACE, member, self._context, self.links, relays)

    def link(self, life: str, age_s: float) -> Any:
        """Return one that the worker of that life has made."""
        return PeerLink(object(), "", PLACE, life, Way.BOTH, self._context, self.links, came=True, age_s=age_s)  # type: ignore[arg-type]  # nothing is said


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    """Return a worker that has met nobody."""
    return Here(monkeypatch)


def test_one_that_was_left_for_a_successor_that_died_is_asked_again(here: Here) -> None:
    peer, first, successor = here.peer(), here.link("first", 50.0), here.link("successor", 0.1)
    peer.has_made(first, waits=False)
    first.succeeded()
    peer.has_made(successor, waits=True)
    here.clock.go_on(PARTING_S)
    assert (peer.carrier, first.is_left) == (successor.link, True)
    successor.link.die()
    peer.absent.ask_census(Question(), b"topic")
    here.clock.go_on(1.0)
    here.dials[-1].dialler.crossed("first")
    assert peer.carrier is first.link


@pytest.mark.parametrize("says_so", [True, False])
def test_a_successor_is_asked_once_its_predecessor_has_given_back_what_waited_there(here: Here, says_so: bool) -> None:
    peer, first, successor = here.peer(), here.link("first", 50.0), here.link("successor", 0.1)
    peer.has_made(first, waits=False)
    peer.has_made(successor, waits=True)
    first.link.answers = False
    first.link.retired()
    here.clock.go_on(PARTING_S / 2)
    assert peer.carrier is peer.absent
    assert not here.dials
    if says_so:
        for question in first.link.asked:
            question.answer(b"")
    else:
        here.clock.go_on(PARTING_S / 2)  # it is not waited for any longer
    assert peer.carrier is successor.link


def test_one_that_has_retired_is_not_asked_again(here: Here) -> None:
    peer, first, successor = here.peer(), here.link("first", 50.0), here.link("successor", 0.1)
    peer.has_made(first, waits=False)
    peer.has_made(successor, waits=False)
    first.link.retired()
    assert peer.carrier is successor.link
    successor.link.die()
    peer.absent.ask_census(Question(), b"topic")
    here.clock.go_on(1.0)
    here.dials[-1].dialler.crossed("first")
    assert peer.carrier is peer.absent
    dials = len(here.dials)
    here.clock.go_on(CROSSED_S)
    assert len(here.dials) > dials


def test_a_dead_one_that_seems_to_be_the_successor_is_forgotten(here: Here) -> None:
    peer, living, dead = here.peer(), here.link("living", 0.2), here.link("dead", 0.1)
    peer.has_made(living, waits=False)
    living.succeeded()
    peer.has_made(dead, waits=True)
    dead.link.die()
    here.clock.go_on(PARTING_S)
    assert peer.carrier is living.link
    assert living.can_be_asked
    assert not here.dials


def test_one_that_retired_while_its_node_was_not_on_the_ring_is_left_once_that_is_back(here: Here) -> None:
    peer, first = here.peer(), here.link("first", 50.0)
    peer.has_made(first, waits=False)
    peer.leave_ring()
    first.link.retired()
    successor = here.link("successor", 0.1)
    peer.owns = True
    peer.find()
    assert peer.carrier is successor.link


def test_who_takes_a_link_over_has_it_alone(here: Here) -> None:
    before, after, link = here.peer(), here.peer(workers=2), here.link("first", 0.1)
    before.has_made(link, waits=False)
    before.leave_ring()
    after.find()
    assert (before.carrier, after.carrier) == (before.absent, link.link)
    assert before.is_done()
    link.link.die()
    before.leave_ring()
    assert after.carrier is after.absent
