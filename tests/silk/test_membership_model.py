"""Whatever happens to a cluster: once it is over, whoever lives is in it again, and nobody else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.silk.simulation import Network, Node
from skywalker.silk import pace
from skywalker.silk.events import Changed, Failed, Joined, Left, Recovered, Suspected
from skywalker.wire.silk import CONNECT, FAIL, JOIN, LEAVE, Message

NODES = 6

CALM_S = pace.VISIT_CAP_S + 30.0
"""Seconds after which all is well: the longest pause between visits, and time to hear of all."""

OFTEN = [
    *("kill", "restart", "restart", "freeze", "thaw", "thaw", "thaw-late", "leave", "join", "join", "forge"),
    *("cut", "heal", "heal"),
]

deeds = st.one_of(
    st.tuples(st.just("pass"), st.floats(0, 12)),
    st.tuples(
        st.sampled_from(["kill", "restart", "freeze", "thaw", "thaw-late", "leave", "join", "forge"]),
        st.integers(0, NODES - 1),
        st.integers(0, NODES - 1),
    ),
    st.tuples(st.sampled_from(["cut", "cut one way"]), st.integers(1, 2**NODES - 2), st.integers(1, 2**NODES - 2)),
    st.tuples(st.just("heal")),
)


class World:
    """A network with a place for each of a few nodes; the node of the first place never goes for good."""

    def __init__(self, seed: int, **network: Any) -> None:
        self.network = Network(seed, **network)
        self.chance = random.Random(seed)
        self.places = self.network.add(NODES)
        self.forged = 0
        for node in self.places[1:]:
            self.join(node)

    def join(self, node: Node) -> None:
        """Have a node join where the first is, be it another one by then."""
        if not (node.is_dead or node.is_frozen or node is self.places[0]):
            self.network.join(node, self.places[0])

    def does(self, deed: str, *about: Any) -> None:
        """Do one thing."""
        network = self.network
        if deed == "pass":
            network.run(about[0])
        elif deed == "heal":
            network.heal()
        elif deed in ("cut", "cut one way"):
            some, others = ([node for bit, node in enumerate(self.places) if mask >> bit & 1] for mask in about)
            network.cut(some, others, both_ways=deed == "cut")
        else:
            self.does_to(deed, *about)
        for node in self.places:
            self.assert_sound(node)

    def does_to(self, deed: str, place: int, other: int) -> None:
        """Do one thing to the node at a place."""
        network, node = self.network, self.places[place]
        if deed == "kill" and place:
            network.kill(node)
        elif deed == "restart":
            self.places[place] = network.restart(node)
            self.join(self.places[place])
        elif node.is_dead:
            return
        elif deed == "freeze":
            network.freeze(node)
        elif deed.startswith("thaw") and node.is_frozen:
            network.thaw(node, reads_first=deed == "thaw")
        elif deed == "leave" and place and not node.is_frozen:
            network.leave(node)
            node.events.clear()  # it has left all others, and need not be told
        elif deed == "join":
            self.join(node)
        elif deed == "forge":
            network.forge(self.lie(self.places[other], node), node)

    def lie(self, about: Node, to: Node) -> Message:
        """Return what somebody might say of a node, whether it is so or not."""
        self.forged += 1
        liar = self.chance.choice(self.places)
        type, data = self.chance.choice(
            [
                (FAIL, {"id": about.id}),
                (FAIL, {"id": "nobody"}),
                (CONNECT, about.membership.me.as_map()),
                (JOIN, about.membership.me.as_map()),
                (JOIN, {"id": about.id}),
                (LEAVE, None),
                ("_odd", None),
            ]
        )
        src = "nobody" if type == LEAVE else about.id if type in (CONNECT, JOIN) else liar.id
        return Message(src, self.chance.choice([to.id, "_all"]), f"lie-{self.forged}", type, data)

    def assert_sound(self, node: Node) -> None:
        """Fail if what a node was told does not add up to whom it knows."""
        known: set[str] = set()
        doubted: set[str] = set()
        for _, event in node.events:
            id = event.node.id
            match event:
                case Joined():
                    assert id not in known, "joined twice"
                    known.add(id)
                case Left() | Failed():
                    assert id in known, "gone without having been there"
                    known.discard(id)
                    doubted.discard(id)
                case Changed():
                    assert id in known
                    doubted.discard(id)  # what was doubted was at another endpoint
                case Suspected():
                    assert id in known
                    assert id not in doubted, "suspected twice"
                    doubted.add(id)
                case Recovered():
                    assert id in doubted, "nobody doubted it"
                    doubted.discard(id)
        if not node.membership.has_left:
            assert known == {*node.membership.members}
            assert node.id not in known

    def calms_down(self) -> None:
        """Undo what can be, and see that all live nodes find each other."""
        network = self.network
        network.heal()
        network.loss = 0.0
        for node in self.places:
            if node.is_frozen and not node.is_dead:
                network.thaw(node)
        network.until(network.agree, within=CALM_S)
        for node in network.nodes:
            self.assert_sound(node)
        network.run(5)  # what was lost before may be missed until now
        network.forget()
        network.run(60)
        assert network.agree()
        assert network.told(Joined, Left, Failed, Suspected) == []


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.01, 0.3]),
    st.booleans(),
    st.lists(deeds, max_size=25),
)
def test_after_whatever_happened_all_who_live_find_each_other(
    seed: int, loss: float, delay_s: float, keeps: bool, deeds: list[tuple[Any, ...]]
) -> None:
    world = World(seed, loss=loss, delay_s=delay_s, duplication=loss, keeps=keeps)
    for deed in deeds:
        world.does(*deed)
    world.calms_down()


@pytest.mark.parametrize("seed", range(3))
def test_long_stories_end_well_too(seed: int) -> None:
    chance = random.Random(seed)
    world = World(seed, loss=chance.choice([0.0, 0.05]), keeps=chance.random() < 0.5)
    for _ in range(150):
        world.does("pass", chance.expovariate(0.5))
        deed = chance.choice(OFTEN)
        if deed == "heal":
            world.does(deed)
        elif deed == "cut":
            world.does(
                chance.choice(["cut", "cut one way"]),
                chance.randrange(1, 2**NODES - 1),
                chance.randrange(1, 2**NODES - 1),
            )
        else:
            world.does(deed, chance.randrange(NODES), chance.randrange(NODES))
    world.calms_down()
