"""`skywalker silk request`: a message to one node, or to all that handle its type."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from skywalker.cli import exits, terminal
from skywalker.cli.options import standard_input
from skywalker.cli.silk.options import (
    DEFAULT_ENDPOINT,
    JOIN_S,
    MOMENT_S,
    Asked,
    argument,
    ended_by_sigterm,
    endpoint,
    failed,
    needing_pyzmq,
    node_options,
    printed,
    read,
    result,
)
from skywalker.errors import NoReply, NoSuchNode, SkywalkerError, TimedOut
from skywalker.json_form import FormError

if TYPE_CHECKING:
    from skywalker.silk import Node, NodeInfo


@click.command(short_help="Ask a node, or all that handle a type")
@click.argument("type")
@click.argument("data", default="null", metavar="[DATA]")
@click.option(
    "--join",
    metavar="ENDPOINT",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    callback=endpoint,
    help="where a member of the cluster is",
)
@click.option("--node", "to", metavar="NODE", help="ask this one, by its name, its id or the beginning of that")
@click.option("--all", "to_all", is_flag=True, help="ask all that handle TYPE: a line for each, as they reply")
@click.option("--tell", is_flag=True, help="want no reply: it is sent once, and may be lost")
@click.option("--broadcast", is_flag=True, help="likewise, to all that handle TYPE")
@node_options
def request(
    asked: Asked, type: str, data: str, join: str, to: str | None, to_all: bool, tell: bool, broadcast: bool
) -> int:
    """Join a cluster, send a message of TYPE to a node that handles it, print the data of the reply, and leave.

    DATA is JSON; a bare word is a string, - is standard input, and without it there is none: null. The message is sent
    again as often as the node says of the type, else once; if that was in vain, the exit status is 3. --timeout is the
    time for all of it.
    """
    if sum((to is not None, to_all, broadcast)) > 1:
        raise click.UsageError("--node, --all and --broadcast exclude each other")
    if tell and (to_all or broadcast):
        raise click.UsageError("--tell is for one node; --broadcast alone tells all")
    what = _standard_input() if data == "-" else argument("DATA", data)
    with asked.errors_told(), ended_by_sigterm():
        errand = Errand(asked, type, what, to)
        if to_all:
            return errand.run(join, errand.ask_all)
        return errand.run(join, errand.broadcast if broadcast else errand.tell if tell else errand.ask)


def _standard_input() -> object:
    try:
        return read(b"".join(standard_input()))
    except FormError as error:
        raise click.UsageError(f"standard input: {error}") from error


Do = Callable[["Node"], Awaitable[int]]
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
        with needing_pyzmq():
            from skywalker.silk import ask
        told = ask(join, keys=self._asked.keys, timeout=self._asked.join_timeout)
        return asyncio.run(self._run(join, do, told))

    async def _run(self, join: str, do: Do, told: list[NodeInfo]) -> int:
        from skywalker.silk import Node

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
