"""Where the topics of a plan come from: batches of their tokens and calls, each made when it is its turn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skywalker.errors import ConfigError
from skywalker.pipeline.planner.murmur import Tokens, of_integers
from skywalker.pipeline.planner.skew import Zipf

TOPICS_AT_ONCE: Final = 1 << 19
"""Numbered topics in a batch, whose arrays take some 20 MB."""


class Batch(NamedTuple):
    """Some topics."""

    tokens: Tokens
    calls: NDArray[np.float64] | None  # in any unit, the same for all batches; None if the topics are alike


class Piece(NamedTuple):
    """A part of the work."""

    size: int  # in the unit of the source
    make: Callable[[], Batch]  # may be called in any thread


class Source(Protocol):
    """Topics, each of which comes once."""

    @property
    def size(self) -> int:
        """How much there is to do, in `unit`."""

    @property
    def unit(self) -> str:
        """What the work is measured in: topics or bytes."""

    @property
    def skew(self) -> Zipf | None:
        """The law that made the calls; None if the calls were given."""

    def pieces(self) -> Iterator[Piece]:
        """Yield all of the work, in the same order each time."""


def no_skew(path: Path, skew: Zipf | None) -> None:
    """Raise ConfigError if there is a skew, for a file that says itself how many calls its topics have."""
    if skew is not None:
        raise ConfigError(f"{path} says how many calls its topics have: leave out --skew")


@dataclass(frozen=True, slots=True)
class Numbered:
    """The integers from 0 on, of which 0 is the hottest topic."""

    size: int
    skew: Zipf
    unit: str = "topics"

    def pieces(self) -> Iterator[Piece]:
        """Yield so many topics at a time as a core's cache can do with."""
        for first in range(0, self.size, TOPICS_AT_ONCE):
            count = min(TOPICS_AT_ONCE, self.size - first)
            yield Piece(count, functools.partial(self._batch, first, count))

    def _batch(self, first: int, count: int) -> Batch:
        calls = self.skew.calls(first, count) if self.skew.exponent else None
        return Batch(of_integers(np.arange(first, first + count)), calls)
