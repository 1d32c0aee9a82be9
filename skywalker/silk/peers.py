"""The other members, each with what is kept of it and the time to look after it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Final

from skywalker.deadlines import Deadlines
from skywalker.silk.info import NodeInfo

_VERSION_BYTES: Final = 8


@dataclasses.dataclass(eq=False, slots=True)
class Peer:
    """Another member."""

    info: NodeInfo
    since: float  # when it became one
    heard_at: float
    at: float = 0.0  # when to look whether it has been heard
    probes: int = 0  # questions since it is suspected; 0 while it is not
    is_reported: bool = False  # another said that it failed, and we have not asked it yet
    version: str = ""  # what it calls the set of those that it sees

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id


class Peers:
    """All of them, by id. `version` names the set of them and the node `me`, and is the same for all who see it."""

    def __init__(self, me: str, now: float) -> None:
        self.changed_at = now  # when somebody last came or went
        self._peers: dict[str, Peer] = {}
        self._at: dict[str, Peer] = {}  # by the endpoint that takes messages; two cannot live at one
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
        self._has_changed(peer.id, now)

    def remove(self, peer: Peer, now: float) -> None:
        """Forget one."""
        del self._peers[peer.id]
        del self._at[peer.info.router]
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

    def _has_changed(self, id: str, now: float) -> None:
        # The order in which they came makes no difference.
        self._fingerprint ^= int.from_bytes(hashlib.sha256(id.encode()).digest()[:_VERSION_BYTES], "big")
        self.version = f"{self._fingerprint:0{2 * _VERSION_BYTES}x}"
        self.changed_at = now
