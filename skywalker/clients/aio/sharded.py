"""A hot topic, cut into several: each topic is one worker's, which may have too much to do with it."""

from __future__ import annotations

import contextlib
import itertools
import random
from typing import Any, Final, TypeVar

from skywalker.clients import fork_check
from skywalker.clients.aio.driver import Driver, Pending
from skywalker.clients.call import RAISE, Raise
from skywalker.clients.requests import MAX_TIMEOUT_S, milliseconds
from skywalker.errors import Closed, LocalProtocolError, TimedOut
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S

MAX_SHARDS: Final = 1024

T = TypeVar("T")


class Sharded:
    """The shards of one topic, among which senders spread, and on all of which takers wait. Made by sharded().

    What one sender sends is taken in order on each shard, and in no order between them.
    """

    def __init__(self, driver: Driver, topic: str, shards: int, group: Any) -> None:
        if not isinstance(topic, str) or not 0 < shards <= MAX_SHARDS:
            raise LocalProtocolError(f"a str has 1 to {MAX_SHARDS} shards as a topic; these are {shards} of {topic!r}")
        self.topic = topic
        self.topics = tuple(f"{topic}/{number}" for number in range(shards))
        self._driver = driver
        self._group = group
        self._turns = itertools.count(random.randrange(shards))
        # By call, which shard it is about: one for each at least. Those that have ended have what nobody has asked for.
        self._takes: dict[Pending, str] = {}
        self._pid = fork_check.pid()

    async def send(self, value: Any, timeout: float = DEFAULT_TIMEOUT_S, default: T | Raise = RAISE) -> bool | T:
        """Give `value` to a taker of each group, on the next shard in turn; as Junction.send() otherwise."""
        topic = self.topics[next(self._turns) % len(self.topics)]
        call = await self._driver.meet("send", (topic, value), timeout)
        outcome = call.outcome(default)
        return outcome if call.error else outcome is True

    async def take(self, timeout: float = DEFAULT_TIMEOUT_S, default: Any = RAISE) -> Any:
        """Return the next value that is sent to any shard; of all that take from them in one group only one gets it.

        A call on each shard stays under way until close(), also between one take() and the next. So up to one value of
        each shard may have come that is returned later, and whose sender has been told True. If none has come in time,
        returns `default`, or raises TimedOut if none is given; a `timeout` of 0 asks for what has come already.
        """
        milliseconds(timeout)
        deadline = self._driver.now() + timeout
        has_looked = False  # for what is there to be read, as the time may be over from the beginning
        while True:
            await self._stand()
            call = self._came()
            if call is not None:
                return call.outcome()
            if has_looked and self._driver.now() >= deadline:
                break
            await self._driver.wait_for_any([*self._takes], deadline)
            has_looked = True
        if default is RAISE:
            raise TimedOut(f"nobody came to a shard of topic {self.topic!r} within {timeout:g} s")
        return default

    async def close(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> list[Any]:
        """Take no more, and return the values that have come and that no take() has returned.

        A value that crosses the end of its call is among them, or goes on to others. Raises TimedOut if the node does
        not answer in time; nothing is lost then, and close() may be called again.
        """
        for call in [*self._takes]:
            if not call.ended:
                with contextlib.suppress(Closed):
                    await self._driver.cancel(call, timeout)
        values = []
        while (came := self._came()) is not None:
            if came.error is None:
                values.append(came.value)
        return values

    async def _stand(self) -> None:
        """See that a call is under way on each shard."""
        if fork_check.pid() != self._pid:
            self._takes, self._pid = {}, fork_check.pid()  # these are the parent's
        for topic in {*self.topics} - {*[*self._takes.values()]}:
            call = await self._driver.begin("take", (topic, self._group), MAX_TIMEOUT_S)
            self._takes[call] = topic

    def _came(self) -> Pending | None:
        """Return a call that has ended, and forget it."""
        for call in [*self._takes]:
            if call.ended and self._takes.pop(call, None) is not None and not isinstance(call.error, TimedOut):
                return call
        return None
