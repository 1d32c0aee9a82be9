"""One process of the demo's pool: takes lines until it is told that there are no more, then tells what it got.

    python -m skywalker.cli.demo.taker ADDRESS TOPICS TAKES [ack]

It writes a line once it listens and, at the end, its Receipts. It ends at once when standard
input does, which is the demo's other end. With `ack` it confirms each line.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Final

import skywalker
from skywalker.cli.demo.receipts import Receipts

GROUP: Final = "demo"
READY: Final = b"ready\n"
PATIENCE_S: Final = 60.0


def topic(number: int) -> str:
    """Return the name of one of the demo's topics."""
    return f"demo/{number}"


async def take_all(
    address: str, topics: int, takes: int, listening: Callable[[], None], *, ack: bool = False
) -> Receipts:
    """Take lines, `takes` at a time from each topic, until each of these takes got an end mark."""
    receipts = Receipts()

    async def take_from(junction: skywalker.aio.Junction, name: str) -> None:
        async for value in junction.values(name, GROUP, PATIENCE_S):
            if value is None:
                return
            receipts.add(*value)

    async with await skywalker.aio.connect(address, ack=ack) as junction, asyncio.TaskGroup() as tasks:
        for number in range(topics):
            for _ in range(takes):
                tasks.create_task(take_from(junction, topic(number)))
        await junction.ping()
        listening()
    return receipts


async def main(address: str, topics: int, takes: int, *, ack: bool) -> None:
    """Take until the end, and write what arrived to standard output."""
    asyncio.get_running_loop().add_reader(0, os._exit, 1)  # nothing is ever written there: this is its end
    receipts = await take_all(address, topics, takes, lambda: _write(READY), ack=ack)
    _write(receipts.to_bytes())


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), ack=sys.argv[4:] == ["ack"]))
