"""What this node says, as actions for a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skywalker.silk.actions import Action, Answer, Broadcast, Send
from skywalker.silk.info import NodeInfo
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message


class Voice:
    """Words of the node `me`, and all else that is to be done, in order. `new_id` returns an id for each message."""

    def __init__(self, me: NodeInfo, new_id: Callable[[], str]) -> None:
        self.me = me
        self.actions: list[Action] = []
        self._new_id = new_id

    def send(self, endpoint: str, dest: str, type: str, data: Any = None) -> str:
        """Say something to whoever is at an endpoint; return the message's id."""
        message = Message(self.me.id, dest, self._new_id(), type, data)
        self.actions.append(Send(endpoint, message))
        return message.id

    def broadcast(self, type: str, data: Any = None) -> None:
        """Say something to all."""
        self.actions.append(Broadcast(Message(self.me.id, wire.ALL, self._new_id(), type, data)))

    def reply(self, message: Message, data: Any, endpoint: str | None) -> None:
        """Answer a message, by the way on which it came if its sender's endpoint is None."""
        answer = Message(self.me.id, message.src, self._new_id(), wire.REPLY, data, reply=message.id)
        self.actions.append(Answer(answer) if endpoint is None else Send(endpoint, answer))
