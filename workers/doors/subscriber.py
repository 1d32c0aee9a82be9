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
    goes: bool

    @property
    def is_gone(self) -> bool: ...
    def subscribed(self, subscriber: Subscriber) -> None: ...
    def unsubscribed(self, by: Unsubscribing) -> None: ...
    def cut_off(self, limit: str, text: str) -> None: ...


class Subscriber:
    """One subscription; `key` is what its client calls it."""

    __slots__ = ("also", "client", "done", "is_due", "is_typed", "key", "row", "split_as", "topic")

    def __init__(self, client: Subscribing, key: bytes, topic: bytes, row: int) -> None:
        self.client = client
        self.key = key
        self.topic = topic
        self.row = row
        self.done = False  # it is in effect
        self.also: list[int] = []  # places of what was asked of it meanwhile
        self.is_typed = False  # in pub/sub: it is told hints and flags
        self.split_as: tuple[int, int] | None = None  # of one that goes to another worker, as splits.py has it
        self.is_due = False  # it has gone if it is known where it goes

    def ask(self) -> None:
        """Have it come into effect; its client is told then."""
        self.client.commons.interests.change(self.topic, 1, self)

    def be_typed(self, is_typed: bool) -> None:
        """Have it be told hints and flags, or not."""
        self.is_typed = is_typed
        self.client.core.type(self.row, is_typed)

    def in_effect(self) -> None:
        """Whatever comes to the topic from now on comes here."""
        self.done = True
        if not self.client.is_gone:
            self.client.subscribed(self)
        if not self.client.is_gone:
            self.client.commons.interests.stand(self)

    # From one worker to another.

    def leaves(self) -> None:
        """Have it go; until ends_here() is called it is as ever."""
        self.client.commons.interests.leaves(self)

    def comes(self, split_as: tuple[int, int]) -> None:
        """Have it come; until begins_here() is called it is as ever where it comes from."""
        self.split_as = split_as
        self.client.commons.interests.comes(self)

    def owner_is_lost(self) -> None:
        """Its values come from another owner from now on: where it goes to, if that is sure."""
        assert self.split_as is not None, "it is on its way"
        if self.done and not self.client.goes:
            self.is_due = True
        else:
            self.client.commons.interests.splits.cut(*self.split_as)

    def ends_here(self) -> None:
        """It is the other's."""
        del self.client.subscriptions[self.key]
        self.end()
        self.client.commons.interests.change(self.topic, -1, None)

    def begins_here(self) -> None:
        """It is this one's."""
        self.moves_no_more()
        self.done = True
        self.client.commons.interests.stand(self)

    def moves_no_more(self) -> None:
        """It stays where it is."""
        if self.split_as is not None:
            self.client.commons.interests.moves_no_more(self)
            self.split_as, self.is_due = None, False

    def end(self) -> None:
        """Nothing more comes; the row is gone."""
        self.moves_no_more()
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
