"""Who is in the cluster, in simulated time: one thing at a time, and how soon it is known."""

from __future__ import annotations

import itertools

import pytest

from skywalker.address import Address
from skywalker.discovery import pace
from skywalker.discovery.roster import (
    ELSEWHERE,
    MAX_CONTACTS,
    MAX_DIALLING,
    MAX_UNPROVEN,
    NO_TLS,
    NOT_LET_IN,
)
from tests.discovery.model_cluster import ME, World, address_of, member_of


def settled(*numbers: int, learning: bool = False) -> World:
    """A world in which these nodes serve, are listed and have been up for a while."""
    world = World(learning=learning)
    for number in numbers:
        world.serve(member_of(number))
    world.find(*numbers)
    world.pass_time(5.0)
    assert world.ids == ids(0, *numbers)
    return world


def ids(*numbers: int) -> list[str]:
    return [member_of(number).id for number in numbers]


def test_nodes_that_come_at_once_make_one_snapshot() -> None:
    world = World()
    for number in range(1, 10):
        world.serve(member_of(number))
    world.find(*range(1, 10))
    world.pass_time(5.0)
    assert [found for _, found in world.since(0.0)] == [ids(*range(10))]
    assert len(world.dials) == 9
    start = world.now
    for number in range(10, 15):
        world.serve(member_of(number))
        world.find(*range(1, number + 1))
        world.pass_time(0.01)
    world.pass_time(5.0)
    assert [found for _, found in world.since(start)] == [ids(*range(15))]


def test_a_node_is_pinged_twice_a_second_and_many_are_pinged_less_often() -> None:
    world = settled(1)
    before = len(world.pings)
    world.pass_time(10.0)
    assert 18 <= len(world.pings) - before <= 20
    world = settled(*range(1, 301))
    before = len(world.pings)
    world.pass_time(10.0)
    assert 1700 <= len(world.pings) - before <= 2000


def test_a_killed_node_is_out_in_a_quarter_of_a_second() -> None:
    world = settled(1, 2)
    start = world.now
    world.kill(address_of(1))
    world.pass_time(60.0)
    [(after, left)] = world.since(start)
    assert left == ids(0, 2)
    assert 0.2 <= after < 0.25
    assert [at for at, _ in world.notices] == [address_of(1)]


