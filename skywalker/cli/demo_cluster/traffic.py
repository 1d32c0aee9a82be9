"""The lines that one client sends at a steady pace, how long each was on its way, and what became of them.

They leave when it is their time, whatever became of those before, so that a wait shows as it is.
"""

from __future__ import annotations

import asyncio
import math
import time
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skywalker.cli.demo.run import Comparison, Progress, lines
from skywalker.cli.demo.taker import Receipts, digest, topic
from skywalker.clients.aio.junction import Junction
from skywalker.errors import SkywalkerError

TOPICS: Final = 64
SEND_S: Final = 30.0
MOST_UNDER_WAY: Final = 2_000
"""Lines; with so many on their way the next one waits. A node takes more calls than that of a connection."""

NOW_S: Final = 1.0
"""Seconds that "now" is long."""


class Traffic:
    """One sender. All times are seconds since begin(), which comes first."""

    def __init__(self) -> None:
        self.progress = Progress(math.inf)
        self.reason = ""  # why the first line that was not delivered was not
        self._sent_at = array("d")
        self._waits = array("d")
        self._under_way: dict[int, float] = {}  # when they were sent, the oldest first
        self._lately: deque[tuple[float, float]] = deque()  # those that arrived: when, and after which wait

    def begin(self) -> None:
        """Begin to count the time."""
        self.progress.started = time.monotonic()

    async def run(self, junction: Junction, file: Path, rate: float, over: asyncio.Event) -> None:
        """Send the lines of a file, over and over, `rate` of them a second, until `over` is set and all arrived."""
        progress = self.progress
        room = asyncio.Semaphore(MOST_UNDER_WAY)
        async with asyncio.TaskGroup() as tasks:
            for number, line in enumerate(lines(file, progress)):
                await asyncio.sleep(number / rate - progress.now())
                await room.acquire()
                if over.is_set():
                    break
                progress.digests.append(digest(line))
                progress.bytes += len(line)
                self._sent_at.append(progress.now())
                self._waits.append(math.inf)
                tasks.create_task(self._send(junction, number, line)).add_done_callback(lambda task: room.release())
        progress.elapsed = progress.now()

    async def _send(self, junction: Junction, number: int, line: str | bytes) -> None:
        began = self._sent_at[number]
        self._under_way[number] = began
        try:
            await junction.send(topic(number % TOPICS), (number, time.monotonic_ns(), line), SEND_S)
        except SkywalkerError as error:
            self.progress.timed_out.add(number)
            self.reason = self.reason or str(error)
        else:
            now = self.progress.now()
            self.progress.delivered += 1
            self._waits[number] = now - began
            self._lately.append((now, now - began))
        finally:
            del self._under_way[number]

    # For who watches.

    @property
    def under_way(self) -> int:
        """How many lines are on their way."""
        return len(self._under_way)

    def rate(self, now: float) -> float:
        """Return the lines a second that arrive now."""
        self._forget(now)
        return len(self._lately) / min(NOW_S, max(now, 0.001))

    def longest_wait(self, now: float) -> float:
        """Return the longest wait of now, in seconds; also that of a line which still waits."""
        self._forget(now)
        longest = max((wait for _, wait in self._lately), default=0.0)
        return max(longest, now - next(iter(self._under_way.values()), now))

    def longest_during(self, start: float, end: float) -> float:
        """Return the longest wait of all lines that were on their way at any time from `start` to `end`."""
        return max((wait for sent, wait in self._ways() if sent <= end and sent + wait >= start), default=0.0)

    def longest_apart_from(self, spans: Sequence[tuple[float, float]]) -> float:
        """Return the longest wait of all lines that were on their way in none of these spans, from start to end."""
        apart = (wait for sent, wait in self._ways() if all(sent > end or sent + wait < start for start, end in spans))
        return max(apart, default=0.0)

    def _ways(self) -> Iterator[tuple[float, float]]:
        return zip(self._sent_at, self._waits, strict=True)

    def _forget(self, now: float) -> None:
        while self._lately and self._lately[0][0] < now - NOW_S:
            self._lately.popleft()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of lines."""

    sent: int
    received: int  # with those that came again
    lost: int  # delivered, says the cluster, and no taker has it
    doubled: int  # how many too many have come
    changed: int  # arrived as something else
    failed: int  # not delivered, says the cluster

    @classmethod
    def of(cls, progress: Progress, receipts: Receipts) -> Outcome:
        """Compare."""
        comparison = Comparison.of(progress, receipts)
        return cls(
            sent=len(progress.digests),
            received=len(receipts.numbers),
            lost=comparison.lost,
            doubled=len(receipts.numbers) - len(set(receipts.numbers)),
            changed=comparison.changed,
            failed=len(progress.timed_out),
        )

    @property
    def good(self) -> bool:
        """Whether each line arrived as it was sent, at least once."""
        return not (self.lost or self.changed or self.failed)
