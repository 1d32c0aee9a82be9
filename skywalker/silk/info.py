"""What a node says of itself: where it is reached, how often it shows that it lives, what it handles."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any, Final

from skywalker.address import Address
from skywalker.limits import KIB
from skywalker.silk.endpoints import is_somewhere
from skywalker.wire.silk import INTERNAL, is_name

MIN_PERIOD_S: Final = 0.01
MAX_PERIOD_S: Final = 3600.0
"""Seconds of any period; shorter ones are work for nothing, and longer ones would be waited for in vain."""

MAX_ATTEMPTS: Final = 100
MAX_TYPES: Final = 1000
"""Message types that one node handles."""

MAX_JUNCTION: Final = 256 * KIB
"""Bytes of memory that a node's junction takes with us: 4,096 tokens fit. Of a bigger one only its address is kept."""

_TYPE_BYTES: Final = 256
"""Bytes that a message type takes besides its name, about."""

_DEFAULT_PERIOD_MS: Final = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Handling:
    """What a node declares of one message type: how often, and how far apart, a request is to be sent to it."""

    attempts: int = 3
    period_s: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class NodeInfo:
    """One node, as all others know it."""

    id: str
    name: str
    router: str  # the endpoint that takes direct messages
    pub: str  # the endpoint of what it broadcasts
    keepalive_s: float = 1.0  # between two signs of life
    messages: Mapping[str, Handling] = dataclasses.field(default_factory=dict)  # by type
    junction: Mapping[str, Any] | None = None  # of a node that serves skywalker: what :nodes tells of it

    @classmethod
    def parse(cls, data: Any) -> NodeInfo | None:
        """Read a node object; None if it is nothing of the kind."""
        match data:
            case {"id": str(id), "endpoints": {"router": str(router), "pub": str(pub)}} if (
                is_name(id) and not id.startswith(INTERNAL) and is_somewhere(router) and is_somewhere(pub)
            ):
                name = data.get("name") or ""
                junction = data.get("junction")
                keepalive_s = _period_s(data.get("keepalive", {}))
                messages = _messages(data.get("messages", {}))
                if (name == "" or (isinstance(name, str) and is_name(name))) and keepalive_s and messages is not None:
                    # What others tell of a node's junction is read by who uses it.
                    told = junction if isinstance(junction, dict) else None
                    if told is not None and _size_of(told) > MAX_JUNCTION:
                        told = {key: told.get(key) for key in ("address", "port")}
                        told = told if _size_of(told) <= MAX_JUNCTION else None
                    return cls(id, name, router, pub, keepalive_s, messages, told)
        return None

    def is_at_the_place_of(self, other: NodeInfo) -> bool:
        """Whether it has the endpoints of another."""
        return (self.router, self.pub) == (other.router, other.pub)

    @property
    def size(self) -> int:
        """The bytes of memory that it takes, about."""
        texts = sum(map(sys.getsizeof, (self.id, self.name, self.router, self.pub, *self.messages)))
        return texts + _TYPE_BYTES * (1 + len(self.messages)) + (_size_of(self.junction) if self.junction else 0)

    @property
    def serves(self) -> Address | None:
        """Where it serves skywalker, None if it says nothing of the kind."""
        match self.junction:
            case {"address": str(host), "port": int(port)} if is_name(host) and type(port) is int and 0 < port < 65_536:
                return Address(host, port)
        return None

    def as_map(self) -> dict[str, Any]:
        """Return its node object."""
        return {
            **self.brief(),
            "keepalive": {"period": round(self.keepalive_s * 1000)},
            "messages": {
                type: {"attempts": each.attempts, "period": round(each.period_s * 1000)}
                for type, each in self.messages.items()
            },
            **({"junction": self.junction} if self.junction is not None else {}),
        }

    def brief(self) -> dict[str, Any]:
        """Return as much of it as is needed to ask it for the rest: a thousand of these fit in one message."""
        # Only what keeps its promise of size: with a junction that does not, nobody could be told of the cluster.
        where = self.serves
        return {
            "id": self.id,
            "name": self.name,
            "endpoints": {"router": self.router, "pub": self.pub},
            **({"junction": {"address": where.host, "port": where.port}} if where else {}),
        }

    def __str__(self) -> str:
        return f"{self.name or self.id} ({self.router})"


def _size_of(data: Any) -> int:
    """Return the bytes that data takes which JSON can say, or some number above MAX_JUNCTION."""
    size, left = 0, [data]
    while left and size <= MAX_JUNCTION:
        value = left.pop()
        size += sys.getsizeof(value)
        if isinstance(value, Mapping):
            left += value.keys()
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
    return size


def _period_s(data: Any) -> float:
    """Read {"period": milliseconds}; 0 for what cannot be."""
    period = data.get("period", _DEFAULT_PERIOD_MS) if isinstance(data, dict) else None
    # Compared before it is divided: an integer may be too big to become a float.
    if isinstance(period, int | float) and MIN_PERIOD_S * 1000 <= period <= MAX_PERIOD_S * 1000:
        return period / 1000
    return 0.0


def _messages(data: Any) -> Mapping[str, Handling] | None:
    """Read what a node handles; None for what cannot be."""
    if not isinstance(data, dict) or len(data) > MAX_TYPES:
        return None
    messages = {}
    for name, told in data.items():
        # The dialect's own page writes it in two ways, one of them a level further down.
        declared = told.get("reply", told) if isinstance(told, dict) else None
        period_s = _period_s(declared)
        attempts = declared.get("attempts", 1) if isinstance(declared, dict) else 0
        is_count = type(attempts) is int and 1 <= attempts <= MAX_ATTEMPTS
        if not (period_s and is_count and is_name(name)) or name.startswith(INTERNAL):
            return None
        messages[name] = Handling(attempts, period_s)
    return messages
