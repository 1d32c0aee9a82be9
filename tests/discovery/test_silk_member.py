"""A node that is a member of a Silk cluster, to find the others: in simulated time."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from skywalker.address import Address
from skywalker.discovery import pace, silk_member
from skywalker.errors import Closed, DiscoveryError
from tests.discovery.silk_world import Watch, at, node
from tests.silk.world import Node, World

EMPTY = "tcp://127.0.0.1:9"
"""Where nobody is at first."""


def close(world: World, it: Node) -> None:
    """Close a node once others listen to it, which takes a moment."""
    world.go_on(0.1)
    it.process.call(it.node.close)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def test_a_member_finds_the_others_and_is_found(world: World) -> None:
    a, plain = node(world, 1), node(world)
    plain.join(a.info.router)
    watch = Watch(world, 7, a)
    watch.wait_for(at(1))
    [told] = [each for each in a.members.values() if each.junction]
    assert told.name == "n7"
    b = node(world, 2)
    b.join(a.info.router)
    watch.wait_for(at(1, 2))
    world.go_on(0.1)
    b.leave()
    watch.wait_for(at(1))
    assert watch.troubles == []


def test_one_that_fails_counts_on_for_a_while_and_one_that_leaves_does_not(world: World) -> None:
    a = node(world, 1)
    watch = Watch(world, 7, a)
    watch.wait_for(at(1))
    b = node(world, 2)
    b.join(a.info.router)
    watch.wait_for(at(1, 2))
    b.process.kill()
    world.until(lambda: len(a.members) == 1, 10)
    failed_at = world.now
    world.go_on(pace.FORGET_S - 2)
    assert watch.found[-1] == at(1, 2)
    watch.wait_for(at(1))
    assert world.now - failed_at < pace.FORGET_S + 2
    c = node(world, 2)
    c.join(a.info.router)
    watch.wait_for(at(1, 2))
    c.process.kill()
    world.until(lambda: len(a.members) == 1, 10)
    # It is back there, in another life, and goes in the orderly way.
    d = node(world, 2)
    d.join(a.info.router)
    world.go_on(0.1)
    d.leave()
    watch.wait_for(at(1))


def test_those_of_an_earlier_life_count_until_they_leave(world: World) -> None:
    a, b = node(world, 1), node(world, 2)
    b.join(a.info.router)
    watch = Watch(world, 7, a, last=at(1, 2, 3))
    watch.wait_for(at(1, 2, 3))
    world.go_on(0.5)
    b.leave()
    watch.wait_for(at(1, 3))
    assert all(at(1, 3) <= found for found in watch.found), "it never was without them"


def test_the_others_are_told_of_a_leave_and_nothing_is_forgotten_for_it(world: World) -> None:
    a = node(world, 1)
    watch = Watch(world, 7, a)
    watch.wait_for(at(1))
    world.until(lambda: len(a.members) == 1)
    world.go_on(0.5)
    watch.leave()
    world.until(lambda: not a.members, 3)
    assert a.entries[-1][0] == "Left"
    # It drains, and hands on what it holds to those that it knows.
    b = node(world, 2)
    b.join(a.info.router)
    world.go_on(5)
    assert watch.found[-1:] == [at(1)]
    assert a.members.keys() == {b.id}
    watch.leave()


# Those that it is to join.


def test_seeds_that_are_down_delay_nothing_and_are_found_when_they_are_up(world: World) -> None:
    a = node(world, 1)
    watch = Watch(world, 7, EMPTY, "tcp://no-such-host.invalid:1", a)
    watch.wait_for(at(1), within=2)
    late = node(world, 2, router=EMPTY)
    watch.wait_for(at(1, 2))
    world.until(lambda: a.id in late.members)


@pytest.mark.parametrize("seed", [EMPTY, "tcp://localhost:9"])
def test_a_seed_that_left_is_found_again_though_it_looks_for_nobody(world: World, seed: str) -> None:
    watches = seven, eight = Watch(world, 7, seed), Watch(world, 8, seed)
    others = {seven: [Address("127.0.0.1", 8)], eight: [Address("127.0.0.1", 7)]}
    for port in (1, 2, 3):
        it = node(world, port, router=EMPTY)
        for watch in watches:
            watch.wait_for({*at(port), *others[watch]})
        close(world, it)
        for watch in watches:
            watch.wait_for(others[watch])


def test_who_is_alone_again_goes_on_to_look_for_its_seeds(world: World) -> None:
    watch = Watch(world, 7, EMPTY)
    for port in (1, 2, 3):
        it = node(world, port, router=EMPTY)
        watch.wait_for(at(port))
        close(world, it)
        watch.wait_for([])


# Trouble.


@pytest.mark.parametrize(
    "seeds", [(), ("tcp://127.0.0.1:8",), ("tcp://localhost:8",), ("tcp://127.0.0.1:8", EMPTY)], ids=str
)
def test_who_is_first_or_named_only_itself_has_no_trouble(world: World, seeds: tuple[str, ...]) -> None:
    watch = Watch(world, 7, *seeds, router="tcp://127.0.0.1:8")
    watch.wait_for([])
    world.go_on(3 * silk_member.JOIN_S)
    assert watch.troubles == []


def test_who_reaches_none_of_the_others_says_so_once_until_it_does(world: World) -> None:
    watch = Watch(world, 7, EMPTY, "tcp://no-such-host.invalid:1")
    watch.wait_for_trouble(1)
    assert re.match(
        r"Silk at 127\.0\.0\.1:9,no-such-host\.invalid:1: nobody has answered, so this node is alone for now: ",
        watch.troubles[0] or "",
    )
    assert f"{EMPTY}: Connection refused" in (watch.troubles[0] or "")
    world.go_on(60)
    node(world, 1, router=EMPTY)
    watch.wait_for(at(1), within=15)
    assert [bool(trouble) for trouble in watch.troubles] == [True, False]


def test_a_place_that_another_has_is_told_and_waited_for(world: World) -> None:
    owner = node(world, 1, router=EMPTY)
    watch = Watch(world, 7, router=EMPTY)
    watch.wait_for_trouble(1)
    assert f"cannot listen at {EMPTY}: Address already in use" in (watch.troubles[0] or "")
    assert watch.found == []
    close(world, owner)
    watch.wait_for([])


def test_a_member_that_never_looked_has_nothing_to_leave(world: World) -> None:
    process = Watch(world, 7)
    process.source.leave()
    process.close()
    with pytest.raises(DiscoveryError, match="closed"):
        process.source.look()


def fail_once(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> list[bool]:
    """Have a method of the company of members raise this the next time; return what says that it did."""
    method = getattr(silk_member.Company, name)
    failed: list[bool] = []

    def fail(company: silk_member.Company, *arguments: Any) -> Any:
        if failed:
            return method(company, *arguments)
        failed.append(True)
        raise error

    monkeypatch.setattr(silk_member.Company, name, fail)
    return failed


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Closed("more than 10000 events were not read"), "more than 10000 events were not read"),
        (zmq.ZMQError(errno.EMFILE), "Too many open files"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (ValueError("what?"), "a bug, ValueError('what?')"),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("place", ["_join", "_remember"])
def test_whatever_ends_a_membership_is_told_and_the_next_look_begins_another(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    told: str,
    place: str,
) -> None:
    a = node(world, 1)
    failed = fail_once(monkeypatch, place, error)
    watch = Watch(world, 7, a, last=at(5))
    watch.wait_for_trouble(2)
    assert (watch.troubles[0] or "").endswith(f": {told}")
    assert failed
    watch.wait_for(at(1, 5))
    world.until(lambda: len(a.members) == 1, 10)
    assert watch.troubles[1:] == [None]
    assert ("ValueError: what?" in caplog.text) == isinstance(error, ValueError), "of a bug there is a traceback"


def test_a_membership_that_begins_anew_has_not_forgotten_those_of_the_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = node(world, 1), node(world, 2)
    b.join(a.info.router)
    watch = Watch(world, 7, a)
    watch.wait_for(at(1, 2))
    fail_once(monkeypatch, "_forget", OSError(errno.EMFILE, "Too many open files"))
    node(world, 3).join(a.info.router)
    watch.wait_for_trouble(2)
    watch.wait_for(at(1, 2, 3))
    begun = watch.found.index(at(1, 2))
    assert all(at(1, 2) <= found for found in watch.found[begun:]), "it never was without them"
