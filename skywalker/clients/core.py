"""What a driver needs of whatever runs calls.

A core runs calls without I/O and without a clock: `Bus` in process, `Calls` over connections, the `Exchange` of pub/sub
over one. A driver adds threads or an event loop, and is the same for all.
"""

from __future__ import annotations

import abc
import math
from typing import Any, NamedTuple, Protocol

from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.clients.call import Call
from skywalker.clients.homes import Homes, no_node
from skywalker.deadlines import Deadlines
from skywalker.errors import SkywalkerError, Unauthorized, Unreachable


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


class Dial(NamedTuple):
    """A direct connection that is wanted: to this worker of so many, by its source port; None is as well met by any."""

    worker: int | None
    workers: int
    node: str = ""  # the node's id, empty if it is not yet known
    address: Address | None = None  # a numeric one; None for that of the main connection


class LineCore(Core, abc.ABC):
    """What runs calls over a main connection, which is made again when it is lost, and perhaps others."""

    main: Any
    """The stream of the main connection, or of that to come."""

    def __init__(self, where: str) -> None:
        """`where` is for errors."""
        self.ended = []
        self.touched: list[Any] = []
        """The streams that have output, or are to be closed, since the driver last emptied this."""
        self.news: list[Any] = []
        """What is to be told of the main connection, likewise."""
        self.due_at = math.inf
        """When something is due that no caller waits for; it calls for a tick."""
        self.failures = 0
        """Main connections, and attempts to make one, that were lost in a row: for the back-off."""
        self.given_up = False
        """Whether the last attempt to connect would only be told the same if it were made again."""
        self.unacknowledged: dict[Call, Any] | None = None
        """Calls whose values are confirmed once their owner says so, with their streams. None: as soon as they come."""
        self.is_connected = False
        """Whether there is a main connection."""
        self.address = ""
        """Where it is, or was last."""
        self.homes = Homes()
        self._home: Address | None = None  # that it was dialled at
        self._where = where
        self._cause = Cause("no connection yet")
        self._deadlines = Deadlines()

    @property
    def state(self) -> str:
        """How it stands with the main connection, in words."""
        return f"connected to {self.address}" if self.is_connected else f"not connected: {self._cause}"

    @property
    @abc.abstractmethod
    def busy(self) -> bool:
        """Whether a connection is of use."""

    def unreachable(self, cause: str = "", more: str = "") -> Unreachable | Unauthorized:
        """Return the error that says where no node answered, and why: what failed last, or else what is said here."""
        # What goes on may have begun just now, and says less than what has failed.
        return no_node(self._where, self._cause if self.failures else cause or self._cause, more)

    @abc.abstractmethod
    def connected_to_node(self, now: float, address: Address | None = None) -> None:
        """There is a main connection."""

    @abc.abstractmethod
    def disconnected(self, cause: str, now: float) -> None:
        """The main connection, or an attempt to make one, is lost."""

    @abc.abstractmethod
    def receive(self, line: Any, data: bytes, now: float) -> None:
        """Take what the node wrote, however it was cut. Never raises; see `Stream.hang_up`."""

    def acknowledge(self, call: Call) -> None:
        """The owner of a call that is not acknowledged has its value."""

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next tick, None if there is nothing to wait for."""
        wait, silence = self._deadlines.wait(now), self.wait_for_probe(now)
        if wait is None or silence is None:
            return silence if wait is None else wait
        return min(wait, silence)

    def wait_for_probe(self, now: float) -> float | None:
        """Return the seconds until silence calls for a tick, None while it does not matter."""
        seconds: float | None = self.main.wait_for_probe(now)
        return seconds

    # Direct connections, of which there are none unless some are wanted.

    @property
    def dial_at(self) -> float:
        """When a direct connection may be wanted, not before."""
        return math.inf

    def is_kept_back(self, call: Call) -> bool:
        """Whether a call could go to a node, and only waits for another connection to take over or to be left."""
        return False

    def dial(self, now: float) -> Dial | None:
        """Return a direct connection that is wanted now, if any; then opened() or not_opened() must follow."""
        return None

    def opened(self, wanted: Dial, now: float) -> Any:
        """Return the stream of a direct connection that is there."""
        raise NotImplementedError

    def not_opened(self, wanted: Dial, now: float) -> None:
        """A direct connection that dial() wanted cannot be had."""
        raise NotImplementedError

    def lost(self, line: Any, now: float) -> None:
        """A direct connection is lost."""
        raise NotImplementedError
