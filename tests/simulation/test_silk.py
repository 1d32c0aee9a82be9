"""Runs of Silk: fresh seeds, and the same seed again."""

from __future__ import annotations

import pytest

from tests.silk.world import Node, World
from tests.simulation.silk_run import run
from tests.simulation.test_simulation import FRESH_S, ran

SEEDS = round(FRESH_S / 3)
"""Fresh ones: they take about half a second of one core each."""

GIVEN_UP_S = 60.0
"""Seconds after which a connection is made anew that passes nothing."""

CUT_S = 8.0
MEET_S = 3.0
"""Seconds until two know each other again that nothing is between any more."""


def test_the_same_seed_gives_the_same_run() -> None:
    told = {ran("tests.simulation.silk_run", "--seed", "1", seconds=60, PYTHONHASHSEED=each) for each in "12"}
    assert len(told) == 1


def test_much_is_said_and_some_are_given_up() -> None:
    results = [run(seed) for seed in range(3)]
    assert sum(each.answered for each in results) > 300
    assert sum(each.failures for each in results) > 3


@pytest.mark.timeout(300)
def test_what_is_promised_of_silk_holds() -> None:
    ran("tests.simulation.silk_run", "--seeds", str(SEEDS), seconds=240)


@pytest.mark.parametrize("nth", range(4))
def test_a_connection_by_which_nothing_comes_any_more_is_made_anew(nth: int) -> None:
    # Nobody is told of that: a firewall on the way has forgotten it.
    world = World()
    nodes = [Node(world, host=f"10.0.0.{number}") for number in (1, 2)]
    heard: list[str] = []
    for node in nodes:
        node.handle("hello", heard.append)
    nodes[0].join(nodes[1].info.router)
    world.go_on(2.0)
    links = world.zeromq.between(*(node.process.host for node in nodes))
    assert len(links) == 4, "two for each direction: for messages, and for what is broadcast"
    links[nth].lose()
    world.go_on(GIVEN_UP_S)
    for node in nodes:
        node.entries.clear()
        node.broadcast("hello", node.id)
        node.tell(next(iter(node.members)), "hello", node.id)
    world.go_on(GIVEN_UP_S)
    assert sorted(heard) == sorted(2 * [node.id for node in nodes])
    assert not any(node.entries for node in nodes)
    world.close()


@pytest.mark.parametrize("seed", range(4))
def test_who_was_given_up_in_a_cut_of_one_direction_is_heard_again_soon_after_it(seed: int) -> None:
    # It heard the other all the time, and so kept the connection on which TCP waits for as long again.
    world = World(seed)
    silent, other = (Node(world, host=f"10.0.0.{number}") for number in (1, 2))
    silent.join(other.info.router)
    other.handle("hello", lambda data: data)
    world.until(lambda: "hello" in silent.members[other.id].messages)
    world.net.part(silent.process.host, other.process.host, CUT_S)
    world.go_on(CUT_S)
    assert other.of(silent)[-1] == "Failed"
    assert other.id in silent.members
    world.until(lambda: other.of(silent)[-1] == "Joined", MEET_S)
    assert world.result(silent.ask(other, "hello", 1), MEET_S) == 1
    world.close()
