"""What clients of workers are to be told: whatever they say, in either dialect, is about one junction in process.

What one says is dealt with before the next one speaks, and whoever is told something has it. No id is used twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from skywalker import junction
from skywalker.clients.requests import elements_of
from skywalker.wire import junction as wire
from skywalker.wire import pubsub, values
from tests.workers.core.claims import as_payload

CANCELLED: Final = b"cancelled"
UNKNOWN_OUTCOME: Final = b"unknown-outcome"


class Client:
    """One of them, and what it has to do with others."""

    def __init__(self, acks: bool, speaks_pubsub: bool) -> None:
        self.acks = acks
        self.speaks_pubsub = speaks_pubsub
        self.waiting: dict[bytes, Call] = {}
        self.unacked: dict[bytes, junction.Call] = {}  # whose values it got, by the ids of the calls that got them
        self.subscriptions: dict[bytes, Subscription] = {}  # by id; of pub/sub by topic
        self.told: defaultdict[bytes, list[bytes]] = defaultdict(list)  # by id; of pub/sub all by the empty one

    def is_told(self, id: bytes, words: bytes) -> None:
        self.told[id].append(words)


class Subscription(junction.Subscriber):
    """A subscription, and how its client is told of a value."""

    def __init__(self, oracle: Oracle, topic: bytes, tell: Callable[[bytes], None]) -> None:
        super().__init__(topic, oracle.now, None, None)
        self.audience = 1
        self.oracle = oracle
        self.tell = tell

    def give(self, send: junction.Call) -> bool:
        assert send.value is not None
        self.tell(send.value)
        if not send.answered:
            self.oracle.taken.append(send)
        return not send.answered


class Call(junction.Call):
    """A call that waits: to meet somebody, or as a will."""

    def __init__(
        self, oracle: Oracle, client: Client, method: bytes, id: bytes, ms: bytes, topic: bytes,
        value: bytes | None = None, group: bytes | None = None,
    ) -> None:  # fmt: skip
        super().__init__(topic, oracle.now, value, group)
        self.oracle = oracle
        self.client = client
        self.method = method
        self.id = id
        self.deadline = oracle.now + values.unpack(ms) / 1000
        self.cancelled_by: bytes | None = None
        client.waiting[id] = self

    def give(self, send: junction.Call) -> bool:
        assert send.value is not None
        self.end(send.value)
        if self.client.acks:
            self.client.unacked[self.id] = send
        else:
            self.oracle.taken.append(send)
        return True

    def met(self) -> None:
        self.end(wire.TRUE)

    def missed(self) -> None:
        if self.cancelled_by is None:
            self.oracle.junction.resume(self)
        else:
            self.give_up()

    def give_up(self) -> None:
        """End, as it is cancelled or its time is over, and nobody has said so far that they have its value."""
        self.oracle.junction.withdraw(self)
        self.answered = True
        if self.offers or self in self.oracle.doubted:
            self.end(UNKNOWN_OUTCOME)
        else:
            self.end(wire.TIMED_OUT if self.cancelled_by is None else CANCELLED)

    def end(self, result: bytes) -> None:
        del self.client.waiting[self.id]
        self.client.is_told(self.id, self.method + result)
        if self.cancelled_by is not None:
            self.client.is_told(self.cancelled_by, wire.CANCEL + (wire.TRUE if result is CANCELLED else wire.FALSE))


class Oracle:
    """What there is of clients, where their calls meet, and what time it is."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.junction = junction.Junction()
        self.clients: list[Client] = []
        self.taken: list[junction.Call] = []  # whose values were just given to those who surely have them
        self.doubted: set[junction.Call] = set()  # whose values somebody may have had who has left

    def connect(self, acks: bool, speaks_pubsub: bool) -> Client:
        self.clients.append(Client(acks, speaks_pubsub))
        return self.clients[-1]

    def leave(self, client: Client) -> None:
        self.clients.remove(client)
        for id in [*client.subscriptions]:
            self._unsubscribe(client, id)
        for call in client.waiting.values():
            self.junction.withdraw(call)
            call.answered = True
        for call in client.waiting.values():
            if call.method == wire.WILL:
                self.junction.publish(call)
        self.doubted.update(client.unacked.values())
        for send in client.unacked.values():
            self.junction.lost(send)
        self._confirm()

    def pass_until(self, now: float) -> None:
        self.now = now
        for client in self.clients:
            for call in [*client.waiting.values()]:
                if call.deadline <= now:
                    call.give_up()

    def hear(self, client: Client, said: bytes) -> None:
        """Do what a client says, which is one thing."""
        if client.speaks_pubsub:
            ((code, topic, _, payload, _),), _ = pubsub.split(said)
            self._obey(client, code, topic, payload)
        else:
            method, id, *arguments = elements_of(said)
            self._answer(client, method, id, arguments)
        self._confirm()

    def _confirm(self) -> None:
        while self.taken:
            self.junction.confirm(self.taken.pop())

    def _obey(self, client: Client, code: int, topic: bytes, payload: bytes) -> None:
        def tell(value: bytes) -> None:
            client.is_told(b"", pubsub.publish(topic, as_payload(value)))

        client.is_told(b"", pubsub.ACKED)
        on_the_bus = pubsub.bus_topic(topic)
        if code == pubsub.PUBLISH:
            self.junction.publish(junction.Call(on_the_bus, self.now, pubsub.bus_value(payload), None))
        elif code == pubsub.UNSUBSCRIBE:
            self._unsubscribe(client, topic)
        elif topic not in client.subscriptions:
            self._subscribe(client, topic, on_the_bus, tell)

    def _answer(self, client: Client, method: bytes, id: bytes, arguments: list[bytes]) -> None:
        answer: bytes | None = None
        match method, arguments:
            case wire.WILL, [ms, topic, value]:
                Call(self, client, method, id, ms, topic, value)
            case wire.SEND, [ms, topic, value]:
                self._meet(Call(self, client, method, id, ms, topic, value), self.junction.send)
            case wire.RECV, [ms, topic]:
                self._meet(Call(self, client, method, id, ms, topic), self.junction.listen)
            case wire.TAKE, [ms, topic, group]:
                self._meet(Call(self, client, method, id, ms, topic, group=group), self.junction.listen)
            case wire.ACK, []:
                if id in client.unacked:
                    self.junction.confirm(client.unacked.pop(id))
            case wire.CANCEL, [which]:
                if not self._cancel(client, id, which):
                    answer = wire.FALSE
            case wire.SUBSCRIBE, [topic]:
                client.is_told(id, method + wire.TRUE)
                self._subscribe(client, id, topic, lambda value: client.is_told(id, wire.MESSAGE + value))
            case wire.UNSUBSCRIBE, [which]:
                answer = wire.TRUE if self._unsubscribe(client, which) else wire.FALSE
            case wire.TOPIC, [topic]:
                answer = self._census(topic)
            case _:
                answer = wire.TRUE
        if answer is not None:
            client.is_told(id, method + answer)

    def _meet(self, call: Call, meets: Callable[[junction.Call], bool]) -> None:
        if not meets(call):
            self.junction.wait(call)
            if call.deadline <= self.now:
                call.give_up()

    def _cancel(self, client: Client, by: bytes, id: bytes) -> bool:
        """Cancel a call, whose end tells what came of that; False if none waits, though what it was given goes back."""
        call = client.waiting.get(id)
        if call is not None and call.cancelled_by is None:
            call.cancelled_by = by
            if not call.offers:
                call.give_up()
            return True
        if id in client.unacked:
            self.junction.lost(client.unacked.pop(id))
        return False

    def _subscribe(self, client: Client, id: bytes, topic: bytes, tell: Callable[[bytes], None]) -> None:
        client.subscriptions[id] = Subscription(self, topic, tell)
        self.junction.subscribe(client.subscriptions[id])

    def _unsubscribe(self, client: Client, id: bytes) -> bool:
        subscription = client.subscriptions.pop(id, None)
        if subscription is not None:
            self.junction.unsubscribe(subscription)
        return subscription is not None

    def _census(self, topic: bytes) -> bytes:
        count = self.junction.census(topic)
        age = 0.0 if count.oldest is None else self.now - count.oldest
        return wire.topic_info(count.receivers, count.takers, count.senders, count.subscribers, round(age * 1000))
