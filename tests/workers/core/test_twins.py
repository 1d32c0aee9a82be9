"""Histories of linked workers that are made alike: they are the same, byte for byte, unless one lacks a safeguard."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

from tests.simulation.apart import Died, apart
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.test_links import LinkedHistory
from workers.core._core import SAFEGUARDS, without

HISTORIES: Final = 60
STEPS: Final = 60
SEEDS: Final = 600
UNNOTICED: Final = ("publishers wait", "a hand is written down", "all is written first", "what is given stays")
"""Here topics stay with their owners, nobody dies in the middle of a turn, and hardly anything is unwritten or was just
given, when a connection moves; not so in the simulation."""


class Recorded(LinkedHistory):
    """One that remembers what clients were told."""

    def __init__(self, seed: int, *lacks: str) -> None:
        self.told: list[tuple[int, bytes]] = []
        self._lacks = lacks
        super().__init__(seed)

    def settle_workers(self) -> None:
        with switched_off(*self._lacks):
            super().settle_workers()

    def look(self) -> None:
        self.told += [(fd, bytes(wire_.taken)) for fd, wire_ in self.wires.items() if wire_.taken]
        super().look()


@contextlib.contextmanager
def switched_off(*names: str) -> Iterator[None]:
    without(*names)
    try:
        yield
    finally:
        without()


def told(seed: int, *lacks: str) -> list[tuple[int, bytes]]:
    history = Recorded(seed, *lacks)
    live(history, seed, STEPS, history.log)
    return history.told


@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_seed_gives_the_same_bytes(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        assert told(seed) == told(seed), seed


def is_noticed(name: str, seed: int) -> bool:
    try:
        return apart(lambda: told(seed, name) != told(seed))
    except Died:  # of an assertion, be it one of the core
        return True


@pytest.mark.parametrize("name", [name for name in SAFEGUARDS if name not in UNNOTICED])
def test_without_a_safeguard_somebody_hears_something_else(name: str) -> None:
    assert any(is_noticed(name, seed) for seed in range(SEEDS))
