"""The demo's main job: the lines of a file through topics of a node, to a pool of takers in other processes.

A line goes out as `[number, nanoseconds, line]`, where the number counts the lines from 0 and
the nanoseconds are when it left. Whoever runs it sees the counts grow in Progress.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from array import array
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import skywalker
from skywalker.cli.demo.taker import READY, Receipts, digest, topic
from skywalker.clients.aio.junction import Junction

START_S: Final = 30.0
END_MARK_S: Final = 5.0
"""Seconds for a taker to take that there is no more; it does nothing else by then."""


class Pool:
    """Takers that listen. Made by started()."""

    def __init__(self, topics: int, takes: int) -> None:
        self._topics = topics
        self._takes = takes
        self._takers: list[asyncio.subprocess.Process] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, where: str, topics: int, takers: int, takes: int, *, ack: bool) -> AsyncIterator[Self]:
        """Run `takers` processes, each with `takes` calls at a time on each of the topics, and wait until they listen.

        `where` is as connect() takes it. With `ack` a sender hears True only once a taker has its line.
        """
        pool = cls(topics, takes)
        options = ["ack"] if ack else []
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(takers):
                pool._takers.append(await stack.enter_async_context(_taker(where, str(topics), str(takes), *options)))
            for taker in pool._takers:
                async with asyncio.timeout(START_S):
                    await _output(taker).readexactly(len(READY))
            yield pool

    async def collect(self, junction: Junction) -> Receipts:
        """Tell the takers that there are no more lines; return what they got, of one that has died nothing."""
        ends = [topic(number) for number in range(self._topics)] * self._takes * len(self._takers)
        await asyncio.gather(*(junction.send(end, None, END_MARK_S, default=False) for end in ends))
        receipts = Receipts()
        for taker in self._takers:
            async with asyncio.timeout(START_S):
                receipts.extend(await _output(taker).read())
        return receipts


@contextlib.asynccontextmanager
async def _taker(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "skywalker.cli.demo.taker", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**26,
        process_group=0,  # a Ctrl-C at the terminal is the demo's business
    )
    try:
        yield process
    finally:
        # It ends with its input. To kill one that may just have ended could reap it, and asyncio then complains.
        assert process.stdin is not None  # it was asked for
        process.stdin.close()
        await process.wait()


def _output(taker: asyncio.subprocess.Process) -> asyncio.StreamReader:
    assert taker.stdout is not None  # it was asked for
    return taker.stdout


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
