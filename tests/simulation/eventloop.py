"""An asyncio event loop whose time, timers and sockets are those of the simulated machine, and programs that run in it.

It is asyncio's own, transports and streams included, over a Poller: one turn of it is one step of its process. No
thread is ever made. Whatever would depend on when the garbage collector runs does nothing here.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import selectors
import socket
from asyncio import selector_events
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tests.simulation.ends import Address
from tests.simulation.kernel import NEVER, Killed, Task
from tests.simulation.machine import Net, Poller, Simulated, Socket

THREAD_S: Final = 1e-3
"""Seconds until a thread has run what it was given, at most."""

UNWOUND: Final = 100
"""How often what is dropped may wait once more on its way out."""


class Selector(selectors.PollSelector):
    """What asyncio waits with."""

    def __init__(self, poller: Poller) -> None:
        self._selector_cls = lambda: poller
        super().__init__()


class Transport(selector_events._SelectorSocketTransport):
    """One that nobody closed is closed by the kernel, not by the garbage collector."""

    def is_closing(self) -> bool:
        return super().is_closing() or self._loop.is_closed()

    def __del__(self) -> None:
        """It would warn."""


class EventLoop(asyncio.SelectorEventLoop):
    """The loop of one process."""

    def __init__(self, net: Net, task: Task, machine: Simulated | None = None) -> None:
        self.machine = machine or Simulated(net, task)
        self.complaints: list[str] = []
        """What nobody caught. Some of it is told only once the garbage collector finds it."""
        self._net = net
        self._task = task
        self._tasks: dict[asyncio.Task[Any], None] = {}  # in the order in which they were made
        super().__init__(Selector(self.machine.poller()))
        self.set_debug(False)
        self.set_exception_handler(self._complain)
        self.set_task_factory(self._make_task)

    # Its life.

    def turn(self) -> float:
        """Do one turn; return when the next is due, NEVER if that depends on others. Raises Killed."""
        self.stop()  # after this turn
        self.run_forever()
        if self._ready:
            return self.time()
        return self._scheduled[0].when() if self._scheduled else NEVER

    def drop(self) -> None:
        """Its process has ended: what still waits is left where it is, and nothing it does on its way out matters."""
        self.set_exception_handler(lambda *_: None)
        self._net.end(self._task)
        self.close()
        for task in [*self._tasks]:
            _unwind(task.get_coro())
        self._tasks.clear()

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def _complain(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.complaints.append(f"{self._task.name}: {context['message']}: {context.get('exception')!r}")

    # What it asks of the machine.

    def time(self) -> float:
        return self._task.clock()

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        # Who is thrown out of a loop that was dropped may still ask.
        return None if self.is_closed() else super().call_soon(callback, *args, context=context)

    def _make_self_pipe(self) -> None:
        """Nobody else wakes it by one."""

    def _close_self_pipe(self) -> None:
        """There is none."""

    def _write_to_self(self) -> None:
        self._task.wake(self._net.kernel.time())

    def run_in_executor(self, _: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()

        def run() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_later(THREAD_S * self.machine.random(), run)
        return future

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        await self.run_in_executor(None, lambda: None)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (each, port or 0))
            for each in self._net.resolve(host)
        ]

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: Any = None, **options: Any
    ) -> Any:
        if sock is None:
            sock = await self._dial(host, port)
        return await super().create_connection(protocol_factory, sock=sock, **options)

    async def _dial(self, host: Any, port: Any) -> Socket:
        try:
            ipaddress.ip_address(host)
            addresses: list[Address] = [(host, port)]
        except ValueError:
            addresses = [form for *_, form in await self.getaddrinfo(host, port)]
        failure = OSError(errno.EADDRNOTAVAIL, "nothing to dial")
        for address in addresses:
            sock: Socket = self.machine.tcp()
            try:
                await self.sock_connect(sock, address)
                return sock
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
        raise failure

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: Any = None, **options: Any
    ) -> Any:
        if sock is None:
            here = self._task.host if host in (None, "", "0.0.0.0") else host
            [sock] = self._net.listen((here, port or self._net.free_port()), 1, self._task)
        taken = {name: each for name, each in options.items() if name in ("backlog", "ssl", "start_serving")}
        return await super().create_server(protocol_factory, sock=sock, **taken)

    def _make_socket_transport(
        self, sock: Any, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
    ) -> Transport:
        return Transport(self, sock, protocol, waiter, extra, server)


def _unwind(coro: Any) -> None:
    for _ in range(UNWOUND):
        try:
            coro.throw(Killed())
        except BaseException:
            return
    raise AssertionError(f"{coro} does not end when it is killed")


class Program:
    """A process that runs what is async in a loop of its own, until that ends or the process is killed."""

    def __init__(
        self,
        net: Net,
        name: str,
        host: str,
        main: Callable[[EventLoop], Coroutine[Any, Any, None]],
        machine: Callable[[Net, Task], Simulated] = Simulated,
    ) -> None:
        """`main` is given the loop, and `machine` makes what the loop is on."""
        self.task = Task(net.kernel, name, host, self)
        self.loop = EventLoop(net, self.task, machine(net, self.task))
        self._main = main
        self._running: asyncio.Task[None] | None = None
        self.task.wake(net.kernel.time())

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return not self.task.lives

    def step(self) -> float:
        """Do a turn of its loop."""
        if self._running is None:
            self._running = self.loop.create_task(self._main(self.loop))
        try:
            next_at = self.loop.turn()
        except Killed:
            self.kill()
            return NEVER
        if not self._running.done():
            return next_at
        if error := self._running.exception():
            raise error
        self.kill()
        return NEVER

    def kill(self) -> None:
        """End it where it is."""
        if self.task.lives:
            self.task.end()
            self.loop.drop()
