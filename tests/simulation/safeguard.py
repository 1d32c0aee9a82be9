"""One method of the product that keeps a promise, and what stands in its place when it is switched off."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Replaced = Callable[[Any], Any]


def nothing(*_: Any, **__: Any) -> None:
    """In place of what is switched off."""


def by_nothing(_: Any) -> Any:
    """Have a method do nothing."""
    return nothing


@dataclass(frozen=True)
class Safeguard:
    """One of them."""

    where: type
    method: str
    replaced: Replaced
    """Returns what stands in its place."""
    rules: tuple[str, ...]
    """That notice."""
    tried: Callable[[int, Sequence[str]], Sequence[str]]
    """Runs a seed with faults of some kinds, and returns what did not hold, a line each."""
    kinds: tuple[str, ...] = ()
    """Faults against which it guards; all kinds, if none is named."""

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """Switch it off for so long."""
        as_ever = getattr(self.where, self.method)
        setattr(self.where, self.method, self.replaced(as_ever))
        try:
            yield
        finally:
            setattr(self.where, self.method, as_ever)

    def broken(self, seed: int) -> list[str]:
        """Run a seed; return what did not hold of that which it keeps."""
        rules = (*self.rules, "AssertionError")
        return [line for line in self.tried(seed, self.kinds) if line.startswith(rules)]
