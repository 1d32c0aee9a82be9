"""What `skywalker silk request` does as a member: it asks or tells, prints what comes of it, and leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from skywalker.cli import exits, terminal
from skywalker.cli.silk.options import (
    JOIN_S,
    MOMENT_S,
    Asked,
    failed,
    printed,
    result,
)
from skywalker.errors import NoReply, NoSuchNode, SkywalkerError, TimedOut
from skywalker.silk import Node, NodeInfo, ask

Do = Callable[[Node], Awaitable[int]]
"""Does something as this node, and returns the exit status."""


class Errand:
    """A message, and whom it is for: the node `to`, by its name or id, or any."""

    def __init__(self, asked: Asked, type: str, data: Any, to: str | None) -> None:
        self._asked = asked
        self._type = type
        self._data = data
        self._to = to
        self._started = time.monotonic()
        self._status = exits.OK
        self._missing: list[NodeInfo] = []  # members that have not answered us

    def run(self, join: str, do: Do) -> int:
        """Join, do it, and leave; return the exit status. Raises a SkywalkerError."""
        told = ask(join, keys=self._asked.keys, timeout=self._asked.join_timeout)
        return asyncio.run(self._run(join, do, told))

    async def _run(self, join: str, do: Do, told: list[NodeInfo]) -> int:
        async with Node(**self._asked.settings(join)) as node:
            left = self._left()
            await node.join(join, JOIN_S if left is None else left)
            self._missing = [each for each in told if each.id not in node.members]
            return await do(node)

    async def ask(self, node: Node) -> int:
        """Ask one node."""
        try:
            async with asyncio.timeout(self._left()):
                if self._to is None:
                    reply = await node.request_any(self._type, self._data)
                else:
                    reply = await node.request(self._named(node).id, self._type, self._data)
        except SkywalkerError:
            raise
        except TimeoutError:
            raise TimedOut(f"no reply to {self._type!r} within {self._asked.timeout:g} s") from None
        if self._asked.as_json:
            terminal.write(result("answered", self._started, value=reply))
        else:
            terminal.write(printed(reply))
        return exits.OK

    async def ask_all(self, node: Node) -> int:
        """Ask all that handle the type; the exit status is that of the first that fails."""
        silent = {id: each for id, each in node.members.items() if self._type in each.messages}
        try:
            async with asyncio.timeout(self._left()):
                async for reply in node.request_all(self._type, self._data):
                    silent.pop(reply.node.id, None)
                    if reply.error is None:
                        self._write(reply.node, reply.data)
                    else:
                        self._complain(reply.node, reply.error)
        except SkywalkerError:
            raise
        except TimeoutError:
            for each in silent.values():
                self._complain(each, NoReply(f"{each} did not answer within {self._asked.timeout:g} s"))
        for each in self._missing:
            self._complain(each, NoReply(f"{each} was not asked: it is a member, but has not answered us"))
        return self._status

    async def tell(self, node: Node) -> int:
        """Tell one node."""
        if self._to is None:
            await node.tell_any(self._type, self._data)
        else:
            await node.tell(self._named(node).id, self._type, self._data)
        await asyncio.sleep(MOMENT_S)
        return self._sent()

    async def broadcast(self, node: Node) -> int:
        """Tell all. They have only just learned where to listen."""
        await asyncio.sleep(MOMENT_S)
        await node.broadcast(self._type, self._data)
        return self._sent()

    def _left(self) -> float | None:
        """Return the seconds that are left, None if there is no end to them."""
        if self._asked.timeout is None:
            return None
        return max(0.0, self._started + self._asked.timeout - time.monotonic())

    def _named(self, node: Node) -> NodeInfo:
        """Return the member that the message is for. Raises NoSuchNode."""
        members = node.members
        exact = [each for each in members.values() if self._to in (each.id, each.name)]
        found = exact or [each for id, each in members.items() if id.startswith(self._to or "")]
        if not found:
            raise NoSuchNode(f"no member has the name or id {self._to!r}")
        if len(found) > 1:
            ids = ", ".join(each.id for each in found)
            raise NoSuchNode(f"{self._to!r} may be any of {len(found)} members, of the ids {ids}")
        return found[0]

    def _sent(self) -> int:
        if self._asked.as_json:
            terminal.write(result("sent", self._started))
        return exits.OK

    def _write(self, node: NodeInfo, data: Any) -> None:
        if self._asked.as_json:
            terminal.write(result("answered", self._started, node=node.id, name=node.name, value=data))
        else:
            terminal.write(terminal.shown(node.name or node.id).encode() + b"\t" + printed(data))

    def _complain(self, node: NodeInfo, error: SkywalkerError) -> None:
        self._status = self._status or exits.of(error)
        if self._asked.as_json:
            terminal.write(failed(error, self._started, node=node.id, name=node.name))
        else:
            terminal.complain(str(error))
