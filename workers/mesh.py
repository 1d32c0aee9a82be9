"""The link to one sibling worker: calls whose topic the other side owns, and values for each other's clients.

A message is a tuple: a Kind, the number that the asking side gave to the call, and what the
kind needs. All that one turn has to say goes in one packet, as a rule.

    to the owner of the topic                       to the worker of the caller
      SEND no since topic value                       GIVE [no, ...] value   for these listeners
      LISTEN no since topic group-or-nil              MET no              a send has been taken
      WITHDRAW no final unless it met somebody        WITHDRAWN no        it had met nobody
      TOOK no           the listener has its value    BUSY no             no room for it to wait
      LOST no           the listener is gone          COUNTED no info
      CENSUS no topic                                 RECALL no           unless its client has the value

A link ends with either worker. What the owner held for the other is gone then, as its
clients are; what waited at the owner is issued again to its successor.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from skywalker.errors import Busy
from skywalker.limits import MAX_FRAME
from workers.calls import CensusCall, ClientCall, NodeCall
from workers.held import HeldCall, Offer
from workers.loop import READ, WRITE
from workers.packets import Kind, Message, Packets

if TYPE_CHECKING:
    from workers.router import Router

PACKETS_PER_TURN: Final = 16

NUMBER_BYTES: Final = 9
"""Bytes of a call's number in a packet, at most."""


