"""Requests of this node that are under way: each is sent again until it is answered, or was sent often enough.

Knows no socket and no clock, as the other pure parts of Silk.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from skywalker.deadlines import Deadlines
from skywalker.errors import HandlerFailed, NobodyHandles, NoReply, SkywalkerError
from skywalker.silk.info import Handling, NodeInfo
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message


@dataclasses.dataclass(eq=False, slots=True)
class Request:
    """One of them."""

    node: NodeInfo  # whom it is for
    message: Message
    handling: Handling
    attempts: int = 0  # so far
    at: float = 0.0  # when it is sent again, or given up
    reply: Any = None
    error: SkywalkerError | None = None  # what it ended with, instead of a reply


class Requests:
    """All of them. Whoever makes one is told its end by ended()."""

    def __init__(self, luck: Callable[[], float]) -> None:
        """`luck` returns numbers from 0 to below 1."""
        self._luck = luck
        self._requests: dict[str, Request] = {}  # by the id of the message
        self._outstanding: dict[str, int] = {}  # how many of them each node has, by its id
        self._turns: dict[str, int] = {}  # when each node was last chosen
        self._turn = itertools.count(1)
        self._deadlines = Deadlines()
        self._messages: list[Message] = []
        self._ended: list[Request] = []

    def messages(self) -> list[Message]:
        """Return what is to be sent now, and forget it."""
        messages, self._messages = self._messages, []
        return messages

    def ended(self) -> list[Request]:
        """Return the requests that have ended since this was last called."""
        ended, self._ended = self._ended, []
        return ended

    def wait(self, now: float) -> float | None:
        """Return the seconds until tick() has something to do, None if only an event can change that."""
        return self._deadlines.wait(now)

    def choose(self, type: str, nodes: Iterable[NodeInfo]) -> NodeInfo:
        """Return the node to ask: of those with the fewest requests outstanding, the one not chosen for longest.

        Of those never chosen it is any, or all nodes that come would ask the same one first. Raises NobodyHandles.
        """
        able = handling(type, nodes)
        chosen = min(
            able, key=lambda node: (self._outstanding.get(node.id, 0), self._turns.get(node.id, 0), self._luck())
        )
        self._turns[chosen.id] = next(self._turn)
        return chosen

    def begin(self, node: NodeInfo, message: Message, now: float) -> Request:
        """Send a request to a node, as often as the node says that it is to be sent.

        A type of which it says nothing is sent once: it may know it all the same, and else says that it does not.
        """
        request = Request(node, message, node.messages.get(message.type, Handling(attempts=1)))
        self._requests[message.id] = request
        self._outstanding[node.id] = self._outstanding.get(node.id, 0) + 1
        self._attempt(request, now)
        return request

    def awaits(self, message: Message) -> bool:
        """Whether this is the reply to one of them, from the node that was asked."""
        request = self._requests.get(message.reply)
        return request is not None and request.node.id == message.src

    def received(self, message: Message) -> bool:
        """Take in a reply that is awaited; return False if it says that its sender does not know this node."""
        request = self._requests[message.reply]
        match message.data:
            case {"error": error, **rest}:
                code = rest.get("code")
                if code == wire.STRANGER:
                    return False  # the next attempt may find it better informed
                cls = NobodyHandles if code == wire.UNKNOWN_TYPE else HandlerFailed
                reason = str(error)[: wire.MAX_REASON]  # it may be another program's
                self._end(request, error=cls(f"{request.node.name or request.node.id}: {reason}"))
            case data:
                self._end(request, data)
        return True

    def gone(self, id: str, why: str) -> None:
        """A node is no member any more: what was asked of it will not be answered."""
        for request in [*self._requests.values()]:
            if request.node.id == id:
                self._end(request, error=NoReply(f"{request.node} {why}, with {request.message.type!r} not answered"))
        self._turns.pop(id, None)

    def abort(self, error: SkywalkerError) -> None:
        """End all of them."""
        for request in [*self._requests.values()]:
            self._end(request, error=error)

    def forget(self, request: Request) -> None:
        """Nobody wants to know how this one ends."""
        if request.message.id in self._requests:
            self._take_out(request)

    def tick(self, now: float) -> None:
        """Do what is due."""
        due: list[Request] = self._deadlines.due(now)
        for request in due:
            if request.attempts < request.handling.attempts:
                self._attempt(request, now)
            else:
                times = "once" if request.attempts == 1 else f"{request.attempts} times"
                self._end(
                    request,
                    error=NoReply(
                        f"{request.node} did not answer {request.message.type!r}, sent {times}, "
                        f"within {request.attempts * request.handling.period_s:g} s"
                    ),
                )

    def _attempt(self, request: Request, now: float) -> None:
        request.attempts += 1
        request.at = now + request.handling.period_s
        self._deadlines.add(request, request.at)
        self._messages.append(request.message)

    def _end(self, request: Request, reply: Any = None, error: SkywalkerError | None = None) -> None:
        request.reply, request.error = reply, error
        self._take_out(request)
        self._ended.append(request)

    def _take_out(self, request: Request) -> None:
        del self._requests[request.message.id]
        self._deadlines.discard(request, request.at)
        left = self._outstanding[request.node.id] - 1
        if left:
            self._outstanding[request.node.id] = left
        else:
            del self._outstanding[request.node.id]


def handling(type: str, nodes: Iterable[NodeInfo]) -> list[NodeInfo]:
    """Return the nodes that handle a type. Raises NobodyHandles if there is none."""
    able = [node for node in nodes if type in node.messages]
    if not able:
        raise NobodyHandles(f"no member handles {type!r}")
    return able
