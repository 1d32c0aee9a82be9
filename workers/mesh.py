"""The link to one sibling worker: calls whose topic the other side owns, and values for each other's clients.

A packet is a MessagePack array of messages, all that one turn had to say. A message is an
array too: a Kind, the number that the asking side gave to the call, and what the kind needs.

    to the owner of the topic                       to the worker of the caller
      SEND no since topic value                       GIVE no value       for a listener
      LISTEN no since topic group-or-nil              MET no              a send has been taken
      WITHDRAW no       unless it met somebody        WITHDRAWN no        it had met nobody
      TOOK no           the listener has its value    BUSY no             no room for it to wait
      LOST no           the listener is gone          COUNTED no info
      CENSUS no topic

A link ends with either worker. What the owner held for the other is gone then, as its
clients are; what waited at the owner is issued again to its successor.
"""

from __future__ import annotations

import enum
import itertools
import socket
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgpack

from skywalker.errors import Busy
from skywalker.junction import Listener, Send
from skywalker.limits import WAITING_CALL_BYTES
from workers.calls import CensusCall, ClientCall, ClientListener, ClientSend, NodeSend
from workers.loop import READ, WRITE

if TYPE_CHECKING:
    from workers.router import Router

PACKET_BYTES: Final = 64 * 1024
"""Bytes of messages after which a packet is full. One more message of any size still goes into a packet."""

MAX_PACKET_BYTES: Final = 256 * 1024
"""Bytes to read a packet with: more than the longest, since the rest of a longer one would be lost."""

PACKETS_PER_TURN: Final = 16

MESSAGE_BYTES: Final = 24
"""Bytes counted for a message besides its topic and value."""


class Kind(enum.IntEnum):
    """What a message says."""

    SEND = 1
    LISTEN = 2
    WITHDRAW = 3
    TOOK = 4
    LOST = 5
    CENSUS = 6
    GIVE = 7
    MET = 8
    WITHDRAWN = 9
    BUSY = 10
    COUNTED = 11


class HeldSend(NodeSend):
    """A send of a sibling's client that waits here, where its topic is owned. The sibling runs its clock."""

    __slots__ = ("link", "number", "withdrawing")

    def __init__(self, link: Link, number: int, topic: bytes, since: float, value: bytes) -> None:
        super().__init__(topic, since, value)
        self.link = link
        self.number = number
        self.withdrawing = False  # its caller's time is over: if it meets nobody now, it ends

    def met(self) -> None:
        self.link.let_go(self)
        self.link.tell(Kind.MET, self.number)

    def missed(self) -> None:
        if self.withdrawing:
            self.answered = self.abandoned = True
            self.link.let_go(self)
            self.link.tell(Kind.WITHDRAWN, self.number)
        else:
            self.link.router.junction.resume(self)


class HeldListener(Listener):
    """A listening call of a sibling's client that waits here."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link, number: int, topic: bytes, since: float, group: bytes | None) -> None:
        super().__init__(topic, since, group)
        self.link = link
        self.number = number

    def give(self, send: Send) -> bool:
        assert isinstance(send, NodeSend)
        return self.link.give(self, send)


class Offer(NodeSend):
    """A value that the owner of its topic offers to a listening client of ours."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link, number: int, topic: bytes, since: float, value: bytes) -> None:
        super().__init__(topic, since, value)
        self.link = link
        self.number = number

    def met(self) -> None:
        self.link.tell(Kind.TOOK, self.number)

    def missed(self) -> None:
        self.answered = True
        self.link.tell(Kind.LOST, self.number)


