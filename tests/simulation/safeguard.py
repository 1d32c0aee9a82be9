"""What keeps a promise of the product, in Python or in C, and how it is switched off."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skywalker.build import ASSERTIONS
from workers.core._core import without

Replaced = Callable[[Any], Any]


def nothing(*_: Any, **__: Any) -> None:
    """In place of what is switched off."""


def by_nothing(_: Any) -> Any:
    """Have a method do nothing."""
    return nothing


@dataclass(frozen=True)
class Method:
    """A method, in whose place something else stands meanwhile."""

    where: type
    name: str
    replaced: Replaced
    """Returns what that is."""

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """Switch it off for so long."""
        as_ever = getattr(self.where, self.name)
        setattr(self.where, self.name, self.replaced(as_ever))
        try:
            yield
        finally:
            setattr(self.where, self.name, as_ever)


@dataclass(frozen=True)
class InCore:
    """What the core has a switch for."""

    name: str

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """Switch it off for so long."""
        without(self.name)
        try:
            yield
        finally:
            without()


def need_assertions() -> None:
    """End the program if the core is a release: no point of that is known, so that nothing happens at any."""
    if not ASSERTIONS:
        build = "SKYWALKER_ASSERTIONS=1 python setup.py build_ext --inplace"
        sys.exit(f"this core is a release, of which it is not known where it is: build one with assertions by {build}")


@dataclass(frozen=True)
class Safeguard:
    """One of them."""

    what: Method | InCore
    rules: tuple[str, ...]
    """That notice."""
    tried: Callable[[int, Sequence[str]], Sequence[str]]
    """Runs a seed with faults of some kinds, and returns what did not hold, a line each."""
    kinds: tuple[str, ...] = ()
    """Faults against which it guards; all kinds, if none is named."""

    def off(self) -> contextlib.AbstractContextManager[None]:
        """Switch it off for so long."""
        return self.what.off()

    def broken(self, seed: int) -> list[str]:
        """Run a seed; return what did not hold of that which it keeps."""
        rules = (*self.rules, "AssertionError")
        return [line for line in self.tried(seed, self.kinds) if line.startswith(rules)]
