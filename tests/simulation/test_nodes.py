"""Whole nodes: they find each other, and stay one cluster whatever becomes of them, their agents and supervisors."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from skywalker.address import Address
from skywalker.config import Cluster as Settings
from skywalker.config import Config
from tests.simulation.kernel import Kernel, Listener
from tests.simulation.machine import Net
from tests.simulation.membership import TROUBLES, Directory, Founder, assembler
from tests.simulation.node import Node, agree
from tests.simulation.plan import NODE, WAYS, Plan
from workers.process.crew import ABORTED_S
from workers.process.supervisor import LEAVE_S

FIND_S = 3.0
"""Seconds for nodes to find each other, or one that is back."""

OUT_S = 0.5
"""Seconds until the others are without a node that was killed."""

SILENT_S = 5.0
"""Seconds until they are without one that has fallen silent."""


class World:
    """Three nodes, which have found each other."""

    def __init__(self, way: str, seed: int = 1) -> None:
        self.kernel = Kernel(seed)
        self.net = Net(self.kernel)
        self.founder = Founder(self.net, Plan(seed, 3, 2, 1, (), (), way=way))
        self.nodes = [self.founder.node(f"{NODE}{number}") for number in range(3)]
        self.settle(self.nodes, FIND_S)

    def until(self, check: Callable[[], bool], within: float) -> float:
        """Have time go by until something is so; return how long that took."""
        began = self.kernel.now
        while not check():
            assert self.kernel.now - began < within, [(node.name, node.rings) for node in self.nodes]
            self.kernel.go_on(0.01)
        return self.kernel.now - began

    def agree(self, nodes: list[Node]) -> bool:
        """Whether these take each other, and nobody else, for nodes."""
        return agree(nodes)

    def settle(self, nodes: list[Node], within: float) -> float:
        """Wait until they do; return how long that took."""
        return self.until(lambda: self.agree(nodes), within)

    def stay(self, seconds: float) -> None:
        """Have time go by in which all of them agree."""
        for _ in range(int(seconds / 0.05)):
            self.kernel.go_on(0.05)
            assert self.agree(self.nodes)

    def others(self, node: Node) -> list[Node]:
        """Return all but one."""
        return [each for each in self.nodes if each is not node]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Return how nodes find each other."""
    return str(request.param)


@pytest.fixture
def world(way: str) -> Iterator[World]:
    """Three nodes that have found each other so."""
    made = World(way)
    yield made
    for node in made.nodes:
        node.close()


def test_whoever_drains_is_out_at_once_and_leaves_nothing_behind(world: World) -> None:
    for leaver in world.nodes:
        process, task = leaver.process, leaver.process.task
        leaver.leave(back_s=5.0)
        assert world.settle(world.others(leaver), OUT_S) < OUT_S
        world.until(lambda process=process: process.status == 0, LEAVE_S + 1.0)
        assert not [each for each in world.net.files.values() if each.owner and each.owner.name.startswith(task.name)]
        world.settle(world.nodes, 5.0 + FIND_S)


def test_whoever_is_killed_is_out_soon_and_in_again_at_its_place(world: World) -> None:
    for victim in reversed(world.nodes):
        children = [*victim.process.children]
        victim.die(back_s=3.0, loses_power=False)
        assert all(child.status == -signal.SIGKILL for child in children), "nobody outlives a supervisor"
        world.settle(world.others(victim), OUT_S)
        world.settle(world.nodes, 3.0 + FIND_S)


def test_whoever_falls_silent_is_out_and_in_again_at_its_place(world: World) -> None:
    victim = world.nodes[1]
    victim.die(back_s=10.0, loses_power=True)
    took = world.settle(world.others(victim), SILENT_S)
    assert took > OUT_S, "it was not told"
    world.settle(world.nodes, 10.0 + FIND_S)


def test_a_cluster_that_has_died_is_one_again(world: World) -> None:
    for node in world.nodes:
        node.die(back_s=1.0, loses_power=False)
    assert not any(node.lives for node in world.nodes)
    world.settle(world.nodes, 1.0 + FIND_S)


def test_one_that_joins_is_found_by_all_and_finds_them(world: World) -> None:
    world.nodes.append(world.founder.node(f"{NODE}3"))
    world.settle(world.nodes, FIND_S)


def test_agents_that_are_killed_are_missed_by_nobody(world: World) -> None:
    agents = [node.agent for node in world.nodes]
    for agent in agents:
        assert agent is not None
        agent.signal(signal.SIGKILL)
    world.until(lambda: all(node.agent not in (None, *agents) for node in world.nodes), 1.0)
    world.stay(5.0)
    # Whoever dies now is found out by the new ones, and found by them when it is back.
    world.nodes[0].die(back_s=1.0, loses_power=False)
    world.settle(world.nodes[1:], OUT_S)
    world.settle(world.nodes, 1.0 + FIND_S)


def test_an_agent_that_hangs_is_missed_by_nobody_and_goes_on(world: World) -> None:
    hung = world.nodes[0]
    agent = hung.agent
    assert agent is not None
    hung.stop(agent, 5.0)  # for longer than anybody waits for a sign of life
    world.stay(6.0)
    assert hung.agent is agent
    world.nodes[1].die(back_s=1.0, loses_power=False)
    world.settle(world.others(world.nodes[1]), OUT_S)
    world.settle(world.nodes, 1.0 + FIND_S)


