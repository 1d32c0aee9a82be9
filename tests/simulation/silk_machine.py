"""The machine as Silk sees it, with a ZeroMQ that is simulated."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from typing import Any

from skywalker.silk.machine import Machine
from tests.simulation.eventloop import EventLoop
from tests.simulation.kernel import Task
from tests.simulation.zeromq import Connection, Context, Frames, Socket, ZeroMQ


class WaitingSocket(Socket):
    """One for which a loop waits."""

    def __init__(self, context: Context, kind: int, loop: EventLoop) -> None:
        super().__init__(context, kind)
        self._loop = loop
        self._waiters: deque[asyncio.Future[Any]] = deque()
        self._is_called = False

    def send_multipart(self, frames: list[bytes], flags: int = 0) -> Any:
        super().send_multipart(frames, flags)
        sent = self._loop.create_future()
        sent.set_result(None)
        return sent

    def recv_multipart(self, flags: int = 0, copy: bool = True) -> Any:
        waiter = self._loop.create_future()
        if self._turns:
            waiter.set_result(super().recv_multipart(flags, copy))
        else:
            assert not copy, "it asks where a message comes from"
            self._waiters.append(waiter)
        return waiter

    def take(self, connection: Connection, frames: Frames) -> None:
        super().take(connection, frames)
        if not self._is_called and not self._loop.is_closed():
            self._is_called = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_called = False
        while self._waiters and self._turns:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(super().recv_multipart(copy=False))


class Waiting:
    """A context whose sockets a loop waits for."""

    def __init__(self, context: Context, loop: EventLoop) -> None:
        self._made = context, loop

    def socket(self, kind: int) -> WaitingSocket:
        context, loop = self._made
        return WaitingSocket(context, kind, loop)


class Simulated(Machine):
    """The machine as Silk in one process sees it."""

    def __init__(self, zeromq: ZeroMQ, loop: EventLoop, task: Task) -> None:
        luck = task.luck
        self.random = luck.random
        self.new_id = lambda: str(uuid.UUID(bytes=luck.randbytes(16), version=4))
        self._made = zeromq, task
        self._loop = loop

    def context(self) -> Any:
        return Context(*self._made)

    def waiting(self, context: Any) -> Any:
        return Waiting(context, self._loop)

    def most_files(self) -> int:
        return 1024
