"""The other members, each with what is kept of it and the time to look after it; and who has just left."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from skywalker.deadlines import Deadlines
from skywalker.limits import MIB
from skywalker.silk import pace
from skywalker.silk.endpoints import host
from skywalker.silk.info import NodeInfo

MAX_BYTES: Final = 64 * MIB
"""Bytes of memory for what all of them say of themselves."""

_MAX_ORIGINS: Final = 8
"""Addresses from which the messages of one member come."""

_VERSION_BYTES: Final = 8


@dataclasses.dataclass(eq=False, slots=True)
class Peer:
    """Another member."""

    info: NodeInfo
    since: float  # when it became one
    heard_at: float
    at: float = 0.0  # when to look whether it has been heard
    is_suspected: bool = False  # and that was told
    probes: int = 0  # questions since it is suspected, or must answer; 0 while neither is so
    is_reported: bool = False  # another said that it failed, and we have not asked it yet
    version: str = ""  # what it calls the set of those that it sees
    origins: frozenset[str | None] = frozenset()  # the addresses that its messages have come from
    asked: tuple[str, ...] = ()  # the ids of the questions that were sent to it last
    asked_at: float = -math.inf
    is_to_be_asked: bool = False  # again, once it has been a moment since
    has_answered: bool = False  # such a question, so that it is where it says
    must_answer: bool = False  # or it is given up, whatever else is heard in its name
    says_farewell: bool = False  # somebody does, in its name

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    @property
    def host(self) -> str:
        """The host on which it is."""
        return host(self.info.router)

    def comes_from(self, origin: str) -> None:
        """A message from this address was its own."""
        if len(self.origins) < _MAX_ORIGINS:
            self.origins |= {origin}


class Peers:
    """All of them, by id. `version` names the set of them and the node `me`, and is the same for all who see it."""

    def __init__(self, me: str, now: float) -> None:
        self.changed_at = now  # when somebody last came or went
        self._peers: dict[str, Peer] = {}
        self._at: dict[str, Peer] = {}  # by the endpoint that takes messages; two cannot live at one
        self._on: Counter[str] = Counter()  # how many of them each host has
        self._sizes: dict[str, int] = {}  # by id, of what they say of themselves
        self._size = 0
        self.unproven = 0  # how many have never answered
        self._fingerprint = 0
        self.version = ""
        self._has_changed(me, now)
        self._deadlines = Deadlines()

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[Peer]:
        return iter([*self._peers.values()])

    def get(self, id: str) -> Peer | None:
        """Return the one of this id."""
        return self._peers.get(id)

    def at(self, endpoint: str) -> Peer | None:
        """Return the one that takes messages there."""
        return self._at.get(endpoint)

    def is_alone(self, peer: Peer) -> bool:
        """Whether no other one is on the host of this one."""
        return self._on[peer.host] == 1

    def has_room(self, info: NodeInfo) -> bool:
        """Whether there is memory for what a node says of itself, instead of what it said before."""
        return self._size - self._sizes.get(info.id, 0) + info.size <= MAX_BYTES

    def brief(self, without: str, room: int) -> dict[str, Any]:
        """Return those, but for one, of which in brief there is room for in so many bytes; those who say most miss."""
        listed = {}
        for peer in sorted(self, key=lambda peer: self._sizes[peer.id]):
            brief = peer.info.brief()
            room -= len(json.dumps({peer.id: brief}))
            if room < 0:
                break
            # Who joins would wait for one that has left.
            if peer.id != without and not peer.says_farewell:
                listed[peer.id] = brief
        return listed

    def broadcasts_at(self, endpoint: str) -> bool:
        """Whether one of them says that it broadcasts there: of those that are gone, one may have been replaced."""
        return any(peer.info.pub == endpoint for peer in self._peers.values())

    @property
    def infos(self) -> dict[str, NodeInfo]:
        """What they say of themselves, by id."""
        return {id: peer.info for id, peer in self._peers.items()}

    def add(self, peer: Peer, now: float) -> None:
        """Take in a new one, where no other is."""
        self._peers[peer.id] = peer
        self._at[peer.info.router] = peer
        self._on[peer.host] += 1
        self.unproven += not peer.has_answered
        self._has_size(peer.id, peer.info.size)
        self._has_changed(peer.id, now)

    def prove(self, peer: Peer) -> None:
        """One has answered a question, and so is where it says."""
        self.unproven -= not peer.has_answered
        peer.has_answered = True

    def change(self, peer: Peer, info: NodeInfo) -> None:
        """Have one say something else of itself; where it is stays."""
        peer.info = info
        self._has_size(peer.id, info.size)

    def remove(self, peer: Peer, now: float) -> None:
        """Forget one."""
        del self._peers[peer.id]
        del self._at[peer.info.router]
        self._on[peer.host] -= 1
        self.unproven -= not peer.has_answered
        if not self._on[peer.host]:
            del self._on[peer.host]
        self._has_size(peer.id, 0)
        del self._sizes[peer.id]
        self._deadlines.discard(peer, peer.at)
        self._has_changed(peer.id, now)

    def look_at(self, peer: Peer, at: float) -> None:
        """Have due() return it once this time has come, and not before."""
        self._deadlines.discard(peer, peer.at)
        peer.at = at
        self._deadlines.add(peer, at)

    def due(self, now: float) -> Iterator[Peer]:
        """Yield those that it is time to look after, unless what was done before has changed that."""
        found: list[Peer] = self._deadlines.due(now)
        for peer in found:
            if peer.at <= now and self._peers.get(peer.id) is peer:
                yield peer

    def wait(self, now: float) -> float | None:
        """Return the seconds until there is one to look after, None if there is none."""
        return self._deadlines.wait(now)

    def _has_size(self, id: str, size: int) -> None:
        self._size += size - self._sizes.get(id, 0)
        self._sizes[id] = size

    def _has_changed(self, id: str, now: float) -> None:
        # The order in which they came makes no difference.
        self._fingerprint ^= int.from_bytes(hashlib.sha256(id.encode()).digest()[:_VERSION_BYTES], "big")
        self.version = f"{self._fingerprint:0{2 * _VERSION_BYTES}x}"
        self.changed_at = now


MAX_REMEMBERED: Final = 2048
"""As many as a cluster has; past that, those who left first are forgotten."""


class Gone:
    """All of them, by id."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def has_left(self, id: str, now: float) -> None:
        """This one leaves now."""
        self.is_back(id)
        self._at[id] = now
        if len(self._at) > MAX_REMEMBERED:
            self.is_back(next(iter(self._at)))

    def is_back(self, id: str) -> None:
        """This one is there after all."""
        self._at.pop(id, None)

    def is_gone(self, id: str, now: float) -> bool:
        """Whether this one has left a short while ago."""
        return now - self._at.get(id, now - pace.LEFT_S) < pace.LEFT_S
