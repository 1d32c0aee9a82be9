"""Who owns a topic: tokens on a ring of signed 64-bit integers.

The owner of a topic is who holds the biggest token *less than* the topic's own; with none
less, the biggest token of all. Equality counts as not less. That of a cluster is made in members.py.

Tokens are a node's. Its workers share the topics that these bring by one of two rules, see SLICING.
"""

from __future__ import annotations

import hashlib
import secrets
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Generic, Self, TypeVar

import mmh3

TOKENS_PER_NODE: Final = 32

TOKENS: Final = 2**64
"""How many different tokens there are."""

Owner = TypeVar("Owner", bound=Hashable)


def version_of(members: bytes) -> str:
    """Return the version of a ring, of its members in MessagePack."""
    return hashlib.sha256(members).hexdigest()[:16]


def token_of(topic: bytes) -> int:
    """Return the token of a topic's canonical bytes: the first half of MurmurHash3 x64 128, seed 0."""
    token: int = mmh3.hash64(topic)[0]
    return token


def random_tokens(count: int = TOKENS_PER_NODE) -> list[int]:
    """Return `count` different random tokens, sorted."""
    tokens: set[int] = set()
    while len(tokens) < count:
        tokens.add(secrets.randbits(64) - 2**63)
    return sorted(tokens)


SLICING: Final = 1
"""The newest rule by which a node's workers share its topics: 0 is slices(), and 1 is worker_of().

All nodes of a ring go by the newest one that each of them knows.
"""

SLICED: Final = 2**32
"""Every so many tokens of the ring are cut into as many equal slices as a node has workers, by the rule 1."""


def worker_of(token: int, workers: int) -> int:
    """Return which of a node's workers owns a topic of this token, by the rule 1.

    No arc of a ring is so short that this matters: each worker has the same part of it, whoever owns it, and topics
    that stay at a node stay at their workers.
    """
    return token % SLICED * workers // SLICED


def slices(tokens: Iterable[int], workers: int) -> dict[int, list[int]]:
    """Return the tokens that each of a node's workers owns by the rule 0: every N-th of them, in order."""
    ordered = sorted(tokens)
    return {worker: ordered[worker::workers] for worker in range(workers)}


class Ring(Generic[Owner]):
    """An immutable map from tokens to owners. Raises ValueError if there is no token, or one has two owners."""

    __slots__ = ("_owners", "_tokens")

    def __init__(self, owned: Mapping[Owner, Iterable[int]]) -> None:
        owners: dict[int, Owner] = {}
        for owner, tokens in owned.items():
            for token in tokens:
                if owners.setdefault(token, owner) != owner:
                    raise ValueError(f"token {token} belongs to {owners[token]!r} and {owner!r}")
        self._fill(owners)

    @classmethod
    def of_tokens(cls, owners: Mapping[int, Owner]) -> Self:
        """Return a ring of the tokens that are the keys."""
        ring = cls.__new__(cls)
        ring._fill(owners)
        return ring

    def _fill(self, owners: Mapping[int, Owner]) -> None:
        if not owners:
            raise ValueError("a ring needs at least one token")
        self._tokens = sorted(owners)
        self._owners = [owners[token] for token in self._tokens]

    def by_token(self) -> dict[int, Owner]:
        """Return the owners of all tokens, in the order of these."""
        return dict(zip(self._tokens, self._owners, strict=True))

    def owner(self, token: int) -> Owner:
        """Return the owner of a topic whose token this is."""
        # One below the first that is not less; below the first of all that is index -1, the biggest.
        return self._owners[bisect_left(self._tokens, token) - 1]

    def shares(self) -> dict[Owner, float]:
        """Return which part of all topics each owner has; together they are 1."""
        parts = dict.fromkeys(self._owners, 0)
        for at, owner in enumerate(self._owners):
            # A token owns what is above it, up to and including the next one; the biggest, around the end.
            following = self._tokens[(at + 1) % len(self._tokens)]
            parts[owner] += (following - self._tokens[at]) % TOKENS or TOKENS
        return {owner: part / TOKENS for owner, part in parts.items()}
