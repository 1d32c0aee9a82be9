"""A table with a line for each size of cluster; a narrow terminal goes without what is needed least."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from skywalker.cli import terminal

if TYPE_CHECKING:
    from skywalker.pipeline.planner.plan import Cluster

DIM: Final = "2"
GAP: Final = 2
GROUP_GAP: Final = 4
"""Spaces before a column, and before the first of a group."""


class Column(NamedTuple):
    """One column."""

    group: str  # what is written above it and its neighbours
    name: str
    text: Callable[[Cluster], str]
    needed: int = 9  # 9 is always there


def table(clusters: Sequence[Cluster], columns: Sequence[Column], width: int) -> Iterator[str]:
    """Yield the lines of a table that fits in `width`, if it can: the names of groups, of columns, then the rows."""
    kept = list(columns)
    while sum(widths := _widths(clusters, kept)) > width and min(column.needed for column in kept) < 9:
        kept.remove(min(reversed(kept), key=lambda column: column.needed))
    above, at = "", 0
    for group, members in groupby(kept, lambda column: column.group):
        gap = GROUP_GAP * bool(at)
        end = at + len([*members])
        above += " " * gap + f"{group:<{sum(widths[at:end]) - gap}}"
        at = end
    yield terminal.painted(above.rstrip(), DIM)
    yield terminal.painted("".join(f"{column.name:>{size}}" for column, size in zip(kept, widths, strict=True)), DIM)
    for cluster in clusters:
        yield "".join(f"{column.text(cluster):>{size}}" for column, size in zip(kept, widths, strict=True))


def _widths(clusters: Sequence[Cluster], columns: Sequence[Column]) -> list[int]:
    """Return the widths of columns with the gaps before them; the last of a group has room for the group's name."""
    widths: list[int] = []
    for group, members in groupby(columns, lambda column: column.group):
        texts = [max(len(each.name), *(len(each.text(cluster)) for cluster in clusters)) for each in members]
        texts[-1] += max(0, len(group) - sum(texts) - GAP * (len(texts) - 1))
        gaps = [GROUP_GAP * bool(widths), *[GAP] * (len(texts) - 1)]
        widths += [gap + text for gap, text in zip(gaps, texts, strict=True)]
    return widths
