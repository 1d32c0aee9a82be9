"""A connection that is made again when it is lost, and the tasks that wait for what comes over it.

All of it runs on one event loop. What tasks ask in one turn of the loop leaves in one write; what is asked alone
leaves at once.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from skywalker import backoff
from skywalker.address import Address
from skywalker.clients import process
from skywalker.clients.aio.link import LINGER_S, MAX_OUTPUT_BYTES, Link, cause_so_far, dial
from skywalker.clients.homes import Homes, Round
from skywalker.clients.news import News
from skywalker.clients.settings import Settings
from skywalker.clients.sockets import ATTEMPT_S, HASTY_S
from skywalker.deadlines import PRECISION_S
from skywalker.dialling import cause_of
from skywalker.errors import Closed
from skywalker.pubsub.ask import Ask
from skywalker.pubsub.exchange import Exchange, Notice
from skywalker.pubsub.message import Message
from skywalker.pubsub.telling import Herald


class Pending(Ask):
    """A publish under way, as begin() returns it. Awaiting it is awaiting its result()."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel, code: int, topic: bytes, frame: bytes, timeout: float) -> None:
        super().__init__(code, topic, frame, timeout)
        self._channel = channel

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        return self.ended

    async def result(self) -> None:
        """Return once the node has acknowledged it. Raises TimedOut, Unreachable or Closed if it has not.

        If the waiting task is cancelled, it is given up: it may take effect, or not.
        """
        await self._channel.wait_until_ended(self)
        if self.error is not None:
            raise self.error

    def __await__(self) -> Generator[Any, None, None]:
        return self.result().__await__()


