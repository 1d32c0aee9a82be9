"""A node of a Silk cluster, for asyncio."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from skywalker.errors import Closed, LocalProtocolError, NoSuchNode, NotJoined, SkywalkerError, Unreachable
from skywalker.silk import endpoints
from skywalker.silk.hub import Hub
from skywalker.silk.info import MAX_PERIOD_S, MIN_PERIOD_S, Handling, NodeInfo
from skywalker.silk.keys import Keys, hint, keys_of
from skywalker.silk.machine import MACHINE, Machine
from skywalker.silk.requests import handling
from skywalker.silk.service import Handler, Handlers, check_type
from skywalker.silk.sockets import Sockets
from skywalker.silk.stream import Events
from skywalker.wire import silk as wire
from skywalker.wire.silk import MAX_NAME, Message

ANYWHERE: Final = "tcp://127.0.0.1:0"
JOIN_S: Final = 5.0
"""Seconds for a member to answer who wants to join."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """What one node said to a request that went to many."""

    node: NodeInfo
    data: Any
    error: SkywalkerError | None  # what came instead of data


class Node:
    """One node, from open() to close(), or for an `async with` block. Its methods belong to one event loop."""

    def __init__(
        self,
        router: str = ANYWHERE,
        pub: str = ANYWHERE,
        *,
        name: str = "",
        keepalive: float = 1.0,
        keys: Keys | str | Path | None = None,
        advertise: str = "",
        junction: Mapping[str, Any] | None = None,
        machine: Machine = MACHINE,
    ) -> None:
        """`router` and `pub` are the endpoints to listen at, for direct messages and for what is broadcast.

        `keepalive` is in seconds: three of them without a word from it make others suspect the node, a fourth makes
        them drop it. `keys` are those of the cluster, or the file they are in; `advertise` is the host at which others
        reach the node, if it listens on all addresses. `junction` is told to all, as it is. `machine` is for tests.
        Raises LocalProtocolError or ConfigError for what is not allowed.
        """
        if not MIN_PERIOD_S <= keepalive <= MAX_PERIOD_S:
            raise LocalProtocolError(f"a keepalive of {keepalive} s: allowed are {MIN_PERIOD_S} to {MAX_PERIOD_S:g}")
        if name and not wire.is_name(name):
            raise LocalProtocolError(f"{name[:MAX_NAME]!r} is not a name: use at most {MAX_NAME} printable characters")
        self._router, self._pub = endpoints.endpoint(router), endpoints.endpoint(pub)
        self._advertise = advertise
        self._keys = keys_of(keys)
        self._machine = machine
        self._told = NodeInfo(machine.new_id(), name, "", "", keepalive, {}, junction)
        self._handlers = Handlers()
        self._hub: Hub | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen, as the only member of a cluster.

        Raises ConfigError if its endpoints cannot be had, LocalProtocolError or TooLarge for a junction that cannot be
        told.
        """
        if self._hub is not None:
            raise Closed("a node is opened once: make another")
        sockets = Sockets(self._keys, self._machine)
        try:
            bound = sockets.bind(self._router, self._pub)
            router, pub = (endpoints.advertised(each, self._advertise) for each in bound)
            me = dataclasses.replace(self._told, router=router, pub=pub, messages=self._handlers.declared)
            Message(me.id, "", me.id, wire.JOIN, me.as_map()).encode()  # raises here what nobody would hear later
        except SkywalkerError:
            await sockets.close()
            raise
        self._hub = Hub(me, sockets, self._handlers, self._machine)

    async def close(self) -> None:
        """Leave the cluster, if that has not been done, and end all that is under way."""
        if self._hub is not None and not self._is_closed:
            self._is_closed = True
            self._hub.leave(Closed("the node was closed"))
            await self._hub.close()

    # What it knows.

    @property
    def id(self) -> str:
        """Its own id."""
        return self._told.id

    @property
    def info(self) -> NodeInfo:
        """What it says of itself, once it is open."""
        return self._hub_open.membership.me

    @property
    def members(self) -> dict[str, NodeInfo]:
        """The other members of its cluster, by id."""
        return self._hub_open.membership.members

    @property
    def dropped(self) -> int:
        """Messages that made no sense, were too long, or could not be sent."""
        return self._hub_open.dropped

    def events(self) -> Events:
        """Return what becomes known of the members from now on, to be iterated over with `async for`."""
        return self._hub_open.listen()

    @property
    def _hub_open(self) -> Hub:
        if self._hub is None or self._is_closed:
            raise Closed("the node is not open" if self._hub is None else "the node was closed")
        return self._hub

    @property
    def _hub_joined(self) -> Hub:
        hub = self._hub_open
        if hub.membership.has_left:
            raise NotJoined("this node has left its cluster: it can say nothing until it joins again")
        return hub

    # Coming and going.

    async def join(self, endpoint: str, timeout: float = JOIN_S) -> None:
        """Become a member of the cluster of whoever is at an endpoint.

        Raises LocalProtocolError if that is not an endpoint, Unreachable if nobody lets it in there within `timeout`
        seconds, NotJoined or Closed if the node leaves or is closed meanwhile.
        """
        where = endpoints.endpoint(endpoint)
        hub = self._hub_open
        try:
            async with asyncio.timeout(timeout):
                await hub.seek(where)
        except TimeoutError:
            refusal = hub.refusal(where)
            why = f"refused: {refusal}" if refusal else f"no node answered within {timeout:g} s, {hint(self._keys)}"
            raise Unreachable(f"{where}: {why}") from None

    def seek(self, endpoint: str) -> None:
        """Try to join at an endpoint for as long as nobody answers there. Raises LocalProtocolError."""
        self._hub_open.seek(endpoints.endpoint(endpoint))

    async def leave(self) -> None:
        """Leave the cluster: nothing more is said until join(). Raises NotJoined if that was done before."""
        self._hub_joined.leave(NotJoined("this node has left its cluster"))

    # Saying something.

    def handle(
        self, type: str, handler: Handler | None = None, *, attempts: int = 3, period: float = 1.0
    ) -> Callable[[Handler], Handler]:
        """Call a function with the data of each message of a type; what it returns is the reply. Or decorate one.

        Others send a request to it `attempts` times, `period` seconds apart. Raises LocalProtocolError.
        """

        def add(handler: Handler) -> Handler:
            self._handlers.add(type, handler, Handling(attempts, period))
            if self._hub is not None:
                me = dataclasses.replace(self.info, messages=self._handlers.declared)
                self._hub_open.handle(type, me)
            return handler

        if handler is not None:
            add(handler)
        return add

    async def request(self, node: str, type: str, data: Any = None) -> Any:
        """Ask the member of this id; return the data of its reply.

        Raises NoSuchNode, NobodyHandles, NoReply, HandlerFailed, or NotJoined; and LocalProtocolError or TooLarge for
        data that cannot be sent.
        """
        return await self._ask(self._member(node), type, data)

    async def request_any(self, type: str, data: Any = None) -> Any:
        """Ask the one member that handles a type and has the fewest requests of ours to answer, in turn. As request().

        If that one fails meanwhile no other is asked: whether it has handled the request is not known.
        """
        return await self._ask(self._chosen(type), type, data)

    async def request_all(self, type: str, data: Any = None) -> AsyncGenerator[Reply, None]:
        """Ask all members that handle a type; yield their replies as they come, errors too. Raises as request()."""
        check_type(type)
        hub = self._hub_joined
        nodes = handling(type, hub.membership.members.values())
        asked = [hub.ask(node, self._message(node.id, type, data)) for node in nodes]
        try:
            for ended in asyncio.as_completed(asked):
                request = await ended
                yield Reply(request.node, request.reply, request.error)
        finally:
            for each in asked:
                each.cancel()

    async def tell(self, node: str, type: str, data: Any = None) -> None:
        """Send a message to the member of this id, and expect nothing. Raises as request(), but for what is replied."""
        member = self._member(node)
        self._hub_joined.tell(member, self._message(member.id, type, data, silent=True))

    async def tell_any(self, type: str, data: Any = None) -> None:
        """Send a message to one of the members that handle its type, in turn, and expect nothing. Raises as tell()."""
        member = self._chosen(type)
        self._hub_joined.tell(member, self._message(member.id, type, data, silent=True))

    async def broadcast(self, type: str, data: Any = None) -> None:
        """Send a message to all members that handle its type, and expect nothing. Raises as tell()."""
        self._hub_joined.broadcast(self._message(wire.ALL, type, data))

    async def _ask(self, node: NodeInfo, type: str, data: Any) -> Any:
        request = await self._hub_joined.ask(node, self._message(node.id, type, data))
        if request.error is not None:
            raise request.error
        return request.reply

    def _message(self, dest: str, type: str, data: Any, *, silent: bool = False) -> Message:
        check_type(type)
        return Message(self.id, dest, self._machine.new_id(), type, data, silent=silent)

    def _member(self, id: str) -> NodeInfo:
        node = self._hub_joined.membership.member(id)
        if node is None:
            raise NoSuchNode(f"no other member has the id {id!r}")
        return node

    def _chosen(self, type: str) -> NodeInfo:
        check_type(type)
        hub = self._hub_joined
        return hub.requests.choose(type, hub.membership.members.values())