class Link:
    """Our end of the link to the worker in `slot`."""

    def __init__(self, slot: int, sock: socket.socket, router: Router) -> None:
        self.slot = slot
        self.router = router
        self.closed = False
        self._packets = Packets(sock)
        self._numbers = itertools.count(1)
        # What we asked of the sibling, by our number.
        self._asked: dict[int, ClientCall] = {}
        self._censuses: dict[int, CensusCall] = {}
        # What it asked of us, by its number: calls that wait here, and values given to its listeners.
        self._held: dict[int, HeldCall] = {}
        self._given: dict[int, NodeCall] = {}
        self._parked: dict[HeldCall, None] = {}  # those that a value came for while there was no room
        self._offered: dict[int, ClientCall] = {}  # listeners of ours, by our number, with a value and no outcome yet
        self._giving: tuple[NodeCall, Message] | None = None  # the latest GIVE, while more listeners may be added
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
            Kind.RECALL: self._on_recall,
        }

    def open(self) -> None:
        """Read from now on."""
        self.router.loop.add(self._packets.fileno(), self)

    # What our clients ask of topics the sibling owns.

    def forward(self, call: ClientCall) -> None:
        """Issue a call of ours to the sibling."""
        call.link = self
        call.number = next(self._numbers)
        self._asked[call.number] = call
        number, since, topic = call.number, call.since, call.topic
        if call.value is None:
            self.tell(Kind.LISTEN, number, since, topic, call.group, size=len(topic))
        else:
            self.tell(Kind.SEND, number, since, topic, call.value, size=len(topic) + len(call.value))

    def ask_back(self, call: ClientCall) -> None:
        """Ask the owner whether a call can end without having met anybody; its word decides."""
        self.tell(Kind.WITHDRAW, call.number, False)

    def withdraw(self, call: ClientCall) -> None:
        """Take a call back, whatever the owner may say of it from now on."""
        del self._asked[call.number]
        call.link = None
        self.tell(Kind.WITHDRAW, call.number, True)

    def ask_census(self, call: CensusCall, topic: bytes) -> None:
        """Ask who waits on a topic of the sibling's."""
        call.link = self
        call.number = next(self._numbers)
        self._censuses[call.number] = call
        self.tell(Kind.CENSUS, call.number, topic, size=len(topic))

    def forget_census(self, call: CensusCall) -> None:
        """Do not wait for that any more."""
        del self._censuses[call.number]

    def _on_give(self, numbers: Sequence[int], value: bytes) -> None:
        for number in numbers:
            self._give_to_ours(number, value)

    def _give_to_ours(self, number: int, value: bytes) -> None:
        call = self._asked.pop(number, None)
        if call is not None:
            call.link = None
            offer = Offer(self, number, call.topic, self.router.now, value)
            if call.give(offer):
                offer.offers += 1
                offer.value = b""  # the reply has it
                self._offered[number] = call
                return
        self.tell(Kind.LOST, number)

    def _on_recall(self, number: int) -> None:
        call = self._offered.get(number)
        if call is not None and call.offered is not None:
            call.offered.abandoned = True
            call.caller.take_back(call)

    def decided(self, number: int, outcome: Kind) -> None:
        """Say what became of a value that came for one of our clients."""
        del self._offered[number]
        self.tell(outcome, number)

    def _on_met(self, number: int) -> None:
        call = self._asked.pop(number, None)
        if call is not None:
            call.link = None
            call.answered = True
            call.met()

    def _on_withdrawn(self, number: int) -> None:
        call = self._asked.pop(number, None)
        if call is not None:
            call.link = None
            call.over()

    def _on_busy(self, number: int) -> None:
        call = self._asked.pop(number, None)
        if call is not None:
            call.link = None
            call.fail(Busy("no room for more calls at the worker that owns the topic", {"limit": "waiting_bytes"}))

    def _on_counted(self, number: int, info: bytes) -> None:
        call = self._censuses.pop(number, None)
        if call is not None:
            call.answer(info)

    # What the sibling's clients ask of topics we own.

    def _on_send(self, number: int, since: float, topic: bytes, value: bytes) -> None:
        self._issue(HeldCall(self, number, topic, since, value, None))

    def _on_listen(self, number: int, since: float, topic: bytes, group: bytes | None) -> None:
        self._issue(HeldCall(self, number, topic, since, None, group))

    def _issue(self, call: HeldCall) -> None:
        try:
            self.router.admit(call.cost())
        except Busy:
            self.tell(Kind.BUSY, call.number)
            return
        self._held[call.number] = call
        self.router.bytes_held += call.cost()
        self._meet(call)

    def _meet(self, call: HeldCall) -> None:
        if not call.meet(self.router.junction):
            self.router.junction.wait(call)

    def let_go(self, call: HeldCall) -> None:
        """Forget a call of the sibling's that was answered."""
        del self._held[call.number]
        self.router.bytes_held -= call.cost()

    def give(self, listener: HeldCall, send: NodeCall) -> bool:
        """Give a value to a listener at the sibling; it says later whether the client got it."""
        if self.closed:
            return False
        if self.congested():
            self._parked[listener] = None
            return False
        self.let_go(listener)
        self._given[listener.number] = send
        send.hold()
        if send.abroad is None:
            send.abroad = []
        send.abroad.append(listener)
        self._tell_value(listener.number, send)
        return True

    def _tell_value(self, number: int, send: NodeCall) -> None:
        """Give a value to one more listener; a value that many get at once crosses once."""
        if self._giving is not None:
            given, message = self._giving
            if given is send and self._packets.is_last(message):
                message[1].append(number)
                self._packets.grow(NUMBER_BYTES)
                return
        assert send.value is not None
        message = self.tell(Kind.GIVE, [number], send.value, size=len(send.value))
        self._giving = (send, message)

    def _on_withdraw(self, number: int, final: bool) -> None:
        call = self._held.get(number)
        if call is None:
            return  # a value for it, or a word about it, is on its way
        if self.router.junction.withdraw(call) or call in self._parked:
            self._parked.pop(call, None)
            self.let_go(call)
            self.tell(Kind.WITHDRAWN, number)
        elif final:
            self.let_go(call)
            call.abandon()
        else:
            call.withdrawing = True

    def recall(self, listener: HeldCall) -> None:
        """Take back a value that was given to a listener at the sibling, if it is not too late."""
        if listener.number in self._given:
            self.tell(Kind.RECALL, listener.number)

    def _on_took(self, number: int) -> None:
        send = self._given.pop(number, None)
        if send is not None:
            self.router.junction.confirm(send)

    def _on_lost(self, number: int) -> None:
        send = self._given.pop(number, None)
        if send is not None:
            self.router.junction.lost(send)

    def _on_census(self, number: int, topic: bytes) -> None:
        info = self.router.info(topic)[: MAX_FRAME + 1]  # enough to refuse it: a packet does not hold any length
        self.tell(Kind.COUNTED, number, info, size=len(info))

    # The socket.

    def congested(self) -> bool:
        """Return whether the sibling is so far behind that it is asked nothing new."""
        return self._packets.unsent > self.router.limits.mesh_bytes

    def tell(self, kind: Kind, *rest: Any, size: int = 0) -> Message:
        """Say something at the end of this turn, and return it; `size` is that of its topic and value in bytes."""
        message: Message = (kind, *rest)
        if not self.closed:
            if self._packets.is_settled():
                self.router.batches.append(self)
            self._packets.add(message, size)
        return message

    def flush(self) -> None:
        """Write what the kernel takes; never waits."""
        if self.closed:
            return
        self._giving = None
        self._packets.flush()
        self._wait_to_write(not self._packets.is_settled())
        if self._parked and not self.congested():
            parked, self._parked = self._parked, {}
            for listener in parked:
                self._meet(listener)

    def _wait_to_write(self, wanted: bool) -> None:
        if self._waits_to_write != wanted:
            self._waits_to_write = wanted
            self.router.loop.change(self._packets.fileno(), READ | WRITE if wanted else READ)

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
            messages = self._packets.read()
        except BlockingIOError:
            return False
        except EOFError:
            self._close()
            return False
        for kind, *rest in messages:
            self._handlers[kind](*rest)
        return True

    def _close(self) -> None:
        """The sibling is dead."""
        router = self.router
        self.closed = True
        router.loop.remove(self._packets.fileno())
        self._packets.close()
        for held in self._held.values():
            router.junction.withdraw(held)
            router.bytes_held -= held.cost()
            held.abandon()
        self._held.clear()
        self._parked.clear()
        router.disconnected(self)
        given, self._given = self._given, {}
        for send in given.values():
            router.junction.lost(send)
        for census in [*self._censuses.values()]:
            router.deadlines.discard(census, census.due)
            census.expired()
        asked, self._asked = self._asked, {}
        for call in asked.values():
            call.link = None
            if call.ending is None:
                router.issue(call)
            else:
                call.over()
