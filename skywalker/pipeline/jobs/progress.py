"""What Spark is at, for whoever watches it at a terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_S: Final = 0.3


class Progress:
    """Shows on standard error which step is made and how much of it is done; nothing if that is no terminal."""

    def __init__(self, spark: SparkSession, steps: int = 1) -> None:
        self._spark = spark
        self._steps = steps
        self._made = 0
        self._begun = time.monotonic()
        self._live = sys.stderr.isatty()

    @contextlib.contextmanager
    def step(self, words: str) -> Iterator[None]:
        """Show `words` while the block runs."""
        self._made += 1
        if not self._live:
            yield
            return
        over = threading.Event()
        shown = threading.Thread(target=self._show, args=(words, over), daemon=True)
        shown.start()
        try:
            yield
        finally:
            over.set()
            shown.join()
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _show(self, words: str, over: threading.Event) -> None:
        number = f"{self._made} of {self._steps}: " if self._steps > 1 else ""
        while True:
            line = f"  {time.monotonic() - self._begun:4.0f} s  {number}{words}{self._done()}"
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
            if over.wait(PAUSE_S):
                return

    def _done(self) -> str:
        """Return which part of the tasks of the stages that run is done, as text; a remote Spark does not say."""
        try:
            tracker = self._spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Exception:
            # Only a picture: with Connect there is no context, and one that is stopped has no tracker.
            return ""
        tasks = sum(stage.numTasks for stage in stages if stage is not None)
        done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        return f", {done:,} of {tasks:,} tasks" if tasks else ""
