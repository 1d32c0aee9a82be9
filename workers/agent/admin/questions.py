"""What the agent asks the workers: who waits on which topic, and who is connected.

inspection.py has the other end. A question is one packet, and so is the answer, with a file in memory. A worker is
asked one question at a time; one that is hung is never asked a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

ANSWER_S: Final = 1.0
"""Seconds for a worker to answer, else it is silent."""

FRESH_S: Final = 1.0
"""Seconds for which an answer is given to all who ask the same, so that askers cannot keep the workers busy."""

_PACKET: Final = 4096


@dataclass(frozen=True, slots=True)
class Answers:
    """What the workers of some slots answered, and the slots of those that did not."""

    given: list[tuple[int, dict[str, Any]]]
    silent: list[int]


class Questions:
    """To all workers of a node. Lives in a running event loop, which is all that may call it."""

    def __init__(self) -> None:
        self._workers: dict[int, _Worker] = {}  # by pid
        self._asked: dict[str, tuple[float, asyncio.Task[Answers]]] = {}  # until when an answer is fresh

    def meet(self, slot: int, pid: int, sock: socket.socket) -> None:
        """Ask the worker of that slot and pid over that socket from now on."""
        self.lost(pid)
        self._workers[pid] = _Worker(slot, sock, lambda: self.lost(pid))

    def lost(self, pid: int) -> None:
        """Ask it no more."""
        worker = self._workers.pop(pid, None)
        if worker is not None:
            worker.close()

    async def ask(self, question: dict[str, Any]) -> Answers:
        """Return what all answer."""
        now = asyncio.get_running_loop().time()
        key = json.dumps(question)
        fresh_until, task = self._asked.get(key, (0.0, None))
        if task is None or (task.done() and now >= fresh_until):
            for old in [old for old, (until, asked) in self._asked.items() if asked.done() and now >= until]:
                del self._asked[old]
            task = asyncio.create_task(self._ask_all(key.encode()))
            self._asked[key] = now + FRESH_S, task
        return await asyncio.shield(task)  # one that asks no more leaves the others their answer

    async def _ask_all(self, question: bytes) -> Answers:
        workers = sorted(self._workers.values(), key=lambda worker: worker.slot)
        answers = await asyncio.gather(*(worker.ask(question) for worker in workers))
        given, silent = [], []
        for worker, answer in zip(workers, answers, strict=True):
            if answer:
                given.append((worker.slot, answer))
            elif not worker.closed:
                silent.append(worker.slot)
        return Answers(given, silent)


class _Worker:
    def __init__(self, slot: int, sock: socket.socket, lost: Callable[[], None]) -> None:
        self.slot = slot
        self.closed = False
        self._socket = sock
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[dict[str, Any] | None] | None = None  # to what it was asked last
        sock.setblocking(False)
        self._loop.add_reader(sock, self._hear)

    async def ask(self, question: bytes) -> dict[str, Any] | None:
        """Return its answer, None if there is none in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S), self._turn:
                if self._answer is not None:
                    await asyncio.shield(self._answer)  # one that came too late for who had asked
                if self.closed or not self._say(question):
                    return None
                assert self._answer is None or self._answer.done(), "it is asked one question at a time"
                self._answer = self._loop.create_future()
                return await asyncio.shield(self._answer)
        return None

    def _say(self, question: bytes) -> bool:
        try:
            self._socket.send(question)
        except OSError:
            return False  # it is dead, which is about to be read, too
        return True

    def _hear(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, _PACKET, 1)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._lost()
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(_read(fds[0]) if fds else None)

    def close(self) -> None:
        """It is gone: who waits for its answer gets none."""
        self.closed = True
        self._loop.remove_reader(self._socket)
        self._socket.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)


def _read(fd: int) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(os.pread(fd, os.fstat(fd).st_size, 0))
    finally:
        os.close(fd)
    return answer
