"""What discovery by Silk asks of its process, for one that is simulated."""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine
from typing import Any

from skywalker.discovery.silk_member import Surroundings
from tests.simulation.eventloop import EventLoop, Program
from tests.simulation.silk_machine import Simulated
from tests.simulation.threads import Condition, Event, Thread
from tests.simulation.zeromq import ALIASES, ZeroMQ


class Membership(Program):
    """The thread in which a node is a member: one that only waits in a loop needs no real one."""

    def __init__(self, around: SimulatedSurroundings, live: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._live = live
        self._over = Event(around.zeromq.kernel)
        super().__init__(around.zeromq.net, f"{around.name} silk", around.host, self._main)

    async def _main(self, _: EventLoop) -> None:
        await self._live()
        self._over.set()

    def join(self, timeout: float) -> None:
        """Wait for its end, for so many seconds at most. Only threads call this."""
        self._over.wait(timeout)


class SimulatedSurroundings(Surroundings):
    """A process, of which `threads` are those that are to end with it."""

    def __init__(self, zeromq: ZeroMQ, name: str, host: str, threads: list[Thread | Program]) -> None:
        self.zeromq = zeromq
        self.name = name
        self.host = host
        self._threads = threads

    def condition(self) -> Any:
        return Condition(self.zeromq.kernel)

    def begin(self, live: Callable[[], Coroutine[Any, Any, None]]) -> Any:
        thread = Membership(self, live)
        self.machine = Simulated(self.zeromq, thread.loop, thread.task)
        self._threads.append(thread)
        return thread

    def knock(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        if f"tcp://{ALIASES.get(host, host)}:{port}" not in self.zeromq.bound:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
