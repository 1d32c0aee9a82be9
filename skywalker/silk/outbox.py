"""What the pure parts of Silk want done: actions, in an outbox until taken, and what a node says as part of that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from skywalker.silk.events import Event
from skywalker.silk.info import NodeInfo
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message


@dataclasses.dataclass(frozen=True, slots=True)
class Send:
    """Send a message to whoever is at an endpoint."""

    endpoint: str
    message: Message


@dataclasses.dataclass(frozen=True, slots=True)
class _Message:
    """What is done with a message."""

    message: Message


class Answer(_Message):
    """Send a message back the way on which the one in hand has come: its sender's endpoint is not known."""


class Broadcast(_Message):
    """Send a message to all who listen."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Endpoint:
    """What is done, or so, at an endpoint."""

    endpoint: str


class Listen(_Endpoint):
    """Listen to what is broadcast at an endpoint."""


class Ignore(_Endpoint):
    """Listen there no more."""


class Part(_Endpoint):
    """Send no more to an endpoint; what is still on its way there is given up."""


class Reached(_Endpoint):
    """Somebody has answered at an endpoint that the node was to join at."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """Whoever is at an endpoint that the node was to join at does not let it in."""

    endpoint: str
    reason: str


Action = Send | Answer | Broadcast | Listen | Ignore | Part | Reached | Refused | Event


class Outbox:
    """Actions of the node `me`, until they are taken out. `new_id` returns an id for each message."""

    def __init__(self, me: NodeInfo, new_id: Callable[[], str]) -> None:
        self.me = me
        self._new_id = new_id
        self._actions: list[Action] = []

    def take(self) -> list[Action]:
        """Return what is to be done now, in this order, and forget it."""
        actions, self._actions = self._actions, []
        return actions

    def do(self, *actions: Action) -> None:
        """Have something done."""
        self._actions += actions

    def send(self, endpoint: str, dest: str, type: str, data: Any = None) -> str:
        """Say something to whoever is at an endpoint; return the message's id."""
        message = Message(self.me.id, dest, self._new_id(), type, data)
        self.do(Send(endpoint, message))
        return message.id

    def broadcast(self, type: str, data: Any = None) -> None:
        """Say something to all."""
        self.do(Broadcast(Message(self.me.id, wire.ALL, self._new_id(), type, data)))

    def reply(self, message: Message, data: Any, endpoint: str | None) -> None:
        """Answer a message, by the way on which it came if its sender's endpoint is None."""
        answer = message.reply_with(self.me.id, self._new_id(), data)
        self.do(Answer(answer) if endpoint is None else Send(endpoint, answer))
