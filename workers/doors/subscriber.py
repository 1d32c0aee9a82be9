"""What a client subscribes to: a row in the core, which is given values once its owner has been asked for them."""

from __future__ import annotations

from typing import Protocol

from workers.core._core import Core
from workers.doors.commons import Commons


class Subscribing(Protocol):
    """Whose it is: client.py has what these do."""

    commons: Commons
    core: Core
    subscriptions: dict[bytes | Unsubscribing, Subscriber]

    @property
    def is_gone(self) -> bool: ...
    def subscribed(self, subscriber: Subscriber) -> None: ...
    def unsubscribed(self, by: Unsubscribing) -> None: ...
    def cut_off(self, limit: str, text: str) -> None: ...


class Subscriber:
    """One subscription; `key` is what its client calls it."""

    __slots__ = ("also", "client", "done", "key", "row", "topic")

    def __init__(self, client: Subscribing, key: bytes, topic: bytes, row: int) -> None:
        self.client = client
        self.key = key
        self.topic = topic
        self.row = row
        self.done = False  # it is in effect
        self.also: list[int] = []  # places of what was asked of it meanwhile

    def ask(self) -> None:
        """Have it come into effect; its client is told then."""
        self.client.commons.interests.change(self.topic, 1, self)

    def in_effect(self) -> None:
        """Whatever comes to the topic from now on comes here."""
        self.done = True
        if not self.client.is_gone:
            self.client.subscribed(self)
        if not self.client.is_gone:
            self.client.commons.interests.stand(self)

    def end(self) -> None:
        """Nothing more comes; the row is gone."""
        self.client.commons.interests.leave(self)
        self.client.core.end(self.row)

    def cut_off(self) -> None:
        """Values for it were dropped on their way here: its client, which cannot know, is to be closed."""
        self.client.cut_off("mesh_bytes", "the worker that has a topic of it cannot reach this one fast enough")


class Unsubscribing:
    """The end of one; `key` is what its client calls that.

    Values go on coming until it is in effect where the topic is owned: what was handed out there before is on its way.
    """

    __slots__ = ("_subscriber", "client", "done", "key", "was_there")

    def __init__(self, client: Subscribing, key: bytes, subscriber: Subscriber | None) -> None:
        self.client = client
        self.key = key
        self.done = False
        self.was_there = subscriber is not None
        self._subscriber = subscriber

    def ask(self) -> None:
        """Have it come into effect; the client is told then."""
        if self._subscriber is None:
            self.in_effect()
        else:
            self.client.commons.interests.change(self._subscriber.topic, -1, self)

    def in_effect(self) -> None:
        """Nothing more comes."""
        self.done = True
        if self._subscriber is not None:
            self.client.subscriptions.pop(self, None)
            self._subscriber.end()
        if not self.client.is_gone:
            self.client.unsubscribed(self)