class Link:
    """Our end of the link to the worker in `slot`."""

    def __init__(self, slot: int, sock: socket.socket, router: Router) -> None:
        self.slot = slot
        self.router = router
        self.closed = False
        self._socket = sock
        self._numbers = itertools.count(1)
        # What we asked of the sibling, by our number.
        self._asked: dict[int, ClientCall | CensusCall] = {}
        # What it asked of us, by its number: calls that wait here, and values given to its listeners.
        self._held: dict[int, HeldSend | HeldListener] = {}
        self._given: dict[int, NodeSend] = {}
        self._parked: dict[HeldListener, None] = {}  # those that a value came for while there was no room
        self._batch: list[tuple[Any, ...]] = []
        self._batch_bytes = 0
        self._packets: deque[bytes] = deque()
        self._packet_bytes = 0
        self._waits_to_write = False
        self._handlers: dict[int, Any] = {
            Kind.SEND: self._on_send,
            Kind.LISTEN: self._on_listen,
            Kind.WITHDRAW: self._on_withdraw,
            Kind.TOOK: self._on_took,
            Kind.LOST: self._on_lost,
            Kind.CENSUS: self._on_census,
            Kind.GIVE: self._on_give,
            Kind.MET: self._on_met,
            Kind.WITHDRAWN: self._on_withdrawn,
            Kind.BUSY: self._on_busy,
            Kind.COUNTED: self._on_counted,
        }

    def open(self) -> None:
        """Read from now on."""
        self.router.loop.add(self._socket.fileno(), self)

    # What our clients ask of topics the sibling owns.

    def forward(self, call: ClientCall) -> None:
        """Issue a call of ours to the sibling."""
        call.link = self
        call.number = next(self._numbers)
        self._asked[call.number] = call
        number, since, topic = call.number, call.since, call.topic
        if isinstance(call, ClientSend):
            self.tell(Kind.SEND, number, since, topic, call.value, size=len(topic) + len(call.value))
        elif isinstance(call, ClientListener):
            self.tell(Kind.LISTEN, number, since, topic, call.group, size=len(topic))

    def ask_back(self, call: ClientCall) -> None:
        """Ask the owner whether a call can end without having met anybody; its word decides."""
        self.tell(Kind.WITHDRAW, call.number)

    def withdraw(self, call: ClientCall) -> None:
        """Take a call back, whatever the owner may say of it from now on."""
        del self._asked[call.number]
        call.link = None
        self.tell(Kind.WITHDRAW, call.number)

    def ask_census(self, call: CensusCall, topic: bytes) -> None:
        """Ask who waits on a topic of the sibling's."""
        number = next(self._numbers)
        self._asked[number] = call
        self.tell(Kind.CENSUS, number, topic, size=len(topic))

    def _on_give(self, number: int, value: bytes) -> None:
        call = self._asked.pop(number, None)
        if isinstance(call, ClientListener):
            call.link = None
            offer = Offer(self, number, call.topic, self.router.now, value)
            if call.give(offer):
                offer.offers += 1
                return
        self.tell(Kind.LOST, number)

    def _on_met(self, number: int) -> None:
        call = self._asked.pop(number, None)
        if isinstance(call, ClientSend):
            call.link = None
            call.answered = True
            call.met()

    def _on_withdrawn(self, number: int) -> None:
        call = self._asked.pop(number, None)
        if isinstance(call, ClientCall):
            call.link = None
            call.over()

    def _on_busy(self, number: int) -> None:
        call = self._asked.pop(number, None)
        if isinstance(call, ClientCall):
            call.link = None
            call.fail(Busy("no room for more calls at the worker that owns the topic", {"limit": "waiting_bytes"}))

    def _on_counted(self, number: int, info: bytes) -> None:
        call = self._asked.pop(number, None)
        if isinstance(call, CensusCall):
            call.answer(info)

    # What the sibling's clients ask of topics we own.

    def _on_send(self, number: int, since: float, topic: bytes, value: bytes) -> None:
        send = HeldSend(self, number, topic, since, value)
        junction = self.router.junction
        if self._hold(send) and not junction.send(send):
            junction.wait(send)

    def _on_listen(self, number: int, since: float, topic: bytes, group: bytes | None) -> None:
        listener = HeldListener(self, number, topic, since, group)
        if self._hold(listener):
            self._listen(listener)

    def _listen(self, listener: HeldListener) -> None:
        junction = self.router.junction
        if not junction.listen(listener):
            junction.wait(listener)

    def _hold(self, waiter: HeldSend | HeldListener) -> bool:
        try:
            self.router.admit(_cost(waiter))
        except Busy:
            self.tell(Kind.BUSY, waiter.number)
            return False
        self._held[waiter.number] = waiter
        self.router.bytes_held += _cost(waiter)
        return True

    def let_go(self, waiter: HeldSend | HeldListener) -> None:
        """Forget a call of the sibling's that was answered."""
        del self._held[waiter.number]
        self.router.bytes_held -= _cost(waiter)

    def give(self, listener: HeldListener, send: NodeSend) -> bool:
        """Give a value to a listener at the sibling; it says later whether the client got it."""
        if self.closed:
            return False
        if self.congested():
            self._parked[listener] = None
            return False
        self.let_go(listener)
        self._given[listener.number] = send
        send.hold()
        self.tell(Kind.GIVE, listener.number, send.value, size=len(send.value))
        return True

    def _on_withdraw(self, number: int) -> None:
        waiter = self._held.get(number)
        if waiter is None:
            return  # a value for it, or a word about it, is on its way
        if self.router.junction.withdraw(waiter) or waiter in self._parked:
            self._parked.pop(waiter, None)  # type: ignore[arg-type]  # a send is never there
            self.let_go(waiter)
            self.tell(Kind.WITHDRAWN, number)
        elif isinstance(waiter, HeldSend):
            waiter.withdrawing = True

    def _on_took(self, number: int) -> None:
        send = self._given.pop(number, None)
        if send is not None:
            self.router.junction.confirm(send)

    def _on_lost(self, number: int) -> None:
        send = self._given.pop(number, None)
        if send is not None:
            self.router.junction.lost(send)

    def _on_census(self, number: int, topic: bytes) -> None:
        info = self.router.info(topic)
        self.tell(Kind.COUNTED, number, info, size=len(info))

    # Packets.

    def congested(self) -> bool:
        """Return whether the sibling is so far behind that it is asked nothing new."""
        return self._packet_bytes + self._batch_bytes > self.router.limits.mesh_bytes

    def tell(self, *message: Any, size: int = 0) -> None:
        """Say something at the end of this turn; `size` is that of its topic and value in bytes."""
        if not self._batch:
            self.router.batches.append(self)
        self._batch.append(message)
        self._batch_bytes += MESSAGE_BYTES + size
        if self._batch_bytes >= PACKET_BYTES:
            self._seal()

    def _seal(self) -> None:
        packet = msgpack.packb(self._batch)
        self._packets.append(packet)
        self._packet_bytes += len(packet)
        self._batch, self._batch_bytes = [], 0

    def flush(self) -> None:
        """Write what the kernel takes; never waits."""
        if self.closed:
            return
        if self._batch:
            self._seal()
        packets = self._packets
        try:
            while packets:
                self._socket.send(packets[0])
                self._packet_bytes -= len(packets.popleft())
        except BlockingIOError:
            pass
        except OSError:
            # The sibling is dead. What it said before is still to be read, and then its end.
            packets.clear()
            self._packet_bytes = 0
        if self._waits_to_write != bool(packets):
            self._waits_to_write = bool(packets)
            self.router.loop.change(self._socket.fileno(), READ | WRITE if packets else READ)
        if self._parked and not self.congested():
            parked, self._parked = self._parked, {}
            for listener in parked:
                self._listen(listener)

    def ready(self, events: int) -> None:
        """Read what the sibling says, and write on."""
        if events & WRITE:
            self.flush()
        for _ in range(PACKETS_PER_TURN):
            if not self._read():
                return

    def read_to_the_end(self) -> None:
        """Take in all that a dead sibling still said."""
        while self._read():
            pass

    def _read(self) -> bool:
        """Take in one packet. Returns False if there is none now, or never will be."""
        if self.closed:
            return False
        try:
            packet = self._socket.recv(MAX_PACKET_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True  # it died with packets of ours unread; its own are still here
        if not packet:
            self._close()
            return False
        for kind, *rest in msgpack.unpackb(packet, use_list=False):
            self._handlers[kind](*rest)
        return True

    def _close(self) -> None:
        """The sibling is dead."""
        router = self.router
        self.closed = True
        router.loop.remove(self._socket.fileno())
        self._socket.close()
        for waiter in self._held.values():
            router.junction.withdraw(waiter)
            if isinstance(waiter, HeldSend):
                waiter.answered = waiter.abandoned = True
            router.bytes_held -= _cost(waiter)
        self._held.clear()
        self._parked.clear()
        router.disconnected(self)
        given, self._given = self._given, {}
        for send in given.values():
            router.junction.lost(send)
        asked, self._asked = self._asked, {}
        for call in asked.values():
            if isinstance(call, CensusCall):
                router.deadlines.discard(call, call.due)
                call.expired()
                continue
            call.link = None
            if call.ending is None:
                router.issue(call)
            else:
                call.over()


def _cost(waiter: HeldSend | HeldListener) -> int:
    value = len(waiter.value) if isinstance(waiter, HeldSend) else 0
    return WAITING_CALL_BYTES + len(waiter.topic) + value
