"""Somebody whom a node knows: what shows that it is them, what they may do, and how much of it."""

from __future__ import annotations

import dataclasses
import ipaddress
import pwd
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from skywalker.access import token
from skywalker.errors import ConfigError, SkywalkerError
from skywalker.wire import values

EVERY: Final = "*"

FORM: Final = 'a topic, a prefix that ends in *, "*" for every topic, or {topic = ...} for one that looks like that'


@dataclasses.dataclass(frozen=True, slots=True)
class Patterns:
    """Some topics. Those of canonical MessagePack are told from one another, so 1, 1.0 and true are three."""

    every: bool = False
    exact: frozenset[bytes] = frozenset()
    prefixes: tuple[bytes, ...] = ()

    @classmethod
    def parse(cls, written: Iterable[Any]) -> Patterns:
        """Read a list of patterns: "jobs", "jobs/*", "*", 7, or {"topic": "what*ever"}. Raises ValueError."""
        exact: set[bytes] = set()
        prefixes: set[bytes] = set()
        every = False
        for each in written:
            if each == EVERY:
                every = True
            elif isinstance(each, str) and each.endswith(EVERY):
                prefixes.add(each.removesuffix(EVERY).encode())
            elif isinstance(each, str) and EVERY in each:
                raise ValueError(f"{each!r} is not {FORM}")
            else:
                exact.add(_topic(each))
        return cls(every, frozenset(exact), tuple(sorted(prefixes)))

    def match(self, topic: bytes) -> bool:
        """Whether a topic, as canonical MessagePack, is one of these."""
        return self.every or topic in self.exact or (bool(self.prefixes) and _text(topic).startswith(self.prefixes))


def _topic(written: Any) -> bytes:
    if isinstance(written, dict):
        if [*written] != ["topic"]:
            raise ValueError(f"{written!r} is not {FORM}")
        written = written["topic"]
    try:
        return values.topic_bytes(values.pack(written))
    except SkywalkerError as error:
        raise ValueError(f"{written!r} is not {FORM}") from error


def _text(topic: bytes) -> bytes:
    """Return the bytes of a string that is a topic; of any other kind, what no prefix fits. An empty one fits all."""
    first = topic[0]
    if 0xA0 <= first < 0xC0:
        return topic[1:]
    if first == 0xD9:
        return topic[2:]
    if first == 0xDA:
        return topic[3:]
    return b""


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SEND: Final = "send"
RECV: Final = "recv"
PUBLISH: Final = "publish"
SUBSCRIBE: Final = "subscribe"
ACTIONS: Final = (SEND, RECV, PUBLISH, SUBSCRIBE)
"""What is done to a topic."""

MAX_COUNT: Final = 2**40


@dataclasses.dataclass(frozen=True, slots=True)
class Principal:
    """One of them. Any one of the hashes, certificates, users and networks is enough to be taken for it."""

    name: str
    topics: Mapping[str, Patterns]
    """Those on which each of ACTIONS is allowed."""
    hashes: tuple[str, ...] = ()
    certificates: frozenset[str] = frozenset()
    users: frozenset[int] = frozenset()
    networks: tuple[Network, ...] = ()
    admin: bool = False
    """Whether it may see a node's figures."""
    node: bool = False
    """Whether it is a node of the cluster, which is trusted with everything that is said there."""
    rate: int = 0
    """Calls a second, at each worker; 0 means any number, here and below."""
    in_flight: int = 0
    """Calls that wait, at each worker."""
    connections: int = 0
    """Open at a time, at each worker."""

    def may(self, action: str, topic: bytes) -> bool:
        """Whether it is allowed one of ACTIONS on a topic, given as canonical MessagePack."""
        return self.topics[action].match(topic)

    @classmethod
    def parse(cls, name: str, table: Mapping[str, Any], where: str) -> Principal:
        """Read `[access.<name>]`. Raises ConfigError naming the key, and never repeating what may be a secret."""
        unknown = sorted(table.keys() - _KEYS.keys())
        if unknown:
            raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(_KEYS)}")
        given: dict[str, Any] = {}
        for key, value in table.items():
            field, read = _KEYS[key]
            try:
                given[field] = read(value)
            except ValueError as error:
                raise ConfigError(f"{where}: {key}: {error}") from error
        topics = {action: given.pop(action, Patterns()) for action in ACTIONS}
        return cls(name, topics, **given)


def _list(value: Any, of: type | tuple[type, ...], what: str) -> list[Any]:
    each = value if isinstance(value, list) else [value]
    if not all(isinstance(one, of) and not isinstance(one, bool) for one in each):
        raise ValueError(f"it is {what}, or a list of them")
    return each


def _hashes(value: Any) -> tuple[str, ...]:
    hashes = _list(value, str, "the hash of a token")
    if not all(token.is_hash(one) for one in hashes):
        raise ValueError("it is not sha256: and 64 hex digits: skywalker token hash makes that of a token")
    return tuple(hashes)


def _certificates(value: Any) -> frozenset[str]:
    return frozenset(_list(value, str, "a name in a certificate"))


def _users(value: Any) -> frozenset[int]:
    users = set()
    for user in _list(value, (str, int), "the name or the number of a user"):
        try:
            users.add(user if isinstance(user, int) else pwd.getpwnam(user).pw_uid)
        except KeyError:
            raise ValueError(f"there is no user {user} on this machine") from None
    return frozenset(users)


def _networks(value: Any) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(one) for one in _list(value, str, "a network, such as 10.0.0.0/8"))


def _patterns(value: Any) -> Patterns:
    if not isinstance(value, list):
        raise ValueError(f"it is a list, each of {FORM}")
    return Patterns.parse(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_COUNT:
        raise ValueError(f"{value!r} is not a whole number from 1 on")
    return value


_KEYS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "token": ("hashes", _hashes),
    "certificate": ("certificates", _certificates),
    "user": ("users", _users),
    "network": ("networks", _networks),
    **{action: (action, _patterns) for action in ACTIONS},
    "admin": ("admin", _flag),
    "node": ("node", _flag),
    "rate": ("rate", _count),
    "in_flight": ("in_flight", _count),
    "connections": ("connections", _count),
}
"""By the key in the file: what it is called here, and what reads it."""