def test_an_agent_that_hangs_for_too_long_is_replaced(world: World) -> None:
    hung = world.nodes[0]
    agent = hung.agent
    assert agent is not None
    hung.stop(agent, 60.0)
    world.until(lambda: hung.agent not in (None, agent), 15.0)
    world.settle(world.nodes, FIND_S)


def test_a_worker_that_hangs_is_replaced_and_its_node_stays(world: World) -> None:
    victim = world.nodes[0].workers()[0]
    world.nodes[0].stop(victim, 60.0)
    world.until(lambda: victim.status is not None, 10.0 + 2 * ABORTED_S + 1.0)
    world.until(lambda: len(world.nodes[0].workers()) == 2, 1.0)
    world.settle(world.nodes, FIND_S)


def test_workers_that_die_while_their_supervisor_stands_still_have_successors_when_it_goes_on(world: World) -> None:
    node = world.nodes[0]
    node.stop(node.process, 2.0)
    for worker in node.workers():
        worker.signal(signal.SIGKILL)
    world.kernel.go_on(1.5)
    assert not node.workers()
    world.until(lambda: len(node.workers()) == 2, 1.0)
    world.settle(world.nodes, FIND_S)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_directory_that_is_wrong_puts_nobody_out_though_connections_break_meanwhile(trouble: str) -> None:
    world = World("dns")
    world.founder.directory.have(trouble, 20.0)
    world.stay(5.0)
    for node in world.nodes:
        for other in world.others(node):
            for end in world.net.between(node.host, other.host):
                end.reset_both()
    world.stay(20.0)
    for node in world.nodes:
        node.close()


def test_who_drains_takes_its_leave_by_silk() -> None:
    world = World("silk")
    world.nodes[0].leave(back_s=60.0)
    # Who ends without a word is known for four seconds more, and counts on for long.
    world.until(lambda: len(world.founder.unfound(world.nodes)) == 2, OUT_S)
    for node in world.nodes:
        node.close()


def test_silk_that_says_nothing_puts_nobody_out_who_lives() -> None:
    world = World("silk")
    world.founder.have("fails", 40.0)
    world.stay(45.0)  # for longer than a node counts on that is listed no more
    assert not world.founder.unfound(world.nodes)
    for node in world.nodes:
        node.close()


def test_a_node_that_is_told_twice_to_end_does_at_once() -> None:
    world = World("join")
    leaver = world.nodes[0]
    leaver.leave(back_s=60.0)
    world.kernel.go_on(0.01)
    leaver.leave(back_s=60.0)
    assert world.until(lambda: leaver.process.status == 0, 0.5) < 0.5
    for node in world.nodes:
        node.close()


def test_only_nodes_that_know_the_secret_of_a_cluster_are_in_its_ring() -> None:
    kernel = Kernel(1)
    net, directory = Net(kernel), Directory(kernel)
    nodes = []
    for number, secret in enumerate(("ours", "ours", "another")):
        host = f"10.0.0.{number + 1}"
        directory.list(Address(host, 3443))
        config = Config(cluster=Settings(dns="nodes.test", secret=secret))
        tokens = tuple(range(number, 1_000_000, 50_000))
        nodes.append(Node(net, f"{NODE}{number}", host, 2, config, tokens, assembler(directory)))
    kernel.go_on(3.0)
    ours = [node.member.id for node in nodes[:2]]
    for node in nodes[:2]:
        assert node.snapshot is not None
        assert [member.id for member in node.snapshot] == ours
        assert [address.host for address in node.snapshot.unproven] == ["10.0.0.3"]
    for node in nodes:
        node.close()


@pytest.mark.parametrize("delay_ms", range(10, 200, 20))
def test_who_has_joined_is_known_although_the_agent_that_heard_of_it_is_killed(delay_ms: int) -> None:
    # Of the first nobody has told it where others are: it knows from those that join.
    kernel = Kernel(delay_ms)
    net = Net(kernel)
    config = Config(cluster=Settings(join="10.0.0.1:3443"))
    first, second = (
        Node(net, f"{NODE}{number}", f"10.0.0.{number + 1}", 2, config, (number,), assembler(Directory(kernel)))
        for number in range(2)
    )
    kernel.go_on(delay_ms / 1000)
    if first.agent is not None:
        first.agent.signal(signal.SIGKILL)
    kernel.go_on(10.0)
    assert agree((first, second))
    for node in (first, second):
        node.close()


class Notes(Listener):
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, at: float, who: str, what: str) -> None:
        self.lines.append(f"{who} {what}")


def test_a_new_worker_does_not_wait_for_a_node_that_does_not_know_its_own() -> None:
    # It is not on their ring, so they have nothing to tell it, and its clients would wait for as long as it does.
    notes = Notes()
    kernel = Kernel(1, notes)
    net = Net(kernel)
    nodes = []
    for number, known in enumerate(([0], [0, 1])):
        directory = Directory(kernel)
        for each in known:
            directory.list(Address(f"10.0.0.{each + 1}", 3443))
        config = Config(cluster=Settings(dns="nodes.test"))
        nodes.append(Node(net, f"{NODE}{number}", f"10.0.0.{number + 1}", 2, config, (number,), assembler(directory)))
    kernel.go_on(FIND_S)
    assert [len(node.snapshot or ()) for node in nodes] == [1, 2]
    nodes[1].reload()
    kernel.go_on(5.0)
    assert any("says reloaded" in line for line in notes.lines)
    assert not [line for line in notes.lines if "not-waited-for" in line]
    for node in nodes:
        node.close()
