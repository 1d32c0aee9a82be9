"""Silk nodes in simulated processes, and time that goes by when a test says so."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Final, TypeVar

from skywalker import silk
from tests.simulation.eventloop import EventLoop, Program
from tests.simulation.kernel import Kernel
from tests.simulation.machine import Net
from tests.simulation.silk_machine import Simulated
from tests.simulation.threads import Thread
from tests.simulation.zeromq import ZeroMQ

T = TypeVar("T")

PATIENCE_S: Final = 1000.0
"""Seconds for which a call is waited for."""

LOOK_S: Final = 0.005
"""Seconds between two looks whether something is so."""


class World:
    """All of one test."""

    machines: ClassVar[weakref.WeakKeyDictionary[EventLoop, Simulated]] = weakref.WeakKeyDictionary()
    """What Silk asks in which loop."""

    def __init__(self, seed: int = 1) -> None:
        self.kernel = Kernel(seed)
        self.net = Net(self.kernel)
        self.zeromq = ZeroMQ(self.net)
        self.processes: list[Process] = []
        self.threads: list[Thread | Program] = []
        """Of processes that are none of these."""

    def process(self, host: str = "127.0.0.1") -> Process:
        """Return a new one."""
        return Process(self, host)

    @property
    def now(self) -> float:
        """The time, in seconds."""
        return self.kernel.now

    def go_on(self, seconds: float) -> None:
        """Have so much time go by."""
        self.kernel.go_on(seconds)

    def until(self, check: Callable[[], T], within: float = 5.0) -> T:
        """Have time go by until `check` returns what is true; return that."""
        ends_at = self.now + within
        while not (value := check()):
            assert self.now < ends_at, f"not within {within:g} s; last value was {value!r}"
            self.go_on(LOOK_S)
        return value

    def result(self, future: asyncio.Future[Any], within: float = PATIENCE_S) -> Any:
        """Return what a future has as its result once it has one, or raise its error."""
        ends_at = self.now + within
        while not future.done():
            assert self.kernel.next(ends_at), f"no result within {within:g} s"
        return future.result()

    def close(self) -> None:
        """End all processes; fail if one of them complained."""
        programs = [each.program for each in self.processes]
        for each in (*programs, *self.threads):
            each.kill()
        programs += [each for each in self.threads if isinstance(each, Program)]
        complaints = [complaint for each in programs for complaint in each.loop.complaints]
        assert not complaints


class Process:
    """One that does what it is told, in an event loop of its own."""

    def __init__(self, world: World, host: str = "127.0.0.1") -> None:
        self.world = world
        self.host = host
        self.program = Program(world.net, f"process{len(world.processes)}", host, self._main)
        self.task = self.program.task
        self.machine = world.machines[self.program.loop] = Simulated(world.zeromq, self.program.loop, self.task)
        world.processes.append(self)

    async def _main(self, loop: EventLoop) -> None:
        self._first = asyncio.current_task()
        await loop.create_future()

    def begin(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Have something called in it; return what has the result, or will have."""

        async def made() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        loop = self.program.loop
        done: asyncio.Future[Any] = loop.create_future()

        def ended(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                done.cancel()
            elif error := task.exception():
                done.set_exception(error)
            else:
                done.set_result(task.result())

        loop.call_soon_threadsafe(lambda: loop.create_task(made()).add_done_callback(ended))
        return done

    def call(self, call: Callable[[], T | Coroutine[Any, Any, T]]) -> Any:
        """Have something called in it; return its result once there is one, or raise its error."""
        return self.world.result(self.begin(call))

    def close(self) -> None:
        """Fail if it has anything left to do, and end it."""
        self.world.go_on(LOOK_S)  # what was let go of is tidied up
        left = asyncio.all_tasks(self.program.loop) - {self._first}
        assert not left, f"tasks are left behind: {left}"
        self.kill()

    def kill(self) -> None:
        """End it where it is."""
        self.program.kill()

    def stop(self, seconds: float) -> None:
        """Have it stand still."""
        self.task.stop(seconds)


class Node:
    """A node in a process of its own. What it does is done when a method returns, as with skywalker.silk.blocking."""

    def __init__(self, world: World, *endpoints: str, host: str = "127.0.0.1", **settings: Any) -> None:
        self.process = Process(world, host)
        self.entries: list[tuple[str, str]] = []
        """What became known of whom."""
        self.node: silk.Node = self.process.call(lambda: self._open(endpoints, settings))

    async def _open(self, endpoints: tuple[str, ...], settings: dict[str, Any]) -> silk.Node:
        places = endpoints or (f"tcp://{self.process.host}:0",) * 2
        node = silk.Node(*places, machine=self.process.machine, **settings)
        await node.open()
        self._watching = asyncio.create_task(self._watch(node.events()))
        return node

    async def _watch(self, events: silk.Events) -> None:
        async for event in events:
            self.entries.append((type(event).__name__, event.node.id))

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.task.lives:
            self.process.call(self.node.close)

    def events(self) -> Events:
        """Return what becomes known from now on."""
        return Events(self.process, self.process.call(self.node.events))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.node, name)
        if not callable(value):
            return value
        return lambda *given, **named: self.process.call(lambda: value(*given, **named))

    def ask(self, node: Node, type: str, data: Any = None) -> asyncio.Future[Any]:
        """Begin a request to another; return what has its reply, or will have."""
        return self.process.begin(lambda: self.node.request(node.id, type, data))

    def request_all(self, type: str, data: Any = None) -> list[silk.Reply]:
        """Ask all who handle a type; return their replies in the order in which they came."""

        async def asked() -> list[silk.Reply]:
            return [reply async for reply in self.node.request_all(type, data)]

        found: list[silk.Reply] = self.process.call(asked)
        return found

    def of(self, other: Node) -> list[str]:
        """Return what became known of another, in order."""
        return [what for what, id in self.entries if id == other.id]


class Events:
    """What becomes known of the members, one after the other."""

    def __init__(self, process: Process, events: silk.Events) -> None:
        self._process = process
        self._events = events

    def next(self, timeout: float | None = None) -> silk.Event:
        """Return the next. Raises TimeoutError if none came within so many seconds."""

        async def within() -> silk.Event:
            async with asyncio.timeout(timeout):
                return await anext(self._events)

        found: silk.Event = self._process.call(within)
        return found
