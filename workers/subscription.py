"""A connection's subscriptions to topics, and the values on their way to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skywalker.errors import Busy
from skywalker.limits import WAITING_CALL_BYTES
from skywalker.line import Call, Subscriber
from workers import figures
from workers.calls import ClientCall
from workers.node_call import NodeCall

if TYPE_CHECKING:
    from workers.connection import Connection
    from workers.router import Router

SUBSCRIBED: Final = figures.WAITING.at + figures.KINDS.index("subscription")


class Subscription(Subscriber):
    """One of them. It stands in the junction once it is in effect where its topic is owned."""

    __slots__ = ("connection", "done", "head", "key", "size", "typed")

    def begin_for(self, connection: Connection, key: bytes, typed: bool) -> None:
        """Set up what it has besides begin(). A `typed` one gets what was published with its hint and flags."""
        self.audience = 1
        self.connection = connection
        self.key = key  # what its connection calls it
        self.typed = typed
        self.done = False  # it is in effect
        self.head = b""  # what its messages began with that were `size` bytes long
        self.size = 0

    def cost(self) -> int:
        """Return the bytes of memory that are counted for it."""
        return WAITING_CALL_BYTES + len(self.topic)

    def ask(self) -> None:
        """Have it come into effect; its connection is told then."""
        self.connection.router.feeds.change(self.topic, 1, self)

    def give(self, send: Call) -> bool:
        assert isinstance(send, NodeCall)
        connection = self.connection
        if connection.gone or connection.is_flooded():
            return False
        if send.answered:
            connection.tell(self, send)
            return False
        chunk = connection.worded(self, send)
        if not chunk:
            return False
        delivery = Delivery.__new__(Delivery)
        delivery.begin(self.topic, send.since, None, None)
        delivery.begin_for(connection, self.key, b"", 0.0)
        delivery.begin_as(send, chunk)
        send.given_here(delivery)
        connection.push_delivery(delivery)
        return True

    def in_effect(self) -> None:
        """Whatever comes to the topic from now on comes here."""
        self.done = True
        connection = self.connection
        if not connection.gone:
            connection.subscribed(self)
        if not connection.gone:
            connection.router.feeds.stand(self)

    def cut_off(self) -> None:
        """Values for it were dropped on their way here: its connection, which cannot know, is to be closed."""
        self.connection.cut_off("mesh_bytes", "the worker that has a topic of it cannot reach this one fast enough")


class Unsubscribing:
    """The end of a subscription; `key` is what its connection calls that.

    Values go on coming until it is in effect where the topic is owned: what was handed out there before is on its way.
    """

    def __init__(self, connection: Connection, key: bytes, subscription: Subscription | None) -> None:
        self.connection = connection
        self.key = key
        self.done = False
        self._subscription = subscription  # None if there is none to end

    def ask(self) -> None:
        """Have it come into effect; the connection is told then."""
        if self._subscription is None:
            self.in_effect()
        else:
            self.connection.router.feeds.change(self._subscription.topic, -1, self)

    def in_effect(self) -> None:
        """Nothing more comes."""
        self.done = True
        connection = self.connection
        if self._subscription is not None:
            connection.router.feeds.leave(self._subscription)
        if not connection.gone:
            connection.unsubscribed(self)


class Delivery(ClientCall):
    """A value on its way to a subscription, whose sender waits to know whether it arrives."""

    __slots__ = ("is_late",)

    def begin_as(self, send: NodeCall, chunk: bytes) -> None:
        """Set up what it has besides begin() and begin_for(): the value of that send, in this message."""
        self.given = send
        self.chunk = chunk
        self.is_late = False  # it is to be written behind something that is waited for

    def note(self, outcome: int) -> None:
        pass  # it is no call: the send is

    def taken_back(self) -> None:
        pass  # the subscription listens anyway


class Subscriptions:
    """All of one connection, by what it calls them."""

    __slots__ = ("_by_key", "_router")

    def __init__(self, router: Router) -> None:
        self._router = router
        self._by_key: dict[bytes, Subscription] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: bytes) -> Subscription | None:
        """Return one."""
        return self._by_key.get(key)

    def add(self, connection: Connection, key: bytes, topic: bytes, typed: bool) -> Subscription:
        """Return a new one, which is still to be asked for. Raises Busy if there is no room for it."""
        router = self._router
        limit = router.limits.max_calls
        if len(self._by_key) >= limit:
            raise Busy(f"this connection has {limit} subscriptions, max_calls", {"limit": "max_calls", "value": limit})
        account = connection.account
        if account is not None:
            account.admit()
        subscription = Subscription.__new__(Subscription)
        subscription.begin(topic, router.turn.now, None, None)
        subscription.begin_for(connection, key, typed)
        router.admit(subscription.cost())
        router.bytes_held += subscription.cost()
        router.tally.memory[SUBSCRIBED] += 1
        if account is not None:
            account.in_flight += 1
        self._by_key[key] = subscription
        return subscription

    def remove(self, key: bytes) -> Subscription | None:
        """Take out one that is to end; None if there is none of that name."""
        subscription = self._by_key.pop(key, None)
        if subscription is not None:
            self._router.bytes_held -= subscription.cost()
            self._router.tally.memory[SUBSCRIBED] -= 1
            account = subscription.connection.account
            if account is not None:
                account.in_flight -= 1
        return subscription

    def end_all(self) -> None:
        """The connection is gone."""
        router = self._router
        for key in [*self._by_key]:
            subscription = self.remove(key)
            assert subscription is not None, "it is there"
            router.feeds.leave(subscription)
            router.feeds.change(subscription.topic, -1, None)
