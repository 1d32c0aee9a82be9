"""What a driver needs of whatever runs calls.

A core runs calls without I/O and without a clock: `Bus` in process, `Calls` over connections, the `Exchange` of pub/sub
over one. A driver adds threads or an event loop, and is the same for all.
"""

from __future__ import annotations

import math
from typing import Any, Final, Protocol

from skywalker.address import Address
from skywalker.clients.call import Call
from skywalker.clients.homes import Homes
from skywalker.clients.stream import Stream
from skywalker.clients.way import Dial
from skywalker.errors import SkywalkerError


class Core(Protocol):
    """What runs calls. Times are seconds on any one clock."""

    ended: list[Call]
    """The calls that have ended since the driver last emptied this list."""

    def begin(self, call: Call, kind: Any, arguments: tuple[Any, ...], timeout: float, now: float) -> None:
        """Start a call. Raises LocalProtocolError or TooLarge, and then nothing was started."""

    def cancel(self, call: Call, canceller: Call, timeout: float, now: float) -> None:
        """End `call` with Cancelled if it still waits. `canceller` ends with whether it did."""

    def abandon(self, call: Call, now: float) -> None:
        """End `call` because nobody wants its outcome any more."""

    def owns(self, call: Call) -> bool:
        """Whether `call` was begun here and has not ended."""

    def tick(self, now: float) -> None:
        """End what is due."""

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next tick, None if there is nothing to wait for."""

    def close(self, error: SkywalkerError) -> None:
        """End every call with `error`."""


class Directions(Protocol):
    """Where else than to the main connection calls go."""

    @property
    def dial_at(self) -> float:
        """When a direct connection may be wanted, not before."""


class LineCore(Core, Protocol):
    """What runs calls over a main connection, which is made again when it is lost, and perhaps others."""

    failures: int
    homes: Homes
    given_up: bool
    due_at: float
    """When something is due that no caller waits for."""

    @property
    def main(self) -> Any:
        """The stream of the main connection, or of that to come."""

    @property
    def touched(self) -> list[Any]:
        """The streams that have output, or are to be closed, since the driver last emptied this."""

    @property
    def news(self) -> list[Any]:
        """What is to be told, since the driver last emptied this."""

    @property
    def routes(self) -> Directions:
        """Where calls go."""

    @property
    def busy(self) -> bool:
        """Whether a connection is of use."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a main connection."""

    def unreachable(self, cause: str = "") -> SkywalkerError:
        """Return the error that says where no node answered, and why."""

    def connected_to_node(self, now: float, address: Address | None = None) -> None:
        """There is a main connection."""

    def disconnected(self, cause: str, now: float) -> None:
        """The main connection, or an attempt to make one, is lost."""

    def receive(self, line: Any, data: bytes, now: float) -> None:
        """Take what the node wrote."""

    def is_kept_back(self, call: Call) -> bool:
        """Whether a call could go to a node, and only waits for another connection to take over or to be left."""

    def dial(self, now: float) -> Dial | None:
        """Return a direct connection that is wanted now, if any; then opened() or not_opened() must follow."""

    def opened(self, wanted: Dial, now: float) -> Any:
        """Return the stream of a direct connection that is there."""

    def not_opened(self, wanted: Dial, now: float) -> None:
        """A direct connection cannot be had."""

    def lost(self, line: Any, now: float) -> None:
        """A direct connection is lost."""


class _Nowhere:
    dial_at: Final = math.inf


class OneStream:
    """What there is of a LineCore where there is no connection but the main one."""

    routes: Final = _Nowhere()

    def is_kept_back(self, call: Call) -> bool:
        return False

    def dial(self, now: float) -> Dial | None:
        return None

    def opened(self, wanted: Dial, now: float) -> Stream:
        raise AssertionError("no direct connection was wanted")

    def not_opened(self, wanted: Dial, now: float) -> None:
        raise AssertionError("no direct connection was wanted")

    def lost(self, line: Any, now: float) -> None:
        raise AssertionError("there was no direct connection")
