"""The nodes of a cluster at one moment: who they are, and which of them owns what.

A snapshot never changes; its version is made of all that is in it, so that nodes that see the
same cluster name it by the same version, and to compare versions is to compare snapshots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from skywalker.address import Address, is_numeric
from skywalker.ring import SLICING, TOKENS, Ring, slices, version_of, worker_of
from skywalker.wire import values

MAX_WORKERS: Final = 1024
MAX_TOKENS: Final = 4096
"""Tokens of one node; more than a frame can tell would be of no use."""

MAX_SLICING: Final = 2**31

MAX_NAME: Final = 255
"""Characters of a node's id or name."""


class Place(NamedTuple):
    """One worker of one node: what owns topics."""

    node: str
    worker: int


class Share(NamedTuple):
    """Workers of one node who share an arc of a ring: so many, from the first on."""

    node: str
    first: int
    workers: int

    def owner(self, token: int) -> Place:
        """Return which of them owns a topic whose token this is."""
        return Place(self.node, self.first + worker_of(token, self.workers))

    def places(self) -> list[Place]:
        """Return all of them."""
        return [Place(self.node, worker) for worker in range(self.first, self.first + self.workers)]


class PlaceRing:
    """Which worker of which node owns a topic. Never changes. Raises ValueError if there is no token."""

    __slots__ = ("_ring",)

    def __init__(self, owned: Mapping[int, Share]) -> None:
        """Take who shares the arc of each token."""
        self._ring: Ring[Share] = Ring.of_tokens(owned)

    def by_token(self) -> dict[int, Share]:
        """Return who shares the arcs of all tokens, in the order of these."""
        return self._ring.by_token()

    def owner(self, token: int) -> Place:
        """Return the owner of a topic whose token this is."""
        return self._ring.owner(token).owner(token)

    def parts(self) -> dict[Share, float]:
        """Return which part of all topics workers share; together they are 1."""
        return self._ring.shares()

    def shares(self) -> dict[Place, float]:
        """Return which part of all topics each worker has, if any; together they are 1."""
        parts: dict[Place, float] = {}
        for share, part in self.parts().items():
            for place in share.places():
                parts[place] = parts.get(place, 0.0) + part / share.workers
        return parts


def shared(node: str, by_worker: Mapping[int, Iterable[int]], slicing: int) -> dict[int, Share]:
    """Return who shares the arc of each token of a node by one of the rules; `by_worker` are slices() of its tokens."""
    all_of_them = Share(node, 0, len(by_worker))
    return {
        token: all_of_them if slicing else Share(node, worker, 1)
        for worker, tokens in by_worker.items()
        for token in tokens
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """One node as all others see it. `address` is where it is reached, its host a numeric address."""

    id: str
    name: str
    address: Address
    workers: int
    steering: bool  # whether the source port of a connection chooses the worker
    tokens: tuple[int, ...]  # sorted
    slicing: int = SLICING  # the newest rule that it knows by which workers share topics, see ring.py

    @classmethod
    def parse(cls, data: Any) -> Member | None:
        """Read what as_map() returned on any node; None if it is nothing of the kind."""
        match data:
            case {
                "id": str(id),
                "name": str(name),
                "address": str(host),
                "port": int(port),
                "workers": int(workers),
                "steering": bool(steering),
                "tokens": [*tokens],
            } if (
                0 < len(id) <= MAX_NAME
                and len(name) <= MAX_NAME
                and is_numeric(host)  # a worker dials it, and must not ask a name server
                and 0 < port < 65536
                and 0 < workers <= MAX_WORKERS
                and 0 < len(tokens) <= MAX_TOKENS
                and all(type(token) is int and -(2**63) <= token < 2**63 for token in tokens)
                and type(slicing := data.get("slicing", 0)) is int
                and 0 <= slicing <= MAX_SLICING
            ):
                return cls(id, name, Address(host, port), workers, steering, tuple(sorted(set(tokens))), slicing)
        return None

    def as_map(self, slicing: int | None = None) -> dict[str, Any]:
        """Return what is said of it on the wire, with another rule than its own if one is named.

        A node that knows no other rule than 0 has not heard of rules.
        """
        slicing = self.slicing if slicing is None else slicing
        return {
            "id": self.id,
            "name": self.name,
            "address": self.address.host,
            "port": self.address.port,
            "workers": self.workers,
            "steering": self.steering,
            "tokens": list(self.tokens),
            **({"slicing": slicing} if slicing else {}),
        }

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"


class Snapshot:
    """The members of a cluster, and the ring of their tokens. Iterates over members, in the order of their ids."""

    __slots__ = ("by_id", "ring", "slicing", "unproven", "version")

    def __init__(self, members: Iterable[Member], unproven: Mapping[Address, str] | None = None) -> None:
        """Take members of different ids, at least one.

        `unproven` says where somebody else was found, who is in no ring, and why that is no node of this cluster: of
        this the version says nothing, since it is one node's view.
        """
        self.unproven: Mapping[Address, str] = dict(unproven or {})
        self.by_id: Mapping[str, Member] = {each.id: each for each in sorted(members, key=lambda each: each.id)}
        # A call that came from another node goes no further: so all have to go by one rule, which each of them knows.
        self.slicing = min(SLICING, *(member.slicing for member in self))
        owned: dict[int, Share] = {}
        for member in self:
            for token, share in shared(member.id, slices(member.tokens, member.workers), self.slicing).items():
                # Two nodes with one token are copies of each other, or very unlucky: everybody takes the first.
                owned.setdefault(token, share)
        self.ring = PlaceRing(owned)
        self.version = version_of(self.pack())

    def __iter__(self) -> Iterator[Member]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def pack(self) -> bytes:
        """Return the members in MessagePack, with the rule that they go by: of these bytes the version is made."""
        return values.pack([each.as_map(self.slicing) for each in self])

    def says_the_same(self, other: Snapshot) -> bool:
        """Whether both are of one version, and name the same of those who are no nodes of the cluster."""
        return self.version == other.version and self.unproven == other.unproven

    def shares(self) -> dict[str, float]:
        """Return which part of all topics each member owns, by id; together they are 1."""
        parts = dict.fromkeys(self.by_id, 0.0)
        for share, part in self.ring.parts().items():
            parts[share.node] += part
        return parts

    def diff(self, newer: Snapshot) -> list[str]:
        """Return what is different in a newer snapshot, a line for each node that came, went or changed."""
        before, after = self.shares(), newer.shares()
        lines = []
        for member in newer:
            old = self.by_id.get(member.id)
            if old is None:
                lines.append(f"{member} joined, and owns {after[member.id]:.1%}")
            elif old != member:
                changed = [
                    field.name
                    for field in dataclasses.fields(Member)
                    if getattr(old, field.name) != getattr(member, field.name)
                ]
                lines.append(f"{member} changed its {', '.join(changed)}, and owns {after[member.id]:.1%}")
        lines += [f"{each} left, and owned {before[each.id]:.1%}" for each in self if each.id not in newer.by_id]
        return lines


class Arc(NamedTuple):
    """What one token owns: all from `start`, without it, for `length` around the ring."""

    start: int
    length: int
    share: Share


def arcs(snapshot: Snapshot) -> list[Arc]:
    """Return the arcs of a ring in the order of their starts; together they are the whole of it."""
    by_token = snapshot.ring.by_token()
    tokens = [*by_token]
    return [
        # The end still belongs to this token: equal counts as not less.
        Arc(start, (end - start) % TOKENS or TOKENS, by_token[start])
        for start, end in zip(tokens, [*tokens[1:], tokens[0]], strict=True)
    ]
