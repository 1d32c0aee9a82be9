"""The connection of a blocking client of pub/sub, and the threads that wait for what comes over it."""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from skywalker.clients import fork_check
from skywalker.clients.blocking.connection import LineConnection, wait_for
from skywalker.clients.blocking.driver import Pending
from skywalker.clients.blocking.line_driver import LineDriver
from skywalker.clients.news import Herald
from skywalker.clients.requests import MAX_TIMEOUT_S
from skywalker.clients.settings import Settings
from skywalker.dialling import cause_of
from skywalker.errors import Closed
from skywalker.pubsub.exchange import Exchange
from skywalker.pubsub.message import Message


class ExchangeDriver(LineDriver[Exchange]):
    """Runs what is asked of one exchange.

    What a lost connection costs a subscription nobody makes good. So an exception that comes while a thread only waits,
    as most do, leaves the connection; and the child of a fork does not begin anew.
    """

    def __init__(self, make_exchange: Callable[[], Exchange], settings: Settings, herald: Herald) -> None:
        self._is_amid_read = False  # the leader has read or written, and not yet said so
        super().__init__(make_exchange, settings, herald)

    def take(self) -> Message | None:
        """Return the oldest message that waits, None if there is none. Raises what Exchange.take() does, or Closed."""
        if self.is_closed or self._pid != fork_check.pid():
            self.check_open()
        with self._lock:
            return self.core.take(time.monotonic())

    def pass_on(self) -> None:
        """Wake another of those who wait for a message, in the place of one that was and does not take it."""
        if self._pid == fork_check.pid():
            with self._lock:
                self.core.wake(everybody=True)
                self._act()

    def topics(self) -> list[bytes]:
        """Return what the exchange is subscribed to."""
        with self._lock:
            return self.core.topics

    # After a fork.

    def check_open(self) -> None:
        self._check_process()
        super().check_open()

    def abandon(self, call: Pending) -> None:
        if self._pid == fork_check.pid():
            super().abandon(call)

    def close(self) -> None:
        if self._pid == fork_check.pid():
            super().close()
        else:
            self._close_sockets()  # copies, which says nothing to the node

    def _check_process(self) -> None:
        if self._pid != fork_check.pid():
            raise Closed(f"the connection belongs to process {self._pid}: connect anew in this one")

    # What the leader does.

    def _catch_up(self) -> None:
        """Read nothing before a call: messages wait at the node, which knows who lags, until they are wanted."""

    def _read_only(self, main: LineConnection, wait: float) -> list[tuple[LineConnection, bytes]]:
        try:
            # A poll goes on with the time that is left after a signal, and an exception in it costs nothing.
            unsent = select.POLLOUT if main.unsent else 0
            if not wait_for(main.fd, select.POLLIN | unsent, min(wait, MAX_TIMEOUT_S)):
                return []
            self._is_amid_read = True
            if unsent:
                with self._lock:
                    self._write(main, b"")
            data = main.read(0.0)
        except OSError as error:
            with self._lock:
                self._lose(main, cause_of(error))
            return []
        return [] if data is None else [(main, data)]

    def _take(self, read: list[tuple[LineConnection, bytes]], expires: float, now: float) -> None:
        super()._take(read, expires, now)
        if self.core.arrivals and self.core.waiting:
            self.core.wake(everybody=True)  # of a few alone it is not known when they can take one
            self._wake_ended()
        self._is_amid_read = False

    def _is_halfway(self) -> bool:
        was_amid, self._is_amid_read = self._is_amid_read, False
        return was_amid