@pytest.mark.parametrize("count", [20, 400])
def test_many_that_are_killed_at_once_make_two_snapshots_and_the_first_is_as_soon_as_ever(count: int) -> None:
    world = settled(*range(1, count + 1))
    start = world.now
    for number in range(1, count // 10 + 1):
        world.kill(address_of(number))
        world.pass_time(0.0001)
    world.pass_time(1.0)
    [(first_after, first), (after, left)] = world.since(start)
    assert first == ids(0, *range(2, count + 1))
    assert first_after < 0.25
    assert left == ids(0, *range(count // 10 + 1, count + 1))
    assert after - first_after == pytest.approx(pace.apart_s(len(left)), abs=0.002)


def test_connections_that_do_not_last_are_not_made_anew_in_a_hot_loop() -> None:
    world = settled(1)
    before = len(world.dials)
    end = world.now + 10.0
    while world.now < end:
        world.cut(address_of(1))
        world.pass_time(0.002)
    assert len(world.dials) - before <= 51
    assert world.ids == ids(0, 1), "it answers every time"
    assert len([text for _, text in world.notices if "lasts" in text]) == 1


@pytest.mark.parametrize("luck", [0.0, 0.999])
def test_a_dead_node_is_redialled_about_every_second_and_found_when_it_is_back(luck: float) -> None:
    world = World(luck=luck)
    world.find(1)
    world.pass_time(100.0)
    times = [at for at, _ in world.dials[3:]]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(0.49 < gap < 1.03 for gap in gaps)
    world.serve(member_of(1))
    start = world.now
    world.pass_time(5.0)
    [(after, found)] = world.since(start)
    assert found == ids(0, 1)
    assert after < 1.1
    assert len(world.notices) == 1, "trouble is said once"


def test_a_node_that_leaves_is_out_at_once_and_back_only_when_it_greets_anew() -> None:
    world = settled(1, 2)
    world.leave(address_of(1))
    assert world.ids == ids(0, 2)
    world.pass_time(20.0)
    assert world.ids == ids(0, 2), "it is connected, and pinged, and out"
    world.kill(address_of(1))
    world.serve(member_of(1))
    world.pass_time(2.0)
    assert world.ids == ids(0, 1, 2)


def test_one_that_the_source_drops_counts_on_for_a_while_and_then_is_hung_up_and_out() -> None:
    world = settled(1, 2)
    world.find(2)
    world.pass_time(pace.DROPPED_S - 1.0)
    assert world.ids == ids(0, 1, 2)
    world.pass_time(3.0)
    assert world.ids == ids(0, 2)
    assert set(world.connections) == {address_of(2)}
    dials = len(world.dials)
    world.pass_time(60.0)
    assert len(world.dials) == dials
    world.find(1, 2)
    world.pass_time(1.0)
    assert world.ids == ids(0, 1, 2)


def test_one_that_the_source_drops_is_out_as_soon_as_any_if_it_dies_and_at_once_if_it_leaves() -> None:
    world = settled(1, 2)
    world.find()
    start = world.now
    world.kill(address_of(1))
    world.pass_time(1.0)
    [(after, left)] = world.since(start)
    assert left == ids(0, 2)
    assert 0.2 <= after < 0.25
    world.leave(address_of(2))
    assert world.ids == ids(0)
    assert world.connections == {}
    world.pass_time(60.0)
    assert world.connections == {}


def test_an_address_of_ours_is_not_dialled_again() -> None:
    world = World()
    elsewhere = Address("127.0.0.1", 3443)
    world.serve(ME)
    world.serve(ME, elsewhere, stated=True)
    world.find(0, elsewhere)
    world.pass_time(100.0)
    assert len(world.dials) == 2
    assert world.connections == {}
    assert world.ids == ids(0)
    assert world.notices == []


def test_a_node_that_drains_is_out_of_its_own_cluster_at_once_and_goes_on_watching_it() -> None:
    world = settled(1, 2)
    world.drain()
    assert world.ids == ids(1, 2)
    world.kill(address_of(1))
    world.pass_time(1.0)
    assert world.ids == ids(2)
    world.kill(address_of(2))
    world.pass_time(1.0)
    assert world.ids == ids(0), "it has nobody to leave its topics to"


def test_the_first_of_two_nodes_with_one_id_stays_and_the_second_is_told_of_once() -> None:
    world = settled(1)
    copy = member_of(1, host="10.0.9.9")
    world.serve(copy)
    world.find(1, copy.address)
    world.pass_time(100.0)
    assert world.published[-1][1].by_id["id-0001"].address == address_of(1)
    assert [at for at, _ in world.notices] == [copy.address]
    assert "state directory" in world.notices[0][1]
    start = world.now
    world.kill(address_of(1))
    world.pass_time(1.0)
    assert [snapshot.by_id["id-0001"].address for at, snapshot in world.published if at > start] == [copy.address]


def test_a_node_with_our_own_id_elsewhere_is_told_of_and_ignored() -> None:
    world = World()
    copy = member_of(0, host="10.0.9.9")
    world.serve(copy)
    world.find(copy.address)
    world.pass_time(100.0)
    assert world.ids == ids(0)
    assert [at for at, _ in world.notices] == [copy.address]
    # It was given an id of its own.
    world.serve(member_of(7, host="10.0.9.9"))
    world.pass_time(31.0)
    assert world.ids == ids(0, 7)


def test_a_stranger_is_told_of_once_and_looked_at_again_now_and_then() -> None:
    world = World()
    world.stranger(address_of(1))
    world.find(1)
    world.pass_time(100.0)
    assert world.ids == ids(0)
    assert len(world.dials) == 4
    assert len(world.notices) == 1
    world.serve(member_of(1))
    world.pass_time(31.0)
    assert world.ids == ids(0, 1)


def test_another_node_at_the_address_of_one_takes_its_place() -> None:
    world = settled(1)
    start = world.now
    world.kill(address_of(1))
    world.serve(member_of(2, host=address_of(1).host))
    world.pass_time(5.0)
    assert [found for _, found in world.since(start)] == [ids(0, 2)]


def test_members_of_an_earlier_life_stay_until_they_turn_out_to_be_gone() -> None:
    world = World(last=[ME, member_of(1), member_of(2)])
    world.serve(member_of(1))
    start = world.now
    world.pass_time(5.0)
    assert [found for _, found in world.since(start)] == [ids(0, 1, 2), ids(0, 1)]
    # The source has its say as soon as there is one, about those that live as about any other.
    world.find(3)
    world.pass_time(pace.DROPPED_S + 2.0)
    assert world.ids == ids(0)


@pytest.mark.parametrize("first", ["lost", "dropped"])
def test_a_connection_that_is_lost_costs_its_node_nothing_though_the_source_lists_it_no_more_just_then(
    first: str,
) -> None:
    world = settled(1, 2)
    start = world.now
    if first == "lost":
        world.cut(address_of(1))
        world.find(2)
    else:
        world.find(2)
        world.cut(address_of(1))
    world.pass_time(5.0)
    assert world.since(start) == []
    world.cut(address_of(2))
    world.hosts.clear()
    world.find()
    world.pass_time(2.0)
    assert world.ids == ids(0, 1)
    assert set(world.connections) == {address_of(1)}


# Learning from others.


def test_any_one_node_leads_to_all_the_others() -> None:
    world = World(learning=True)
    for number in range(1, 6):
        world.serve(member_of(number), version="all").ring = tuple(member_of(each) for each in range(6))
    world.find(3)
    world.pass_time(1.0)
    assert world.ids == ids(*range(6))
    assert len(world.asked) == 1, "one told it all"
    assert len(world.dials) == 5, "and not a word of ourselves was believed"


def test_each_ring_is_read_once_from_one_node_at_a_time() -> None:
    world = settled(*range(1, 10), learning=True)
    for number in range(1, 10):
        world.hosts[address_of(number)].ring = (member_of(10),)
        world.push(address_of(number), "newer")
    assert len(world.asked) == 1
    world.serve(member_of(10))
    world.pass_time(5.0)
    assert len(world.asked) == 1
    assert world.ids == ids(*range(11))
    # One that dies before it answers is not waited for.
    world.hosts[address_of(2)].hangs = True
    world.push(address_of(2), "newest")
    world.push(address_of(3), "newest")
    world.pass_time(10.0)
    assert world.asked[1:] == [address_of(2), address_of(3)]


def test_a_ring_that_is_not_told_to_its_end_is_asked_for_again_and_not_without_pause() -> None:
    world = settled(1, learning=True)
    host = world.hosts[address_of(1)]
    host.ring, host.is_cut_short = (member_of(2),), True
    world.serve(member_of(2))
    world.serve(member_of(3))
    world.push(address_of(1), "with 3")
    world.pass_time(1.0)
    assert world.ids == ids(0, 1, 2), "what it told is believed"
    world.pass_time(59.0)
    assert 8 <= len(world.asked) <= 12
    host.ring, host.is_cut_short = (member_of(2), member_of(3)), False
    world.pass_time(pace.ASK_AGAIN_S + 2.0)
    assert world.ids == ids(0, 1, 2, 3)
    asked = len(world.asked)
    world.pass_time(60.0)
    assert len(world.asked) == asked


def test_one_that_tells_its_ring_to_the_end_is_asked_after_one_that_does_not() -> None:
    world = settled(1, 2, learning=True)
    for number in (1, 2):
        host = world.hosts[address_of(number)]
        host.ring, host.is_cut_short = (member_of(3),) if number == 2 else (), number == 1
        world.push(address_of(number), "with 3")
    world.serve(member_of(3))
    world.pass_time(60.0)
    assert world.asked == [address_of(1), address_of(2)]
    assert world.ids == ids(0, 1, 2, 3)


def test_a_ring_that_we_have_ourselves_is_not_read() -> None:
    world = settled(1, learning=True)
    version = world.published[-1][1].version
    world.push(address_of(1), version)
    world.pass_time(1.0)
    assert world.asked == []


def test_a_hint_is_followed_by_those_who_learn_and_by_nobody_else() -> None:
    for learning in (True, False):
        world = settled(1, learning=learning)
        world.serve(member_of(2))
        world.hint(address_of(2))
        world.hint(address_of(1))
        world.hint(ME.address)
        world.pass_time(1.0)
        assert world.ids == ids(0, 1, *([2] if learning else []))
        assert len(world.dials) == 1 + learning


def test_hints_make_us_dial_soon_and_not_without_end() -> None:
    world = World(learning=True, luck=0.9)
    world.find(1)
    world.pass_time(20.0)
    before = len(world.dials)
    for _ in range(1000):
        world.hint(address_of(1))
        world.pass_time(0.01)
    assert len(world.dials) - before <= 51
    world.serve(member_of(1))
    world.hint(address_of(1))
    world.pass_time(0.3)
    assert world.ids == ids(0, 1)


def test_what_was_learned_and_is_dead_for_ten_minutes_is_forgotten_but_never_what_is_listed() -> None:
    world = settled(1, learning=True)
    world.serve(member_of(2))
    world.hint(address_of(2))
    world.pass_time(5.0)
    world.kill(address_of(1))
    world.kill(address_of(2))
    world.pass_time(595.0)
    recent = [at for time, at in world.dials if time > world.now - 3]
    assert set(recent) == {address_of(1), address_of(2)}
    world.pass_time(10.0)
    start = world.now
    world.pass_time(60.0)
    assert {at for time, at in world.dials if time > start} == {address_of(1)}


def test_a_node_whose_listed_name_leads_elsewhere_now_is_still_found_at_its_own_address() -> None:
    world = World(learning=True)
    name = Address("entry", 3443)
    world.serve(member_of(1), name)
    world.serve(member_of(1))
    world.find(name)
    world.pass_time(5.0)
    assert set(world.connections) == {name}
    world.serve(member_of(2), name)
    world.serve(member_of(2))
    world.cut(name)
    world.pass_time(5.0)
    assert world.ids == ids(0, 1, 2)


def test_a_liar_cannot_make_us_remember_addresses_without_end() -> None:
    world = settled(1, learning=True)
    for start in range(0, 3 * MAX_CONTACTS, 1000):
        world.hosts[address_of(1)].ring = tuple(member_of(number) for number in range(start + 2, start + 1002))
        world.push(address_of(1), f"lie {start}")
        world.pass_time(0.1)
    world.pass_time(60.0)  # until each has had its turn
    assert len({at for _, at in world.dials}) == MAX_CONTACTS
    assert len([text for _, text in world.notices if "beyond" in text]) == 1
    assert world.ids == ids(0, 1)


def unproven(world: World) -> list[Address]:
    """Return where somebody was found who is no node of the cluster, as was last published."""
    return [*world.published[-1][1].unproven]


def test_whoever_proves_nothing_is_in_no_ring_is_named_and_is_asked_again_every_few_seconds() -> None:
    world = settled(1)
    version = world.published[-1][1].version
    world.pretend(address_of(2))
    world.find(1, 2)
    world.pass_time(3.0)
    assert world.ids == ids(0, 1)
    assert unproven(world) == [address_of(2)]
    assert world.published[-1][1].version == version, "it is one node's view, and no part of the ring"
    [(at, text)] = world.notices
    assert (at, text) == (address_of(2), "what is there does not prove to be a node of this cluster: it proves nothing")
    before = len(world.dials)
    world.pass_time(60.0)
    assert 10 <= len(world.dials) - before <= 12
    world.serve(member_of(2))
    world.pass_time(pace.STRANGER_S + 2.0)
    assert world.ids == ids(0, 1, 2)
    assert not unproven(world)


def test_whoever_takes_the_address_of_a_node_that_died_owns_nothing_of_it() -> None:
    world = settled(1, 2)
    start = world.now
    world.pretend(address_of(1))
    world.pass_time(5.0)
    assert world.since(start)[0] == (pytest.approx(0.2, abs=0.1), ids(0, 2))
    assert unproven(world) == [address_of(1)]


def test_whoever_names_strangers_without_end_has_few_of_them_named_and_rarely() -> None:
    world = settled(1)
    start = world.now
    for number in range(2, 200):
        world.pretend(address_of(number))
        world.find(1, *range(max(2, number - 20), number + 1))
        world.pass_time(0.1)
    published = world.since(start)
    assert len(published) <= 22
    assert max(len(snapshot.unproven) for _, snapshot in world.published) == MAX_UNPROVEN
    assert {tuple(each) for _, each in published} == {tuple(ids(0, 1))}


def test_whoever_names_very_many_addresses_has_us_dial_some_at_a_time_and_no_storm() -> None:
    world = settled(1)
    start, named = world.now, [Address(f"10.{number >> 8}.{number & 255}.9", 3443) for number in range(3000)]
    world.find(address_of(1), *named)
    assert sum(1 for host in world.connections.values() if host is None) <= MAX_DIALLING
    world.pass_time(60.0)
    assert len({at for _, at in world.dials}) == len(named) + 1, "each has its turn"
    world.pass_time(60.0)
    late = [at for at, _ in world.dials if at > start + 60.0]
    assert len(late) / 60 < 220
    assert world.ids == ids(0, 1)
    assert len(world.pings) > 100, "those who are there are looked after meanwhile"


def test_many_that_hang_keep_none_from_being_dialled() -> None:
    world = settled(1)
    hang = [Address(f"10.9.{number >> 8}.{number & 255}", 3443) for number in range(600)]
    for address in hang:
        world.serve(member_of(3), address).hangs = True
    world.serve(member_of(2))
    world.find(address_of(1), address_of(2), *hang)
    world.pass_time(20.0)
    assert world.ids == ids(0, 1, 2)


@pytest.mark.parametrize(
    ("what", "learning", "named"),
    [
        (NO_TLS, False, True),
        (NOT_LET_IN, True, True),
        (ELSEWHERE, False, True),
        (ELSEWHERE, True, False),
    ],
)
def test_who_cannot_be_counted_in_is_named_unless_a_list_merely_leads_elsewhere(
    what: str, learning: bool, named: bool
) -> None:
    world = settled(1, learning=learning)
    world.pretend(address_of(2), what)
    world.find(1, 2)
    world.pass_time(3.0)
    assert unproven(world) == ([address_of(2)] if named else [])
    world.serve(member_of(2))
    world.pass_time(pace.STRANGER_S + 2.0)
    assert world.ids == ids(0, 1, 2), "it is asked again soon"
