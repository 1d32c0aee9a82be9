"""What every program of a soak needs: what it was told, when it is over, and a place for what it has to say."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Coroutine
from typing import IO, Any

from tests.soak.stage import Stage


class Shift:
    """One run of a program. `over` is set when its input ends."""

    def __init__(self) -> None:
        stage, seed, self.path = sys.argv[1:]
        self.stage = Stage.parse(stage)
        self.seed = int(seed)
        self.over = threading.Event()
        self.counts: Counter[str] = Counter()
        self._file: IO[bytes] | None = None
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

    def complain(self, what: str, rule: str = "wrong", **fields: Any) -> None:
        """Say that a promise was broken, just now. What may be excused names its rule."""
        if self._file is None:
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # until the program ends
        line = {"at": time.monotonic(), "rule": rule, "what": what, **fields}
        self._file.write(json.dumps(line).encode() + b"\n")

    def end(self) -> None:
        """Say what was counted."""
        if self._file is not None:
            self._file.close()
        print(json.dumps(self.counts))

    def _read(self) -> None:
        sys.stdin.buffer.read()
        self.over.set()
