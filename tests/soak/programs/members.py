"""Members of the nodes' own Silk cluster, that come, ask each other, and go."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Final

from skywalker import silk
from skywalker.errors import NobodyHandles, NoReply, NoSuchNode, SkywalkerError
from tests.soak.programs.shift import Shift

PAUSE_S: Final = 0.05
REQUESTS: Final = (10, 200)
"""Requests until a member leaves, and another one comes."""


async def serve(shift: Shift) -> None:
    """Answer requests, as one member after the other."""
    dice = random.Random(f"{shift.seed} server")
    while True:
        async with silk.Node("tcp://127.0.0.1:0", name="server") as node:
            node.handle(f"square-{shift.seed}", lambda number: number * number)
            if await joined(shift, node, dice):
                await asyncio.sleep(dice.uniform(1, 10))


async def ask(shift: Shift) -> None:
    """Make requests, as one member after the other."""
    dice = random.Random(f"{shift.seed} asker")
    while True:
        async with silk.Node("tcp://127.0.0.1:0", name="asker") as node:
            if not await joined(shift, node, dice):
                continue
            for _ in range(dice.randint(*REQUESTS)):
                number = dice.randrange(1000)
                try:
                    answer = await node.request_any(f"square-{shift.seed}", number)
                except (NoReply, NobodyHandles, NoSuchNode):
                    shift.counts["unanswered"] += 1  # the server has just left
                else:
                    shift.counts["answered"] += 1
                    if answer != number * number:
                        shift.complain(f"the Silk request of {number} squared was answered {answer!r}")
                await node.broadcast(f"square-{shift.seed}", 0)
                await asyncio.sleep(dice.expovariate(1 / PAUSE_S))


async def joined(shift: Shift, node: silk.Node, dice: random.Random) -> bool:
    """Have a member join at one of the nodes; return whether it could."""
    with contextlib.suppress(SkywalkerError):
        await node.join(f"tcp://{dice.choice(shift.stage.places).silk}")
        shift.counts["joined"] += 1
        return True
    shift.counts["could not join"] += 1
    return False


async def main() -> None:
    """Come and go until the input ends."""
    shift = Shift()
    await shift.run(serve(shift), serve(shift), ask(shift), ask(shift))
    shift.end()


if __name__ == "__main__":
    asyncio.run(main())
