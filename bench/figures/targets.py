"""Targets: what is wanted of a figure, and whether what was measured will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from bench.figures.samples import markdown, table

HEADS: Final = ("target", "wanted", "found", "")


class Target(NamedTuple):
    """A figure that was measured, and the least that it is to be, or the most."""

    what: str
    found: float
    wanted: float
    at_most: bool = False
    form: str = ".2f"

    @property
    def reached(self) -> bool:
        """Whether it will do."""
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted

    def row(self, missed: str) -> tuple[str, str, str, str]:
        """Return it as tables have it."""
        wanted = f"at {'most' if self.at_most else 'least'} {self.wanted:{self.form}}"
        return self.what, wanted, format(self.found, self.form), "reached" if self.reached else missed


def lines(targets: Iterable[Target]) -> Iterator[str]:
    """Yield them line by line."""
    yield from table(HEADS, [target.row("NOT reached") for target in targets])


def page(targets: Iterable[Target]) -> Iterator[str]:
    """Yield them as a table of a page."""
    yield from markdown(HEADS, [target.row("**not reached**") for target in targets], words=2)
