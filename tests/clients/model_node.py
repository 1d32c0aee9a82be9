"""A node with several workers and a mesh between them, as far as the order of calls goes; steps happen when told.

Every hop is a queue of its own, so that a test can have one overtake another wherever the real node could.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgpack

from skywalker.clients.calls import Calls
from skywalker.clients.line import Line
from skywalker.ring import Ring, slices, token_of
from skywalker.wire import values
from tests.clients.scripted import framed

MEETINGS = (":recv!", ":send!", ":take!")


@dataclass(eq=False)
class Link:
    """One connection of the client, and the worker at its other end."""

    worker: int
    up: deque[list[Any]] = field(default_factory=deque)
    down: deque[list[Any]] = field(default_factory=deque)
    alive: bool = True


@dataclass(eq=False)
class Waiting:
    """A call that waits where its topic is owned."""

    link: Link
    message: list[Any]


class ModelNode:
    """What `workers` workers do with the calls of one client."""

    def __init__(self, workers: int, tokens: list[int], id: str = "model") -> None:
        self.workers = workers
        self.id = id
        self.slices = slices(tokens, workers)
        self.ring = Ring(self.slices)
        self.links: list[Link] = []
        self.mesh: dict[tuple[int, int], deque[Waiting]] = {}
        self.waiting: dict[Any, list[Waiting]] = {}  # by topic, in the order in which the calls took effect
        self.forwarded = 0

    def owner(self, topic: Any) -> int:
        """Return the worker that owns a topic."""
        return self.ring.owner(token_of(values.pack(topic)))

    def connect(self, line: Line, worker: int) -> Link:
        """Let a line end at a worker."""
        link = line.shell = Link(worker)
        self.links.append(link)
        return link

    def cut(self, line: Line) -> None:
        """Cut a connection: its calls are gone, wherever they are."""
        link: Link = line.shell
        link.alive = False
        self.links.remove(link)
        for calls in self.waiting.values():
            calls[:] = [call for call in calls if call.link is not link]

    def write(self, calls: Calls) -> None:
        """Take what the client has to write, as a shell does."""
        while calls.touched:
            line = calls.touched.pop()
            data = line.output()
            while data and line.shell is not None:
                end = 2 + int.from_bytes(data[:2], "big")
                line.shell.up.append(msgpack.unpackb(data[2:end], strict_map_key=False))
                data = data[end:]

    def read(self, link: Link) -> None:
        """Have the worker read one call."""
        message = link.up.popleft()
        if message[0] == ":hello":
            told = {
                "node": self.id, "worker": link.worker, "workers": self.workers, "tokens": self.slices,
                "steering": False,
            }  # fmt: skip
            link.down.append([":hello", message[1], told])
        elif message[0] in MEETINGS or message[0] == ":topic":
            call = Waiting(link, message)
            owner = self.owner(message[3] if message[0] in MEETINGS else message[2])
            if owner == link.worker:
                self._meet(call)
            else:
                self.forwarded += message[0] in MEETINGS
                self.mesh.setdefault((link.worker, owner), deque()).append(call)
        elif message[0] == ":cancel":
            link.down.append([":cancel", message[1], False])

    def forward(self, hop: tuple[int, int]) -> None:
        """Have the owner read one call from the mesh."""
        self._meet(self.mesh[hop].popleft())

    def _meet(self, call: Waiting) -> None:
        if not call.link.alive:
            return
        if call.message[0] == ":topic":
            call.link.down.append([":topic", call.message[1], {}])
        else:
            self.waiting.setdefault(call.message[3], []).append(call)

    def answer(self, topic: Any, index: int) -> None:
        """Answer a waiting call with its own id."""
        call = self.waiting[topic].pop(index)
        call.link.down.append([call.message[0], call.message[1], call.message[1]])

    def busy_hops(self) -> list[tuple[int, int]]:
        """Return the hops of the mesh that have something under way."""
        return [hop for hop, queue in self.mesh.items() if queue]

    def reply(self, link: Link) -> bytes:
        """Return the next reply on a connection."""
        return framed(link.down.popleft())
