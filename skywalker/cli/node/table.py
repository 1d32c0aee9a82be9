"""A table of what nodes tell: values with columns that know how to write them, sorted and filtered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from skywalker.cli.node import words

Row = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column. `shown` writes a value of it."""

    title: str
    shown: Callable[[Any], str] = words.text
    order: str = ""  # by what the node sorts if the table is sorted by this, where it has an order for it

    @property
    def right(self) -> bool:
        """Whether it is aligned to the right, as what can be compared is."""
        return self.shown in (words.number, words.size, words.span, words.part)


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows of values, one for each column. The first `key` columns say whose row it is."""

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    key: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        """Raise what writing or comparing some value would, now rather than when it is drawn."""
        for row in self.rows:
            self.cells(row)
            if not all(value is None or isinstance(value, str | int | float) for value in row):
                raise TypeError(f"a list or map in {row[: self.key]}")

    def cells(self, row: Row) -> list[str]:
        """Return the texts of a row."""
        return [column.shown(value) for column, value in zip(self.columns, row, strict=True)]

    def arranged(self, by: int, descending: bool, wanted: str = "") -> list[Row]:
        """Return the rows that have a text in them, whatever its case, in the order of a column; unknown comes last."""
        wanted = wanted.casefold()
        rows = [row for row in self.rows if any(wanted in cell.casefold() for cell in self.cells(row))]
        known = [row for row in rows if row[by] is not None]
        known.sort(key=lambda row: (isinstance(row[by], str), row[by]), reverse=descending)
        return known + [row for row in rows if row[by] is None]
