"""How long turns of a node's workers take, by the workers' own clocks, as the node's admin server shows them."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
from collections.abc import Iterator
from typing import Final

from bench.errors import BenchError
from skywalker.address import Address

EVERY_S: Final = 1.0
"""Seconds between two looks."""

LOOKS_BACK_S: Final = 10.0
"""What is shown is the longest turn of the last 5 to 10 s."""

_LONGEST: Final = re.compile(r"^skywalker_longest_turn_seconds\{.*\} (\S+)$", re.MULTILINE)


class Turns:
    """The longest turn of any worker for the length of a `with` block, and up to LOOKS_BACK_S before."""

    def __init__(self, admin: Address | None) -> None:
        self._admin = admin
        self._longest_s = 0.0
        self._over = threading.Event()
        self._failed: Exception | None = None

    @classmethod
    @contextlib.contextmanager
    def watched(cls, admin: Address | None) -> Iterator[Turns]:
        """Watch the node with an admin server there; without one nothing is seen."""
        turns = cls(admin)
        thread = threading.Thread(target=turns._watch)
        thread.start()
        try:
            yield turns
        finally:
            turns._over.set()
            thread.join()

    def longest_s(self) -> float | None:
        """Return its seconds of CPU time, None if nothing is seen. Raises BenchError if it could not be."""
        self._look()
        if self._failed is not None:
            raise BenchError(f"the admin server did not tell how long turns take: {self._failed}")
        return None if self._admin is None else self._longest_s

    def _watch(self) -> None:
        while not self._over.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        if self._admin is None:
            return
        try:
            with contextlib.closing(http.client.HTTPConnection(self._admin.host, self._admin.port, timeout=30)) as link:
                link.request("GET", "/metrics")
                found = _LONGEST.findall(link.getresponse().read().decode())
            self._longest_s = max(self._longest_s, *map(float, found))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._failed = error
