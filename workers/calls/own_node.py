"""What a worker says of its node and of the cluster: the answers to :tokens, :hello and :nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from skywalker import limits
from skywalker.address import Address
from skywalker.limits import MAX_FRAME, MAX_ID
from skywalker.members import Member, Snapshot
from skywalker.ring import slices
from skywalker.wire import values
from workers.engine.machine import Machine

VERSION: Final = 2
"""Of what nodes say to each other. A node refuses one that it does not know."""

EXTENSIONS: Final = ("hello", "ping", "cancel", "take", "topic", "ack", "nodes", "subscribe", "will")
"""Methods beyond the published dialects, as :hello lists them."""

_ENVELOPE: Final = MAX_ID + 256
"""Bytes of a reply that :nodes needs besides the nodes."""


class OwnNode:
    """The node that the worker in `slot` belongs to. It sees itself alone until it is told to follow a snapshot."""

    def __init__(
        self,
        member: Member,
        version: str,
        slot: int,
        heard: Callable[[Address], bool] | None,
        machine: Machine,
    ) -> None:
        """`heard` passes the address of a node that wants to join on, and returns whether there was room for it.

        It is None if nobody here wants to know.
        """
        self.id = member.id
        self.name = member.name
        self.address = member.address  # where others reach it
        self.slot = slot
        self.life = machine.token(8)  # of this worker, as others tell it from those before and after it
        self.born = machine.monotonic()
        self.workers = member.workers
        self.heard = heard
        self.packed_tokens = values.pack(list(member.tokens))
        self._greeting = {
            "version": version,
            "node": member.id,
            "name": member.name,
            "worker": slot,
            "workers": member.workers,
            "steering": member.steering,
            "tokens": slices(member.tokens, member.workers),
            "slicing": member.slicing,
            "address": member.address.host,
            "port": member.address.port,
            "limits": {
                "frame": limits.MAX_FRAME,
                "id": limits.MAX_ID,
                "topic": limits.MAX_TOPIC,
                "timeout_ms": limits.MAX_TIMEOUT_MS,
                "depth": limits.MAX_DEPTH,
            },
            "extensions": EXTENSIONS,
        }
        self.follow(Snapshot([member]))

    def follow(self, snapshot: Snapshot) -> None:
        """Answer by this snapshot from now on."""
        self.snapshot = snapshot
        self._ids = [*snapshot.by_id]
        self._members: list[bytes] | None = None  # packed, once somebody asks
        self._first_page: bytes | None = None
        unproven = {str(address): reason for address, reason in snapshot.unproven.items()}
        greeting = {**self._greeting, "ring": snapshot.version, **({"unproven": unproven} if unproven else {})}
        self.packed_greeting = values.pack(greeting)

    def packed_ring(self, leaving: bool) -> bytes:
        """Return what those who follow the ring are told when it has changed, or when this node is `leaving` it."""
        return values.pack({"version": self.snapshot.version, "leaving": leaving})

    def packed_nodes(self, after: str = "") -> bytes:
        """Return the answer to a :nodes: the nodes with ids above `after`, as many as fit in a frame."""
        if after:
            return self._page(after)
        if self._first_page is None:
            self._first_page = self._page("")
        return self._first_page

    def _page(self, after: str) -> bytes:
        if self._members is None:
            self._members = [values.pack(member.as_map()) for member in self.snapshot]
        begin = end = bisect_right(self._ids, after)
        room = MAX_FRAME - _ENVELOPE
        while end < len(self._members) and len(self._members[end]) <= room:
            room -= len(self._members[end])
            end += 1
        return b"".join(
            (
                b"\x83",
                values.pack("version"),
                values.pack(self.snapshot.version),
                values.pack("more"),
                values.pack(end < len(self._members)),
                values.pack("nodes"),
                b"\xdd",
                (end - begin).to_bytes(4, "big"),
                *self._members[begin:end],
            )
        )
