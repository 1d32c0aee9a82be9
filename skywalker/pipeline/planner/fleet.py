"""The nodes of all clusters of a plan, each with random tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skywalker.pipeline.planner.ring import TokenRing


class Fleet:
    """Nodes 0, 1, 2...: a cluster of n is made of the first n, and with t tokens a node each has its first t.

    So clusters of different sizes differ by what was changed and not by luck, and every token of any of them is one of
    the largest, whose arcs hold all that is to be counted.
    """

    def __init__(self, nodes: int, tokens: int, seed: int) -> None:
        """Give `nodes` nodes `tokens` tokens each. The same seed makes the same tokens, however many there are."""
        self._tokens = np.stack([_random(seed, node, tokens) for node in range(nodes)])

    def ring(self, nodes: int, tokens: int) -> TokenRing:
        """Return the ring of a cluster of so many nodes with so many tokens each; its owners are their numbers."""
        return TokenRing.of(self._tokens[:nodes, :tokens].ravel(), np.repeat(np.arange(nodes), tokens))


def _random(seed: int, node: int, count: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, node]).integers(-(2**63), 2**63 - 1, count, np.int64, endpoint=True)
