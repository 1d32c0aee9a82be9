"""What a worker says of its node: the answers to :tokens and :hello, encoded once."""

from __future__ import annotations

from typing import Final

from skywalker import limits
from skywalker.ring import slices
from skywalker.wire import values
from workers.identity import Identity

EXTENSIONS: Final = ("hello", "ping", "cancel", "take", "topic", "ack")
"""Methods beyond the published dialects, as :hello lists them."""


class Node:
    """The node that the worker in `slot` of `workers` belongs to; `steering` says whether source ports choose it."""

    def __init__(
        self, identity: Identity, name: str, version: str, slot: int, workers: int, steering: bool = False
    ) -> None:
        self.id = identity.id
        self.slot = slot
        self.workers = workers
        self.slices = slices(identity.tokens, workers)
        self.packed_tokens = values.pack(identity.tokens)
        self.packed_greeting = values.pack(
            {
                "version": version,
                "node": identity.id,
                "name": name,
                "worker": slot,
                "workers": workers,
                "steering": steering,
                "tokens": self.slices,
                "limits": {
                    "frame": limits.MAX_FRAME,
                    "id": limits.MAX_ID,
                    "topic": limits.MAX_TOPIC,
                    "timeout_ms": limits.MAX_TIMEOUT_MS,
                    "depth": limits.MAX_DEPTH,
                },
                "extensions": EXTENSIONS,
            }
        )
