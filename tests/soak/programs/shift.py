"""What every program of a soak needs: what it was told, when it is over, and what it has to say in the end."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

from tests.soak.stage import Stage

SHOWN: Final = 2
"""Faults of one shift that are told."""


class Shift:
    """One run of a program. `over` is set when its input ends."""

    def __init__(self) -> None:
        stage, seed = sys.argv[1:]
        self.stage = Stage.parse(stage)
        self.seed = int(seed)
        self.over = threading.Event()
        self.counts: Counter[str] = Counter()
        self._faults: list[str] = []
        print(flush=True)  # it begins

    def watch(self) -> None:
        """Have `over` set by a thread when the input ends."""
        threading.Thread(target=self._read, daemon=True).start()

    async def run(self, *endless: Coroutine[Any, Any, None]) -> None:
        """Run these until the input ends, then cancel them. Raises what one of them raises."""
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(0, ended.set)
        tasks = [asyncio.ensure_future(each) for each in (ended.wait(), *endless)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self.over.set()
        # asyncio.wait_for() of Python 3.11 may swallow a cancellation that comes with its result.
        while any(not task.done() for task in tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1.0)
        for task in tasks:
            if not task.cancelled():
                task.result()

    def complain(self, what: str) -> None:
        """Note what is wrong, whatever was done to the nodes."""
        self._faults.append(what)

    def end(self) -> None:
        """Say what was counted, and what is wrong."""
        print(json.dumps({"counts": self.counts, "faults": self._faults[:SHOWN]}))

    def _read(self) -> None:
        sys.stdin.buffer.read()
        self.over.set()
