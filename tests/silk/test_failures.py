"""Nodes that die, stand still, restart, or are cut off from others: how soon that is known, and all is well again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skywalker.errors import NoReply
from skywalker.silk import pace
from tests.silk.world import Node, World

PERIOD_S = 1.0
GIVEN_UP_S = (pace.SILENT + 1) * PERIOD_S
"""Seconds from a node's last word until others give it up."""

HEALED_S = 4.0
"""Seconds from the end of a cut until all know each other again."""

Hosts = list[str]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def start(world: World, count: int) -> list[Node]:
    """Return members on hosts of their own, who have known each other for a while."""
    nodes = []
    for number in range(count):
        node = Node(world, host=f"10.0.0.{number}", name=f"n{number}", keepalive=PERIOD_S)
        node.handle("echo", lambda data: data, attempts=3, period=2 * PERIOD_S)
        if nodes:
            node.join(nodes[0].info.router)
        nodes.append(node)
    met(world, nodes)
    world.go_on(2 * PERIOD_S)
    for node in nodes:
        node.entries.clear()
    return nodes


def met(world: World, nodes: list[Node], within: float = HEALED_S) -> None:
    """Have time go by until these know each other, and nobody else."""
    ids = {node.id for node in nodes}
    world.until(lambda: all(node.members.keys() == ids - {node.id} for node in nodes), within)


def part(world: World, some: list[Node], others: list[Node], seconds: float) -> None:
    """Have nothing pass between some and others for so long."""
    for one in some:
        for other in others:
            world.net.part(one.process.host, other.process.host, seconds)
            world.net.part(other.process.host, one.process.host, seconds)


def nobody_failed(nodes: list[Node]) -> bool:
    return not [what for node in nodes for what, _ in node.entries if what == "Failed"]


# Deaths.


def test_a_node_that_is_killed_is_gone_at_all_others_within_the_bound(world: World) -> None:
    victim, *others = start(world, 4)
    victim.process.kill()
    killed_at = world.now
    met(world, others, GIVEN_UP_S + 1.2)
    assert world.now - killed_at > GIVEN_UP_S - 1.2
    for other in others:
        assert other.of(victim) == ["Suspected", "Failed"]
        assert not [what for each in others for what in other.of(each)], "nobody else was taken for dead"


def test_half_of_the_nodes_may_be_killed_at_once(world: World) -> None:
    nodes = start(world, 6)
    for node in nodes[:3]:
        node.process.kill()
    met(world, nodes[3:], GIVEN_UP_S + 1.2)


def test_a_request_to_one_that_is_killed_meanwhile_ends_with_an_error(world: World) -> None:
    asker, victim = start(world, 2)
    victim.process.stop(1.0)
    asked = asker.ask(victim, "echo", "x")
    world.go_on(0.5)
    victim.process.kill()
    with pytest.raises(NoReply, match="n1"):
        world.result(asked, GIVEN_UP_S + 1.2)


def test_of_all_that_are_asked_those_that_die_are_errors_and_the_others_answer(world: World) -> None:
    asker, victim, *others = start(world, 4)
    victim.process.kill()
    replies = asker.request_all("echo", "x")
    assert {reply.node.id for reply in replies[:2]} == {other.id for other in others}
    assert [reply.data for reply in replies[:2]] == ["x", "x"]
    assert (replies[2].node.id, type(replies[2].error), len(replies)) == (victim.id, NoReply, 3)
    assert "has failed" in str(replies[2].error)


@pytest.mark.parametrize("is_at_the_same_place", [True, False])
def test_a_node_that_restarts_is_another(world: World, is_at_the_same_place: bool) -> None:
    first, *others = start(world, 3)
    places = [first.info.router, first.info.pub] if is_at_the_same_place else []
    first.process.kill()
    second = Node(world, *places, host="10.0.0.0")
    second.join(others[0].info.router)
    met(world, [second, *others], GIVEN_UP_S + 1.2)


# Standing still.


