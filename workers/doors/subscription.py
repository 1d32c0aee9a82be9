"""A connection's subscriptions to topics, and the values on their way to it."""

from __future__ import annotations

from typing import Final

from skywalker.errors import Busy
from skywalker.junction import Call, Subscriber
from skywalker.limits import WAITING_CALL_BYTES
from workers.access.account import Account
from workers.calls.call import Caller, ClientCall, NodeCall
from workers.calls.states import GAVE
from workers.doors.commons import Commons
from workers.stats import metrics

SUBSCRIBED: Final = metrics.WAITING.at + metrics.KINDS.index("subscription")


class Subscribing(Caller):
    """A caller that may subscribe, as its subscriptions see it: connection.py and dialects have the rest."""

    __slots__ = ("account", "commons")

    def __init__(self, commons: Commons) -> None:
        Caller.__init__(self, commons.turn, commons.junction, commons.router, commons.standing)
        self.commons = commons
        self.account: Account | None = None  # whose it is, where that matters

    def is_flooded(self) -> bool:
        """Return whether it is given no more messages, because there were too many at once, and is to be cut off."""
        raise NotImplementedError

    def worded(self, subscription: Subscription, send: NodeCall) -> bytes:
        """Return the message that gives a value to a subscription; empty if it cannot be given."""
        raise NotImplementedError

    def tell(self, subscription: Subscription, send: NodeCall) -> None:
        """Write that message, whose sender does not wait for it."""
        raise NotImplementedError

    def push_delivery(self, delivery: Delivery) -> None:
        """Write a value that a subscription was given, and tell the junction what became of it."""
        raise NotImplementedError

    def subscribed(self, subscription: Subscription) -> None:
        """It is in effect."""
        raise NotImplementedError

    def unsubscribed(self, by: Unsubscribing) -> None:
        """A subscription has ended."""
        raise NotImplementedError

    def cut_off(self, limit: str, text: str) -> None:
        """Close a subscriber that, because of a limit, cannot be given all that it should."""
        raise NotImplementedError


class Subscription(Subscriber):
    """One of them. It stands in the junction once it is in effect where its topic is owned."""

    __slots__ = ("connection", "done", "head", "key", "size", "typed")

    def begin_for(self, connection: Subscribing, key: bytes, typed: bool) -> None:
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
        self.connection.commons.interests.change(self.topic, 1, self)

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
            connection.commons.interests.stand(self)

    def cut_off(self) -> None:
        """Values for it were dropped on their way here: its connection, which cannot know, is to be closed."""
        self.connection.cut_off("mesh_bytes", "the worker that has a topic of it cannot reach this one fast enough")


class Unsubscribing:
    """The end of a subscription; `key` is what its connection calls that.

    Values go on coming until it is in effect where the topic is owned: what was handed out there before is on its way.
    """

    def __init__(self, connection: Subscribing, key: bytes, subscription: Subscription | None) -> None:
        self.connection = connection
        self.key = key
        self.done = False
        self._subscription = subscription  # None if there is none to end

    def ask(self) -> None:
        """Have it come into effect; the connection is told then."""
        if self._subscription is None:
            self.in_effect()
        else:
            self.connection.commons.interests.change(self._subscription.topic, -1, self)

    def in_effect(self) -> None:
        """Nothing more comes."""
        self.done = True
        connection = self.connection
        if self._subscription is not None:
            connection.commons.interests.leave(self._subscription)
        if not connection.gone:
            connection.unsubscribed(self)


class Delivery(ClientCall):
    """A value on its way to a subscription, whose sender waits to know whether it arrives."""

    __slots__ = ("is_late",)

    def begin_as(self, send: NodeCall, chunk: bytes) -> None:
        """Set up what it has besides begin() and begin_for(): the value of that send, in this message."""
        self.given = send
        self.become(GAVE)
        self.chunk = chunk
        self.is_late = False  # it is to be written behind something that is waited for

    def note(self, outcome: int) -> None:
        pass  # it is no call: the send is

    def listen_again(self) -> None:
        pass  # the subscription listens anyway


class Subscriptions:
    """All of one connection, by what it calls them."""

    __slots__ = ("_by_key", "_commons")

    def __init__(self, commons: Commons) -> None:
        self._commons = commons
        self._by_key: dict[bytes, Subscription] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: bytes) -> Subscription | None:
        """Return one."""
        return self._by_key.get(key)

    def add(self, connection: Subscribing, key: bytes, topic: bytes, typed: bool) -> Subscription:
        """Return a new one, which is still to be asked for. Raises Busy if there is no room for it."""
        commons = self._commons
        limit = commons.limits.max_calls
        if len(self._by_key) >= limit:
            raise Busy(f"this connection has {limit} subscriptions, max_calls", {"limit": "max_calls", "value": limit})
        account = connection.account
        if account is not None:
            account.admit()
        subscription = Subscription.__new__(Subscription)
        subscription.begin(topic, commons.turn.now, None, None)
        subscription.begin_for(connection, key, typed)
        commons.ledger.admit(subscription.cost())
        commons.ledger.add(subscription.cost())
        commons.turn.counters.memory[SUBSCRIBED] += 1
        if account is not None:
            account.in_flight += 1
        self._by_key[key] = subscription
        return subscription

    def remove(self, key: bytes) -> Subscription | None:
        """Take out one that is to end; None if there is none of that name."""
        subscription = self._by_key.pop(key, None)
        if subscription is not None:
            self._commons.ledger.remove(subscription.cost())
            self._commons.turn.counters.memory[SUBSCRIBED] -= 1
            account = subscription.connection.account
            if account is not None:
                account.in_flight -= 1
        return subscription

    def end_all(self) -> None:
        """The connection is gone."""
        interests = self._commons.interests
        for key in [*self._by_key]:
            subscription = self.remove(key)
            assert subscription is not None, "it is there"
            interests.leave(subscription)
            interests.change(subscription.topic, -1, None)
