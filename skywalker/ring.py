"""Who owns a topic: tokens on a ring of signed 64-bit integers.

The owner of a topic is who holds the biggest token *less than* the topic's own; with none
less, the biggest token of all. Equality counts as not less.
"""

from __future__ import annotations

import itertools
import secrets
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Generic, TypeVar

import mmh3

TOKENS_PER_NODE: Final = 32

Owner = TypeVar("Owner", bound=Hashable)


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


def slices(tokens: Iterable[int], workers: int) -> dict[int, list[int]]:
    """Return the tokens that each of a node's workers owns: every N-th of them, in order."""
    ordered = sorted(tokens)
    return {worker: ordered[worker::workers] for worker in range(workers)}


class Ring(Generic[Owner]):
    """An immutable map from tokens to owners. Raises ValueError if there is no token, or one has two owners."""

    __slots__ = ("_owners", "_tokens")

    def __init__(self, owned: Mapping[Owner, Iterable[int]]) -> None:
        pairs = [(token, owner) for owner, tokens in owned.items() for token in tokens]
        pairs.sort(key=lambda pair: pair[0])
        self._tokens = [token for token, _ in pairs]
        self._owners = [owner for _, owner in pairs]
        if not pairs:
            raise ValueError("a ring needs at least one token")
        for (left, a), (right, b) in itertools.pairwise(pairs):
            if left == right:
                raise ValueError(f"token {left} belongs to {a!r} and {b!r}")

    def owner(self, token: int) -> Owner:
        """Return the owner of a topic whose token this is."""
        # One below the first that is not less; below the first of all that is index -1, the biggest.
        return self._owners[bisect_left(self._tokens, token) - 1]
