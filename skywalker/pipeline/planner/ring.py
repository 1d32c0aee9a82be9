"""Rings as two arrays, the same maps from tokens to owners as `skywalker.ring`, for many topics at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from skywalker.pipeline.planner.murmur import Tokens, Words
from skywalker.ring import SLICED, TOKENS

SIGN: Final = np.uint64(2**63)
"""What makes of the order of signed numbers that of unsigned ones."""

INDEX_BITS: Final = 21
"""So many of its first bits, at most, lead from a topic's token to those near it: 8 MB, for rings of any size."""


@dataclass(frozen=True, slots=True)
class TokenRing:
    """Tokens, ascending and all different, and the number of the owner of each."""

    tokens: Tokens
    owners: NDArray[np.intp]

    @classmethod
    def of(cls, tokens: Tokens, owners: NDArray[Any]) -> Self:
        """Return the ring of tokens in any order. Raises ValueError if there is none, or one comes twice."""
        if not len(tokens):
            raise ValueError("a ring needs at least one token")
        order = np.argsort(tokens)
        ordered = tokens[order]
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            raise ValueError(f"token {twice[0]} comes twice")
        return cls(ordered, owners[order].astype(np.intp))

    def arcs(self, topics: Tokens) -> NDArray[np.intp]:
        """Return in which arc each topic is, given by their tokens: arc i belongs to token i of the ring."""
        # One below the first that is not less; below the first of all that is the last, the biggest.
        return (np.searchsorted(self.tokens, topics) - 1) % len(self.tokens)

    def owner(self, topics: Tokens) -> NDArray[np.intp]:
        """Return the owners of topics, given by their tokens."""
        return self.owners[self.arcs(topics)]

    def parts(self) -> NDArray[np.float64]:
        """Return which part of the ring each arc is; together they are 1."""
        if len(self.tokens) == 1:
            return np.ones(1)
        # A token owns what is above it, up to and including the next one; the biggest, around the end.
        gaps = np.roll(self.tokens, -1).view(np.uint64) - self.tokens.view(np.uint64)
        return gaps / float(TOKENS)

    def without(self, owner: int) -> Self:
        """Return the ring that is left when an owner goes. Raises ValueError if nobody is left."""
        stays = self.owners != owner
        if not stays.any():
            raise ValueError(f"owner {owner} is the only one")
        return type(self)(self.tokens[stays], self.owners[stays])


def workers_of(topics: Tokens, workers: int) -> NDArray[np.intp]:
    """Return which worker of its node owns each topic, given by their tokens: see `skywalker.ring.worker_of`."""
    low = topics.view(np.uint64) & np.uint64(SLICED - 1)
    return (low * np.uint64(workers) // np.uint64(SLICED)).astype(np.intp)


class Index:
    """Finds arcs as TokenRing.arcs() does, several times as fast where there are millions of topics."""

    def __init__(self, ring: TokenRing) -> None:
        self.size = len(ring.tokens)
        bits = min(INDEX_BITS, self.size.bit_length() + 3)
        self._shift = np.uint64(64 - bits)
        ordered = ring.tokens.view(np.uint64) ^ SIGN
        # How many tokens are less than the lowest topic that begins with these bits.
        self._less = np.searchsorted(ordered, np.arange(1 << bits, dtype=np.uint64) << self._shift)
        # None is less than a topic that is the highest number itself, so that the search ends there.
        self._tokens: Words = np.append(ordered, np.uint64(2**64 - 1))

    def arcs(self, topics: Tokens) -> NDArray[np.intp]:
        """Return in which arc each topic is, given by their tokens."""
        wanted = topics.view(np.uint64) ^ SIGN
        less: NDArray[np.intp] = self._less[wanted >> self._shift]
        # As a rule no token has the same bits, so that there is nothing left to look at.
        while (more := self._tokens[less] < wanted).any():
            less += more
        less -= 1
        less[less < 0] = self.size - 1
        return less


class Fleet:
    """Nodes 0, 1, 2...: a cluster of n is made of the first n, and with t tokens a node each has its first t.

    So clusters of different sizes differ by what was changed and not by luck, and every token of any of them is one of
    the largest, whose arcs hold all that is to be counted.
    """

    def __init__(self, nodes: int, tokens: int, seed: int) -> None:
        """Give `nodes` nodes `tokens` tokens each. The same seed makes the same tokens, however many there are."""
        self._tokens = np.stack(
            [
                np.random.default_rng([seed, node]).integers(-(2**63), 2**63 - 1, tokens, np.int64, endpoint=True)
                for node in range(nodes)
            ]
        )

    def ring(self, nodes: int, tokens: int) -> TokenRing:
        """Return the ring of a cluster of so many nodes with so many tokens each; its owners are their numbers."""
        return TokenRing.of(self._tokens[:nodes, :tokens].ravel(), np.repeat(np.arange(nodes), tokens))
