"""What a node answers to those who introduce themselves, or ask who is there."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from skywalker.silk import pace
from skywalker.silk.actions import Part
from skywalker.silk.outbox import Outbox
from skywalker.silk.peers import Peers
from skywalker.wire.silk import MAX_MESSAGE, MAX_NAME, Message

ENVELOPE: Final = 4 * 12 * MAX_NAME + 1000
"""Bytes that a reply takes besides its data, at most: of a name that is not ASCII, a character takes twelve."""


class Replies:
    """Replies of one node, which sees `peers`."""

    def __init__(self, outbox: Outbox, peers: Peers) -> None:
        self._outbox = outbox
        self._peers = peers
        self._refused_at = -math.inf

    def list(self, without: str = "") -> dict[str, Any]:
        """Return who is there, but for one, as far as that fits in a message."""
        me = self._outbox.me.as_map()
        return {"cluster": self._peers.brief(without, MAX_MESSAGE - len(json.dumps(me)) - ENVELOPE), "me": me}

    def reply(self, message: Message, data: Any) -> None:
        """Answer a message, to where its sender is as a member, or the way on which it came."""
        peer = self._peers.get(message.src)
        self._outbox.reply(message, data, None if peer is None else peer.info.router)

    def refuse(self, message: Message, reason: str, now: float, endpoint: str = "") -> None:
        """Say no to a message, if need be to the endpoint that its sender says it has, and is believed to have."""
        if endpoint in ("", self._outbox.me.router) or self._peers.at(endpoint) is not None:
            self.reply(message, {"error": reason})
        elif now - self._refused_at >= pace.REFUSE_S:
            self._refused_at = now
            self._outbox.reply(message, {"error": reason}, endpoint)
            self._outbox.do(Part(endpoint))
