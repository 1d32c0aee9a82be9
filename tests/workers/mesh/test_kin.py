"""What a worker tells its siblings of one that is dead, and finds out itself."""

from __future__ import annotations

import time

from tests.workers.turns import turn_at
from workers.engine.loop import Turn
from workers.engine.machine import MACHINE
from workers.mesh.kin import Kin
from workers.stats.hands import CELLS, Hands, life_of

OWNER, HOME = 1, 2
"""Slots of siblings; the worker itself has another."""

LIVES = {OWNER: life_of(8), HOME: life_of(9)}


def test_where_it_is_not_known_what_a_dead_one_was_giving_all_that_waits_at_siblings_is_in_doubt() -> None:
    hands = Hands(2)
    for part in range(2):
        hands.begin(part)
    dead = hands.hand(1)
    doubted: list[str] = []

    class Link:
        closed = False
        outbound: Link

        def doubt_all(self) -> None:
            doubted.append("all")

        def doubted(self, _: bytes) -> None:
            doubted.append("one")

        is_over = False

    link = Link()
    link.outbound = link
    now = time.monotonic()
    kin = Kin(Turn(MACHINE, turn_at(now).counters, hands.hand(0)))
    kin.add(LIVES[OWNER], link)  # type: ignore[arg-type]  # all that is asked of one
    for number in range(CELLS):  # more than there is room for
        dead.add(LIVES[OWNER], life_of(number), kin.life, life_of(number))
        if not number:
            kin.read_hand(dead.life)
            assert doubted.pop() == "one"
    kin.read_hand(dead.life)
    assert doubted == ["all"]
    for _ in range(2):
        hands.begin(1)
    kin.read_hand(dead.life)
    assert doubted == ["all"] * 2, "others have written there since"
