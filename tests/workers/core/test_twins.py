"""Two clusters of cores that are made alike: they do the same, byte for byte, unless one lacks a safeguard."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

from skywalker.limits import Limits
from tests.workers.core.clusters import Cluster
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.linked import new_cluster
from tests.workers.core.test_links import LinkedHistory, SubscribedHistory
from workers.core._core import SAFEGUARDS, without

HISTORIES: Final = 60
STEPS: Final = 60
SEEDS: Final = 150
UNNOTICED: Final = ("publishers wait", "an ack comes last", "a hand is written down")
"""Here is nobody who speaks pub/sub, and nobody dies in the middle of a turn: the simulation has both."""


class Twins(LinkedHistory):
    """Without a safeguard only the second."""

    lacks: tuple[str, ...] = ()

    def clusters(self, limits: Limits, seed: int) -> tuple[Cluster, Cluster]:
        return new_cluster(self.layout, limits, seed), new_cluster(self.layout, limits, seed)

    def settle(self) -> None:
        self.olds.settle()
        with switched_off(*self.lacks):
            self.news.settle()
        self.compare()


class SubscribedTwins(Twins, SubscribedHistory):
    """Without a choice of what is compared."""

    heard = LinkedHistory.heard


@contextlib.contextmanager
def switched_off(*names: str) -> Iterator[None]:
    without(*names)
    try:
        yield
    finally:
        without()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", [Twins, SubscribedTwins])
def test_the_same_seed_gives_the_same_bytes(kind: type[Twins], part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = kind(seed)
        live(history, seed, STEPS, history.log)


def is_noticed(name: str, seed: int) -> bool:
    history = (Twins, SubscribedTwins)[seed % 2](seed)
    history.lacks = (name,)
    try:
        live(history, seed, STEPS)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", [name for name in SAFEGUARDS if name not in UNNOTICED])
def test_without_a_safeguard_somebody_hears_something_else(name: str) -> None:
    assert any(is_noticed(name, seed) for seed in range(SEEDS))
