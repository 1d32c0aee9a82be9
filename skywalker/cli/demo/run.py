"""The demo's main job: the lines of a file through topics of a node, to takers in other processes.

A line goes out as `[number, nanoseconds, line]`, where the number counts the lines from 0 and
the nanoseconds are when it left. Whoever runs it sees the counts grow in Progress.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import skywalker
from skywalker.cli.demo.pool import Pool
from skywalker.cli.demo.receipts import Receipts, digest
from skywalker.cli.demo.taker import topic

TOPICS: Final = 8
IN_FLIGHT: Final = 32
SEND_S: Final = 10.0
PIECE: Final = 16_384
"""Bytes at which a longer line is cut."""


@dataclass(slots=True)
class Progress:
    """What the sender knows. `digests` has one for each line that was sent, in the order of their numbers."""

    seconds: float
    started: float = 0.0
    elapsed: float = 0.0
    delivered: int = 0
    bytes: int = 0
    passes: int = 0  # how often the file was read to its end
    digests: array[int] = field(default_factory=lambda: array("Q"))
    timed_out: set[int] = field(default_factory=set)

    def now(self) -> float:
        """Return the seconds since the first line left."""
        return time.monotonic() - self.started


@dataclass(frozen=True, slots=True)
class Comparison:
    """What arrived, held against what was sent: how many lines are not as they should be."""

    lost: int  # delivered, says the node, and no taker has it
    repeated: int  # more than one taker has it
    changed: int  # it arrived as something else
    unexpected: int  # it timed out, says the node, and a taker has it

    @property
    def good(self) -> bool:
        """Whether each line arrived exactly once, as it was sent, if it was delivered, and else not at all."""
        return not (self.lost or self.repeated or self.changed or self.unexpected)

    @classmethod
    def of(cls, progress: Progress, receipts: Receipts) -> Comparison:
        """Compare."""
        times = [0] * len(progress.digests)
        changed = 0
        for number, got in zip(receipts.numbers, receipts.digests, strict=True):
            if number < len(times):
                times[number] += 1
                changed += got != progress.digests[number]
            else:
                changed += 1
        late = progress.timed_out
        return cls(
            lost=sum(not count and number not in late for number, count in enumerate(times)),
            repeated=sum(count > 1 for count in times),
            changed=changed,
            unexpected=sum(times[number] > 0 for number in late),
        )


def lines(file: Path, progress: Progress) -> Iterator[str | bytes]:
    """Yield the lines of a file, as text where they are UTF-8, over and over until the time is over."""
    while progress.now() < progress.seconds:
        with file.open("rb") as stream:
            for line in iter(lambda: stream.readline(PIECE), b""):
                try:
                    yield line.decode()
                except UnicodeDecodeError:
                    yield line
                if progress.now() >= progress.seconds:
                    return
        progress.passes += 1


def run(
    address: str, file: Path, takers: int, progress: Progress, show: Callable[[Progress], None], pause: float
) -> Receipts:
    """Send the file's lines for `progress.seconds`; return what the takers got.

    Meanwhile the progress is shown, every `pause` seconds.
    """

    async def watch() -> None:
        while True:
            await asyncio.sleep(pause)
            show(progress)

    async def main() -> Receipts:
        watching = asyncio.create_task(watch())
        try:
            return await _run(address, file, takers, progress)
        finally:
            watching.cancel()

    return asyncio.run(main())


async def _run(address: str, file: Path, takers: int, progress: Progress) -> Receipts:
    takes = max(1, IN_FLIGHT // TOPICS // takers)
    async with (
        Pool.started(address, TOPICS, takers, takes, ack=False) as pool,
        await skywalker.aio.connect(address) as junction,
    ):
        await _send(junction, file, progress)
        return await pool.collect(junction)


async def _send(junction: skywalker.aio.Junction, file: Path, progress: Progress) -> None:
    progress.started = time.monotonic()
    source = lines(file, progress)

    async def send_some() -> None:
        for line in source:
            number = len(progress.digests)
            progress.digests.append(digest(line))
            progress.bytes += len(line)
            value = (number, time.monotonic_ns(), line)
            if await junction.send(topic(number % TOPICS), value, SEND_S, default=False):
                progress.delivered += 1
            else:
                progress.timed_out.add(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(send_some())
    progress.elapsed = progress.now()
