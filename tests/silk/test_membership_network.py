"""Whole clusters in simulated time: how soon all is known, how little is said for it, and what liars achieve.

That whoever lives is known to all and whoever is dead goes is a rule of the simulation of whole nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from bench.silk.simulation import DELAY_S, Network, Node, acquainted
from skywalker.deadlines import PRECISION_S
from skywalker.silk import pace
from skywalker.silk.events import Event, Failed, Joined, Left, Recovered, Suspected
from skywalker.wire.silk import CONNECT, FAIL, KEEPALIVE, LEAVE, REPLY, Message

SEED = 1
PERIOD_S = 1.0
LOSS = 0.05

# The bounds that are promised, in seconds, with a period of one.
STORM_S = 5.0  # until thirty who join at once all know each other
LOSSY_STORM_S = 12.0  # the same where messages are lost
MEET_S = 5.0  # from when they meet until all know all
WAKE_S = 2.0


def death_s(nodes: int, delay_s: float = DELAY_S, period_s: float = PERIOD_S) -> float:
    """Return the seconds within which a dead node is gone everywhere.

    Three periods of silence and one of questions, from the last that it said; the part of one over which what
    others report is spread; and what each of the looks after it may be late.
    """
    spread = min(1.0, nodes / pace.CROWD)
    return (pace.SILENT + 1 + spread) * period_s + delay_s + (pace.PROBES + 2) * PRECISION_S


def cluster(nodes: int, seed: int, **network: float) -> tuple[Network, list[Node]]:
    """Return nodes that have known each other for two of their periods."""
    return acquainted(nodes, seed, after_s=2 * PERIOD_S, **network)


def is_gone(network: Network, *nodes: Node) -> Callable[[], bool]:
    return lambda: not any(network.knowing(node) for node in nodes)


def about(events: Sequence[Event]) -> set[str]:
    return {event.node.id for event in events}


# Joining.


@pytest.mark.parametrize(("seeds", "loss"), [(30, 0.0), (3, LOSS)])
def test_all_who_join_at_once_know_each_other_soon(seeds: int, loss: float) -> None:
    network = Network(SEED, loss=loss)
    nodes = network.storm(30, seeds, SEED)
    network.until(network.agree, within=LOSSY_STORM_S if loss else STORM_S)
    assert network.told(Failed, Left) == []
    for node in nodes:
        assert about(node.told(Joined)) == {other.id for other in nodes} - {node.id}
        assert len(node.told(Joined)) == 29
        assert [node.membership.member(other.id) for other in nodes if other is not node] == [
            other.membership.me for other in nodes if other is not node
        ]
    assert all(len(node.reached) == 1 for node in nodes[1:])
    network.run(3)
    assert network.agree()


def test_a_late_joiner_is_known_to_all_within_a_few_delays() -> None:
    network, nodes = cluster(20, SEED)
    (late,) = network.add()
    network.join(late, nodes[7])
    # Asking one, its answer, and a word to each.
    assert network.until(network.agree, within=1, every=DELAY_S / 10) <= 3 * DELAY_S + 0.002
    assert len(network.told(Joined)) == 40


# Nothing happens.


def test_in_the_steady_state_nothing_is_said_but_signs_of_life() -> None:
    network, nodes = cluster(10, 1)
    network.run(100)
    assert network.messages.keys() == {KEEPALIVE}
    assert network.messages[KEEPALIVE] == pytest.approx(10 * 9 * 100, rel=0.02)
    assert all(node.membership.dropped == 0 for node in nodes)


def test_members_may_have_periods_of_their_own() -> None:
    network = Network(1, period_s=4.0)
    slow_ones = network.add(5)
    network.period_s = 0.25
    quick_ones = network.add(5)
    network.acquaint([*slow_ones, *quick_ones])
    network.run(20)
    assert network.told(Failed, Suspected) == []
    network.kill(quick_ones[0])
    network.until(is_gone(network, quick_ones[0]), within=death_s(10, period_s=0.25))
    network.kill(slow_ones[0])
    assert network.until(is_gone(network, slow_ones[0]), within=death_s(10, period_s=4.0)) > 3 * 4.0 - 0.5


def test_a_failure_is_told_by_few() -> None:
    network, members = cluster(50, 1)
    network.kill(members[0])
    network.until(is_gone(network, members[0]), within=death_s(50))
    network.run(3)
    # One broadcast is 48 messages. All notice within a delay of each other, and have a period to speak.
    assert network.messages[FAIL] <= 5 * 48


# Cuts.


def test_one_link_that_is_cut_parts_two_and_disturbs_nobody_else() -> None:
    nodes = 10
    network, members = cluster(nodes, 1)
    one, other = members[:2]
    network.cut([one], [other])
    network.run(death_s(nodes))
    assert len(network.told(Failed)) == 2
    network.forget()
    network.run(300)
    assert network.told(Failed, Joined, Left) == []
    assert all(len(node.membership.members) == nodes - 1 for node in members[2:])
    # That they see other members than all others is looked at, but ever more rarely.
    assert (sum(network.messages.values()) - network.messages[KEEPALIVE]) / nodes / 300 < 0.3
    network.heal()
    network.until(network.agree, within=pace.VISIT_CAP_S + MEET_S)


# Leaving.


# Lies.


def test_who_is_falsely_said_to_be_dead_is_asked_and_stays() -> None:
    network, members = cluster(8, SEED)
    liar, alive = members[:2]
    for number in range(10):
        for node in members[1:]:
            network.forge(Message(liar.id, "_all", f"lie-{number}", FAIL, {"id": alive.id}), node)
        network.run(3)
    assert network.told(Failed, Joined, Left) == []
    assert about(network.told(Suspected)) == {alive.id}, "they did ask"
    assert len(network.told(Suspected)) == len(network.told(Recovered))
    assert network.agree()


def test_who_tells_of_nodes_that_are_not_there_makes_no_members() -> None:
    network, members = cluster(5, 1)
    liar, one = members[:2]
    ghosts = {
        f"ghost-{number}": {
            "id": f"ghost-{number}",
            "endpoints": {"router": f"tcp://ghost:{number}", "pub": f"tcp://ghost:{10_000 + number}"},
        }
        for number in range(1000)
    }
    data = {"cluster": ghosts, "me": liar.membership.me.as_map()}
    network.forge(Message(liar.id, one.id, "lie", REPLY, data, reply="?"), one)
    network.run(10)
    assert network.told(Joined, Failed) == []
    network.forget()
    network.run(20)
    assert network.messages.keys() == {KEEPALIVE}, "they are looked for, and not for long"
    assert network.agree()


def test_who_takes_the_endpoint_of_another_for_its_own_does_not_drive_it_out() -> None:
    network, members = cluster(10, 1)
    victim = members[3]
    told = victim.membership.me.as_map() | {"id": "thief"}
    for node in members:
        if node is not victim:
            network.forge(Message("thief", node.id, "1", CONNECT, told), node)
    network.run(4 * DELAY_S)
    assert victim.id in about(network.told(Failed))
    network.until(network.agree, within=2 * WAKE_S)
    network.run(30)
    assert network.agree()


# Many.


def test_eighty_stay_together_and_lose_the_dead_alone() -> None:
    network = Network(1, loss=LOSS, frames=False)
    nodes = network.add(80)
    network.acquaint(nodes)
    network.run(1)
    # Those who notice a period early, as something was lost, have all others ask, which takes long to simulate.
    network.loss = 0.0
    network.run(1)
    assert network.told(Failed) == []
    assert network.agree()
    dead = nodes[::40]
    for node in dead:
        network.kill(node)
    network.until(is_gone(network, *dead), within=death_s(80), every=0.25)
    network.until(network.agree, within=1)
    failed = Counter(event.node.id for event in network.told(Failed))
    assert failed == {node.id: 78 for node in dead}


@pytest.mark.parametrize("count", [2, 3, 10])
def test_one_whose_leave_was_forged_to_some_is_a_member_again(count: int) -> None:
    network, members = cluster(count, 1)
    victim, deceived = members[:2]
    network.forge(Message(victim.id, "_all", "lie", LEAVE), deceived)
    network.run(4 * DELAY_S)
    assert about(network.told(Left)) == {victim.id}
    network.until(network.agree, within=3.0)