def test_a_node_that_was_stopped_is_given_up_and_comes_back_by_itself(world: World) -> None:
    sleeper, *others = nodes = start(world, 4)
    sleeper.process.stop(20.0)
    met(world, others, GIVEN_UP_S + 1.2)
    world.go_on(20.0 - GIVEN_UP_S)
    met(world, nodes)
    for other in others:
        assert other.of(sleeper)[:2] == ["Suspected", "Failed"]
        assert other.of(sleeper)[-1] in ("Joined", "Recovered")
        assert sleeper.request(other.id, "echo", other.id) == other.id
        assert other.request(sleeper.id, "echo", sleeper.id) == sleeper.id
    world.go_on(3 * GIVEN_UP_S)
    met(world, nodes)
    assert [other.of(sleeper).count("Failed") for other in others] == [1, 1, 1]


def test_a_node_that_was_stopped_for_a_moment_is_suspected_and_stays(world: World) -> None:
    sleeper, other = start(world, 2)
    sleeper.process.stop(3.3)
    world.go_on(3 * GIVEN_UP_S)
    assert other.of(sleeper) == ["Suspected", "Recovered"]
    assert "Failed" not in sleeper.of(other)


def test_all_nodes_may_sleep_at_once_and_know_each_other_when_they_wake_up(world: World) -> None:
    nodes = start(world, 4)
    for node in nodes:
        node.process.stop(2 * GIVEN_UP_S)
    world.go_on(2 * GIVEN_UP_S)
    met(world, nodes)


# Cuts.


@pytest.mark.parametrize("lasts_s", [7.0, 60.0])
def test_each_side_of_a_cut_goes_on_and_both_are_one_again_when_it_is_healed(world: World, lasts_s: float) -> None:
    nodes = start(world, 4)
    one, other = nodes[:2], nodes[2:]
    part(world, one, other, lasts_s)
    ends_at = world.now + lasts_s
    for side in (one, other):
        met(world, side, GIVEN_UP_S + 1.2)
        assert side[0].request(side[1].id, "echo", 1) == 1
    world.go_on(ends_at - world.now)
    met(world, nodes, HEALED_S + pace.VISIT_PART * lasts_s)
    for each in one:
        for across in other:
            assert each.request(across.id, "echo", 2) == across.request(each.id, "echo", 2) == 2


def test_a_cut_of_a_moment_makes_nobody_fail(world: World) -> None:
    nodes = start(world, 4)
    for _ in range(3):
        part(world, nodes[:1], nodes[1:], PERIOD_S)
        world.go_on(pace.SILENT * PERIOD_S)
    met(world, nodes)
    assert nobody_failed(nodes)


def test_two_nodes_that_cannot_reach_each_other_while_all_others_can_are_brought_together_in_the_end(
    world: World,
) -> None:
    """The others say of both that they live, and nobody else is drawn into it."""
    one, other, *rest = nodes = start(world, 4)
    part(world, [one], [other], 15.0)
    world.go_on(15.0)
    assert "Failed" in one.of(other)
    assert "Failed" in other.of(one)
    assert not [what for node in rest for what, _ in node.entries if what in ("Failed", "Joined")]
    met(world, nodes)
    assert one.request(other.id, "echo", 1) == 1


def test_a_line_that_leads_one_way_only_is_found_out(world: World) -> None:
    mute, *others = nodes = start(world, 4)
    for other in others:
        world.net.part(mute.process.host, other.process.host, 15.0)
    met(world, others, GIVEN_UP_S + 1.2)
    world.go_on(15.0)
    # It took the others for alive all the time, and what it said to them waits until TCP tries again.
    met(world, nodes, HEALED_S + 15.0)


def test_a_request_outlives_a_cut_that_is_shorter_than_its_attempts_and_is_handled_once(world: World) -> None:
    asker, other = start(world, 2)
    ran: list[str] = []
    other.handle("note", ran.append, attempts=6, period=0.5)
    world.go_on(0.1)
    part(world, [asker], [other], 1.0)
    assert asker.request(other.id, "note", "through") is None
    assert ran == ["through"]


def test_a_line_that_loses_messages_makes_nobody_fail(world: World) -> None:
    nodes = start(world, 4)
    world.zeromq.loses = lambda _: world.kernel.luck.random() < 0.05
    world.go_on(60.0)
    met(world, nodes)
    assert nobody_failed(nodes)
