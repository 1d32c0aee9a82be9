"""Somebody who receives: a thread that takes the values of a topic, and keeps them in the order they came."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Self

import skywalker
from skywalker.errors import Closed


class Receiver:
    """Takes from a topic, or from several, within a `with` statement; it goes on when a node is lost."""

    def __init__(self, address: str, *topics: Any, most: int | None = None) -> None:
        """Take `most` values and no more, or as many as come."""
        self.got: list[Any] = []
        self._most = most
        self._junctions = [skywalker.connect(address, direct=False) for _ in topics]
        self._threads = [
            threading.Thread(target=self._take, args=(junction, topic), daemon=True)
            for junction, topic in zip(self._junctions, topics, strict=True)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for junction in self._junctions:
            junction.close()
        for thread in self._threads:
            thread.join()

    def _take(self, junction: skywalker.Client, topic: Any) -> None:
        # For a long time: a value that comes just when its call ends is lost.
        with contextlib.suppress(Closed):
            while self._most is None or len(self.got) < self._most:
                self.got.append(junction.take(topic, "tests", timeout=600.0))
