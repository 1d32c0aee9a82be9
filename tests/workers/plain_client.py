"""A client as those of the published dialects are: it knows no error, and makes its call again when it is cut off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.helpers import time_factor
from tests.workers.wire_client import ConnectionEnded, WireClient

REDIAL_S = 0.02


class PlainClient:
    """One call at a time, over one connection at a time."""

    def __init__(self, port: Callable[[], int]) -> None:
        """`port` returns where its node is now."""
        self._port = port
        self._wire: WireClient | None = None
        self._calls = 0
        self.dialled = 0  # how often

    def close(self) -> None:
        """Hang up."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def call(self, method: str, *arguments: object, timeout_s: float = 30.0) -> Any:
        """Make a call, as often as it takes, and return its result, whatever that is."""
        ends_at = time.monotonic() + timeout_s * time_factor()
        while (left := ends_at - time.monotonic()) > 0:
            try:
                if self._wire is None:
                    self._wire = WireClient.open(("127.0.0.1", self._port()))
                    self.dialled += 1
                self._calls += 1
                self._wire.call(method, self._calls, int(left * 1000), *arguments)
                answered, id, result = self._wire.reply(left)
                assert (answered, id) == (method, self._calls)
                return result
            except (ConnectionEnded, ConnectionError, TimeoutError):
                self.close()
                time.sleep(REDIAL_S)
        raise AssertionError(f"{method} was not answered in its time")


@contextlib.contextmanager
def plain_clients(port: Callable[[], int], count: int) -> Iterator[list[PlainClient]]:
    """Yield so many, and close them at the end."""
    clients = [PlainClient(port) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()
