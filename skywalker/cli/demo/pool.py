"""The pool of takers: processes that take lines from topics, and what they got in the end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Final, Self

from skywalker.cli.demo.receipts import Receipts
from skywalker.cli.demo.taker import READY, topic
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
