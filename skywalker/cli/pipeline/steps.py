"""What Spark is at, for whoever watches it at a terminal."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from skywalker.cli.terminal import Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_S: Final = 0.3


class Steps:
    """Shows which steps are made, for how long all have taken, and how much of them is done."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        """Without `spark`, nothing is known of tasks."""
        self._spark = spark
        self._status = Status()
        self._begun = time.monotonic()
        self._words: list[str] = []  # of the steps that are made now
        self._changing = threading.Lock()
        self._over = threading.Event()
        self._shown: threading.Thread | None = None

    @contextlib.contextmanager
    def step(self, words: str) -> Iterator[None]:
        """Show `words` while the block runs. Threads may have steps at the same time."""
        if not self._status.live:
            yield
            return
        self._begin(words)
        try:
            yield
        finally:
            self._end(words)

    def _begin(self, words: str) -> None:
        with self._changing:
            self._words.append(words)
            if self._shown is None:
                self._over.clear()
                self._shown = threading.Thread(target=self._show, daemon=True)
                self._shown.start()

    def _end(self, words: str) -> None:
        with self._changing:
            self._words.remove(words)
            if not self._words and self._shown is not None:
                self._over.set()
                self._shown.join()
                self._shown = None
                self._status.clear()

    def _show(self) -> None:
        while words := ", ".join(self._words):
            self._status.draw(f"  {time.monotonic() - self._begun:4.0f} s  {words}{self._done()}")
            if self._over.wait(PAUSE_S):
                return

    def _done(self) -> str:
        """Return which part of the tasks of the stages that run is done, as text; a remote Spark does not say."""
        if self._spark is None:
            return ""
        try:
            tracker = self._spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Exception:
            # Only a picture: with Connect there is no context, and one that is stopped has no tracker.
            return ""
        tasks = sum(stage.numTasks for stage in stages if stage is not None)
        done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        return f", {done:,} of {tasks:,} tasks" if tasks else ""