class Channel:
    """What one exchange goes over."""

    def __init__(self, settings: Settings, exchange: Exchange, herald: Herald) -> None:
        self.exchange = exchange
        self._settings = settings
        self._herald = herald
        self._loop = asyncio.get_running_loop()
        self._homes = Homes()
        self._trying = Round(self._homes, random.random)
        self._link: Link | None = None
        self._is_reading = True  # from that
        self._address: Address | None = None  # where it was made
        self._redialling: asyncio.Task[None] | None = None
        self._getters: deque[asyncio.Future[None]] = deque()
        self._flush_is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self.is_closed = False
        self._pid = process.pid()

    async def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._dial_until(lambda: self._link is not None or self.is_closed or self.exchange.given_up)
        except TimeoutError:
            raise self.exchange.unreachable(cause_so_far(self._trying, self._settings)) from None
        self.check_open()
        if self.exchange.given_up:
            raise self.exchange.unreachable()

    def ask(self, *asks: Ask) -> None:
        """Have the node asked."""
        self.check_open()
        now = self._loop.time()
        for ask in asks:
            self.exchange.begin(ask, now)
        self._act()

    async def wait_for_room(self, ask: Ask) -> None:
        """Wait until the node has read some of what was written, the connection is lost, or `ask` is over."""
        link = self._link
        if link is None or link.room.is_set():
            return
        try:
            async with asyncio.timeout_at(ask.expires + PRECISION_S):
                await link.room.wait()
        except TimeoutError:
            return
        except BaseException:
            self.abandon(ask)
            raise

    async def wait_until_ended(self, ask: Ask) -> None:
        """Return once `ask` has ended; abandon it if the task is cancelled."""
        if ask.ended:
            return
        waiter = self._loop.create_future()
        if ask.waiters is None:
            ask.waiters = []
        ask.waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            self.abandon(ask)
            raise

    def abandon(self, *asks: Ask) -> None:
        """End what has not ended, because nobody wants its outcome."""
        if self._pid != process.pid():
            return
        now = self._loop.time()
        for ask in asks:
            self.exchange.abandon(ask, now)
        self._act()

    async def message(self, timeout: float | None = None) -> Message:
        """Return the next message. A task that is cancelled takes none.

        Raises TimedOut, or Unreachable if there is no connection, once `timeout` seconds are over; Closed.
        """
        until = None if timeout is None else self._loop.time() + timeout
        while True:
            self.check_open()
            try:
                message = self.exchange.take()
            finally:
                self._read_or_not()
            if message is not None:
                return message
            try:
                async with asyncio.timeout_at(until):
                    await self._arrival()
            except TimeoutError:
                if timeout is not None and not self.exchange.waiting:
                    raise self.exchange.nothing_came(timeout) from None

    async def _arrival(self) -> None:
        getter: asyncio.Future[None] = self._loop.create_future()
        self._getters.append(getter)
        try:
            await getter
        except BaseException:
            if getter in self._getters:
                self._getters.remove(getter)
            else:
                self._wake_getters()  # another may have what this one was woken for
            raise

    def check_open(self) -> None:
        """Raise Closed if the channel was closed, or is another process's."""
        if self._pid != process.pid():
            raise Closed(f"the connection belongs to process {self._pid}: connect anew in this one")
        if self.is_closed:
            raise Closed("the client is closed")

    async def close(self) -> None:
        """End all that was asked with Closed, and the waiting for the rest."""
        if self._pid != process.pid():
            return  # the connection is the parent's, and so is the event loop
        self.is_closed = True
        self.exchange.close(Closed("the client was closed"))
        self._act()
        if self._timer is not None:
            self._timer.cancel()
        while self._getters:
            _wake(self._getters.popleft())
        link, self._link = self._link, None
        if link is not None:
            link.transport.abort()
        ending = [*([link.lost] if link else []), *([self._redialling] if self._redialling else [])]
        if self._redialling is not None:
            self._redialling.cancel()
        if ending:
            await asyncio.wait(ending, timeout=LINGER_S)

    def _act(self) -> None:
        """Do what the exchange wants done, after every use of it."""
        exchange = self.exchange
        for ask in exchange.ended:
            for waiter in ask.waiters or ():
                _wake(waiter)
            ask.waiters = None
        exchange.ended.clear()
        for news in exchange.news:
            self._loop.call_soon(self._tell, news)
        exchange.news.clear()
        self._wake_getters()
        link = self._link
        if link is None:
            self._redial()
        elif exchange.hang_up:
            link.transport.abort()
            self.lost(link, exchange.hang_up)
        elif exchange.asked < 2 or exchange.output_bytes > MAX_OUTPUT_BYTES:
            self._flush()
        elif exchange.output_bytes and not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush_turn)
        self._read_or_not()
        wait = exchange.wait(self._loop.time())
        if wait is not None:
            self._wake_by(self._loop.time() + wait)

    def _tell(self, news: News | Notice) -> None:
        if not self.is_closed:
            self._herald.tell(news)

    def _wake_getters(self) -> None:
        """Wake as many as there are messages; whoever finds none, since another was quicker, waits again."""
        for _ in range(min(self.exchange.waiting, len(self._getters))):
            _wake(self._getters.popleft())

    def _wake_by(self, at: float) -> None:
        if at < self._timer_at and not self.is_closed:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at, self._tick)
            self._timer_at = at

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = math.inf
        self.exchange.tick(self._loop.time())
        self._act()

    # The connection.

    def received(self, link: Link, data: bytes) -> None:
        """The node wrote."""
        if link is self._link:
            self.exchange.receive(data, self._loop.time())
            self._act()

    def stalled(self, more: int) -> None:
        """Whoever waits for room asks the link."""

    def lost(self, link: Link, cause: str) -> None:
        """A connection is lost."""
        if link is self._link:
            self._link = None
            self._homes.avoid(self._address)
            self.exchange.disconnected(self.exchange.hang_up or cause, self._loop.time())
            self._act()

    def _flush_turn(self) -> None:
        self._flush_is_due = False
        self._flush()

    def _flush(self) -> None:
        if self._link is not None and (data := self.exchange.output()):
            self._link.transport.write(data)

    def _read_or_not(self) -> None:
        """Stop reading while the buffer is full, and go on once it has room."""
        link = self._link
        if link is None:
            return
        if self._is_reading and self.exchange.is_full:
            self._is_reading = False
            link.transport.pause_reading()
        elif not self._is_reading and self.exchange.has_room:
            self._is_reading = True
            self.exchange.reading_again(self._loop.time())
            link.transport.resume_reading()

    def _redial(self) -> None:
        if self.exchange.is_busy and self._redialling is None and not self.is_closed:
            self._redialling = self._loop.create_task(self._dial_while_busy())

    async def _dial_while_busy(self) -> None:
        try:
            await self._dial_until(lambda: self._link is not None or not self.exchange.is_busy)
        finally:
            self._redialling = None

    async def _dial_until(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            if self.exchange.failures:
                await asyncio.sleep(backoff.delay(self.exchange.failures - 1, random.random()))
            await self._attempt()

    async def _attempt(self) -> None:
        """Try every address, until a node is reached."""
        round = self._trying = Round(self._homes, random.random)
        round.found(self._settings.addresses)
        while (address := round.next()) is not None:
            try:
                patience = ATTEMPT_S if round.is_last else HASTY_S
                self._link = await dial(self._loop, self, address, patience, self._settings.tls)
            except (OSError, UnicodeError) as error:
                round.failed(address, cause_of(error))
                continue
            self._is_reading = True
            self._address = address
            self._homes.settle()
            self.exchange.connected(str(address), self._loop.time())
            break
        else:
            self.exchange.disconnected(round.cause(self._settings.where), self._loop.time())
        self._act()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
