"""What goes on in a node: messages come in, the pure parts say what is to be done about them, and it is done."""

from __future__ import annotations

import asyncio
import itertools
import math
import weakref
from collections.abc import Awaitable, Callable
from typing import Final

from skywalker.errors import LocalProtocolError, RemoteProtocolError, SkywalkerError, TooLarge
from skywalker.limits import KIB
from skywalker.silk.endpoints import Origin
from skywalker.silk.events import Event, Failed, Left
from skywalker.silk.info import NodeInfo
from skywalker.silk.machine import Machine
from skywalker.silk.membership import Membership
from skywalker.silk.outbox import Action, Answer, Broadcast, Ignore, Listen, Part, Reached, Refused, Send
from skywalker.silk.requests import Request, Requests
from skywalker.silk.service import Handlers, Service
from skywalker.silk.sockets import Sockets
from skywalker.silk.stream import Events
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message

AT_A_TIME: Final = 64
"""Messages that are taken in before others have their turn."""

BYTES_AT_A_TIME: Final = 256 * KIB
"""The same, of those that are long: a message of 1 MiB can take 50 ms to read."""


class Hub:
    """One node at work, in the running event loop, from its making to close()."""

    def __init__(self, me: NodeInfo, sockets: Sockets, handlers: Handlers, machine: Machine) -> None:
        self._loop = asyncio.get_running_loop()
        self.membership = Membership(
            me, luck=machine.random, new_id=machine.new_id, now=self._loop.time(), most=sockets.room
        )
        self.requests = Requests(machine.random)
        self._streams: weakref.WeakSet[Events] = weakref.WeakSet()
        self._sockets = sockets
        self._handlers = handlers
        self._service = Service(me.id, handlers, self._to_member, machine.new_id)
        self._asked: dict[Request, asyncio.Future[Request]] = {}
        self._sought: dict[str, list[asyncio.Future[None]]] = {}  # by endpoint
        self._refusals: dict[str, str] = {}  # why we were not let in, by endpoint
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None
        self._readers = [
            self._loop.create_task(self._read(sockets.direct), name="silk direct"),
            self._loop.create_task(self._read(sockets.heard), name="silk broadcasts"),
        ]
        for type in me.messages:
            sockets.want(type)
        self._act()

    @property
    def dropped(self) -> int:
        """Messages that made no sense, were too long, or could not be sent."""
        return self._dropped + self.membership.dropped + self._service.dropped + self._sockets.dropped

    def seek(self, endpoint: str) -> asyncio.Future[None]:
        """Try to join at an endpoint; return what is done once somebody has answered. Cancel it to give up."""
        sought: asyncio.Future[None] = self._loop.create_future()
        sought.add_done_callback(lambda sought: self._abandon(endpoint, sought) if sought.cancelled() else None)
        self._sought.setdefault(endpoint, []).append(sought)
        self._refusals.pop(endpoint, None)
        self.membership.join(endpoint, self._loop.time())
        self._act()
        return sought

    def refusal(self, endpoint: str) -> str:
        """Return why whoever is at this endpoint has not let us in, nothing if nobody says so."""
        return self._refusals.get(endpoint, "")

    def listen(self) -> Events:
        """Return what becomes known of the members from now on."""
        events = Events(self._streams.discard)
        self._streams.add(events)
        return events

    def ask(self, node: NodeInfo, message: Message) -> asyncio.Future[Request]:
        """Begin a request; return what has it as its result once it has ended. Cancel it to forget the request.

        Raises LocalProtocolError or TooLarge for a message that cannot be sent.
        """
        message.encode()
        asked: asyncio.Future[Request] = self._loop.create_future()
        request = self.requests.begin(node, message, self._loop.time())
        self._asked[request] = asked
        asked.add_done_callback(lambda asked: self._forget(request) if asked.cancelled() else None)
        self._act()
        return asked

    def tell(self, node: NodeInfo, message: Message) -> None:
        """Send a message once. Raises LocalProtocolError or TooLarge."""
        self._sockets.send(node.router, message.encode())

    def broadcast(self, message: Message) -> None:
        """Send a message to all who handle its type. Raises LocalProtocolError or TooLarge."""
        self._sockets.broadcast(message.type, message.encode())

    def handle(self, type: str, me: NodeInfo) -> None:
        """Have the messages of one more type, and say `me` of this node from now on."""
        self._sockets.want(type)
        self.membership.change(me)
        self._act()

    def leave(self, error: SkywalkerError) -> None:
        """Leave the cluster; requests end with this error, and so does the search for who is to let it in."""
        self.membership.leave(self._loop.time())
        self.requests.abort(error)
        sought, self._sought = self._sought, {}
        for each in itertools.chain(*sought.values()):
            if not each.done():
                each.set_exception(error)
                each.exception()  # who only seeks never looks
        self._act()

    async def close(self) -> None:
        """End all that is under way, and close the sockets. To be called after leave()."""
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self._handlers.stop()
        if self._timer is not None:
            self._timer.cancel()
        for events in [*self._streams]:
            events.close()
        await self._sockets.close()

    # What is to be done.

    def _act(self, sender: bytes | None = None) -> None:
        """Do all that is to be done now, and see to it that the rest is done in time.

        `sender` is on which way the message has come that was just taken in.
        """
        for action in self.membership.actions():
            try:
                self._do(action, sender)
            except (LocalProtocolError, TooLarge):
                self._dropped += 1  # of a cluster whose members do not fit in a message
        for message in self.requests.messages():
            self._to_member(message.dest, message.encode())
        for request in self.requests.ended():
            asked = self._asked.pop(request, None)
            if asked is not None and not asked.done():
                asked.set_result(request)
        now = self._loop.time()
        waits = [wait for wait in (self.membership.wait(now), self.requests.wait(now)) if wait is not None]
        self._wake_at(now + min(waits, default=math.inf))

    def _wake_at(self, at: float) -> None:
        # One that comes too early is let come: nearly each message puts the time off.
        if at < (self._timer.when() if self._timer is not None else math.inf):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at, self._tick)

    def _do(self, action: Action, sender: bytes | None) -> None:
        match action:
            case Send(endpoint, message):
                self._sockets.send(endpoint, message.encode())
            case Broadcast(message):
                self.broadcast(message)
            case Answer(message):
                self._sockets.answer(sender, message.encode())
            case Listen(endpoint):
                self._sockets.listen(endpoint)
            case Ignore(endpoint):
                self._sockets.ignore(endpoint)
            case Part(endpoint):
                self._sockets.part(endpoint)
            case Refused(endpoint, reason):
                if endpoint in self._sought:
                    self._refusals[endpoint] = reason
            case Reached(endpoint):
                self._refusals.pop(endpoint, None)
                for sought in self._sought.pop(endpoint, []):
                    if not sought.done():
                        sought.set_result(None)
            case event:
                self._happened(event)

    def _happened(self, event: Event) -> None:
        match event:
            case Left(node):
                self.requests.gone(node.id, "has left")
            case Failed(node):
                self.requests.gone(node.id, "has failed")
        for events in [*self._streams]:
            events.tell(event)

    def _tick(self) -> None:
        self._timer = None
        now = self._loop.time()
        try:
            self.membership.tick(now)
            self.requests.tick(now)
        finally:
            self._act()  # a bug is not to end the ticking

    def _abandon(self, endpoint: str, sought: asyncio.Future[None]) -> None:
        waiting = self._sought.get(endpoint, [])
        if sought in waiting:
            waiting.remove(sought)
            if not waiting:
                del self._sought[endpoint]
                self.membership.abandon(endpoint)
                self._act()

    def _forget(self, request: Request) -> None:
        if self._asked.pop(request, None) is not None:
            self.requests.forget(request)

    def _to_member(self, id: str, frame: bytes) -> None:
        node = self.membership.member(id)
        if node is None:
            self._dropped += 1  # it has just gone
        else:
            self._sockets.send(node.router, frame)

    # What comes in.

    async def _read(self, receive: Callable[[], Awaitable[tuple[bytes | None, Origin, bytes | None]]]) -> None:
        while True:
            size = 0
            for _ in range(AT_A_TIME):
                sender, origin, frame = await receive()
                try:
                    self._take_in(sender, origin, frame)
                except Exception as error:
                    # A bug, which is to cost no more than this message.
                    self._loop.call_exception_handler({"message": "a message was not taken in", "exception": error})
                size += len(frame or b"")
                if size >= BYTES_AT_A_TIME:
                    break
            await asyncio.sleep(0)  # a message that is there already lets nobody else have a turn

    def _take_in(self, sender: bytes | None, origin: Origin, frame: bytes | None) -> None:
        try:
            message = Message.decode(frame or b"")
        except RemoteProtocolError:
            self._dropped += 1
            return
        is_broadcast = sender is None
        if is_broadcast != (message.dest == wire.ALL):
            self._dropped += 1  # who broadcasts in others' names has to be listened to for it
            return
        now = self._loop.time()
        if message.type == wire.REPLY and self.requests.awaits(message):
            self.membership.heard(message.src, now, origin)
            if not self.requests.received(message):
                self.membership.unknown_to(message.src)
        elif message.type.startswith(wire.INTERNAL):
            self.membership.received(message, now, origin)
        elif self.membership.has_left:
            pass  # it hears nothing
        elif self.membership.heard(message.src, now, origin, is_broadcast=is_broadcast) is not None:
            self._service.received(message, now)
        elif (refusal := self._service.refusal(message)) is not None:
            self._sockets.answer(sender, refusal)
        self._act(sender)
