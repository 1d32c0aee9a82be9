"""A source that is watched in a thread, and all that the watch has told."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from skywalker.address import Address
from skywalker.discovery.source import Source
from skywalker.discovery.watch import watch
from tests.helpers import eventually, time_factor


class Watch:
    """For the length of a `with` block; its end must come at once, unless it `lingers` in a daemon of a thread."""

    def __init__(self, source: Source, *, lingers: bool = False) -> None:
        self._source = source
        self._lingers = lingers
        self._stopped = threading.Event()
        arguments = (source, self._found, self._trouble, self._stopped)
        self._thread = threading.Thread(target=watch, args=arguments, daemon=lingers)
        self.found: list[frozenset[Address]] = []
        self.troubles: list[str | None] = []

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._source.close()
        if not self._lingers:
            self._thread.join(5 * time_factor())
            assert not self._thread.is_alive(), "the watch did not end"

    def _found(self, addresses: frozenset[Address]) -> None:
        self.found.append(addresses)

    def _trouble(self, text: str | None) -> None:
        self.troubles.append(text)

    def wait_for(self, addresses: Iterable[Address], *, within: float = 5.0) -> None:
        """Wait until these, and only these, are what is known."""
        wanted = frozenset(addresses)
        eventually(lambda: self.found[-1:] == [wanted], within=within)

    def wait_for_trouble(self, count: int, *, within: float = 5.0) -> None:
        """Wait until so many outages have begun or ended."""
        eventually(lambda: len(self.troubles) >= count, within=within)
