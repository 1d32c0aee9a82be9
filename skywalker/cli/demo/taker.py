"""One process of the demo's pool: takes lines until it is told that there are no more, then tells what it got.

    python -m skywalker.cli.demo.taker ADDRESS TOPICS TAKES [ack]

It writes a line once it listens and, at the end, its Receipts. It ends at once when standard
input does, which is the demo's other end. With `ack` it confirms each line.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from array import array
from collections.abc import Callable
from typing import Final

import skywalker


def digest(line: str | bytes) -> int:
    """Return 64 bits that tell lines apart."""
    data = line.encode() if isinstance(line, str) else line
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


class Receipts:
    """What arrived: of each line its number, the microseconds that it took, and its digest."""

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.latencies_us = array("Q")
        self.digests = array("Q")

    def add(self, number: int, sent_ns: int, line: str | bytes) -> None:
        """Note a line that has just arrived; the monotonic clock is the same for all processes of a machine."""
        self.numbers.append(number)
        self.latencies_us.append((time.monotonic_ns() - sent_ns) // 1000)
        self.digests.append(digest(line))

    def to_bytes(self) -> bytes:
        """Return them as extend() reads them."""
        return self.numbers.tobytes() + self.latencies_us.tobytes() + self.digests.tobytes()

    def extend(self, data: bytes) -> None:
        """Add those that another process wrote. Raises ValueError if it did not finish."""
        third, rest = divmod(len(data), 3)
        if rest or third % self.numbers.itemsize:
            raise ValueError("a taker ended in the middle of its receipts")
        self.numbers.frombytes(data[:third])
        self.latencies_us.frombytes(data[third : 2 * third])
        self.digests.frombytes(data[2 * third :])


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
