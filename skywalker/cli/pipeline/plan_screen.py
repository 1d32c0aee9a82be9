"""A plan on a terminal: how even the clusters are, what moves in them, and what the hottest topics do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from skywalker.cli import terminal

if TYPE_CHECKING:
    from skywalker.pipeline.planner.plan import Cluster, Heat, Move, Plan, Shares, Wanted

INDENT: Final = "  "
BOLD, DIM, GREEN, RED = "1", "2", "32", "31"
NONE: Final = "-"
EVEN: Final = "uniform"
"""The law by which calls fall as topics do, so that there is nothing to say about them."""

GAP: Final = 2
GROUP_GAP: Final = 4
"""Spaces before a column, and before the first of a group."""


class Column(NamedTuple):
    """One column."""

    group: str  # what is written above it and its neighbours
    name: str
    text: Callable[[Cluster], str]
    needed: int = 9  # 9 is always there


_SIZES: Final = (Column("", "nodes", lambda it: f"{it.nodes:,}"), Column("", "tokens", lambda it: f"{it.tokens:,}"))


class Screen:
    """Makes the lines that `skywalker pipeline plan` prints."""

    def __init__(self, wanted: Wanted, plan: Plan, source: str, law: str) -> None:
        """`source` names the topics, and is empty without any; `law` says how many calls each has."""
        self._wanted = wanted
        self._plan = plan
        self._source = source
        self._law = law
        self._is_even = plan.topics is None or law == EVEN
        self._width = max(20, terminal.width() - len(INDENT))

    def lines(self) -> Iterator[str]:
        """Yield them without their ends."""
        parts = [self._title(), self._balance(), self._moves()]
        if self._plan.heat is not None:
            parts.append(self._heat(self._plan.heat))
        for part in parts:
            yield ""
            yield from (INDENT + line for line in part)
        yield ""

    def _title(self) -> Iterator[str]:
        workers = self._wanted.workers
        each = "one worker" if workers == 1 else f"{workers} workers"
        yield f"nodes     {each} each, random tokens of seed {self._wanted.seed}"
        if self._plan.topics is not None:
            yield f"topics    {self._plan.topics:,}, {terminal.shown(self._source)}"
            yield f"calls     {self._law}"

    def _balance(self) -> Iterator[str]:
        yield terminal.painted("How even it is", BOLD) + ": what a node has, 1 is a fair share"
        ring = "of the ring"
        columns = [
            *_SIZES,
            Column(ring, "busiest", lambda it: f"{it.ring.nodes.busiest:.2f}"),
            Column(ring, "p99", lambda it: f"{it.ring.nodes.p99:.2f}", 3),
            Column(ring, "p50", lambda it: f"{it.ring.nodes.p50:.2f}", 1),
            Column(ring, "least", lambda it: f"{it.ring.nodes.least:.2f}", 2),
        ]
        if self._wanted.workers > 1:
            columns.append(Column(ring, "worker", lambda it: f"{it.ring.workers.busiest:.2f}", 6))
        if self._plan.topics is not None:
            columns += self._busiest("of the topics", lambda it: it.topics, 4)
        if not self._is_even:
            columns += self._busiest("of the calls", lambda it: it.calls, 8)
        if self._wanted.worker_rate is not None:
            columns.append(Column("it bears", "calls/s", lambda it: NONE if it.bears is None else f"{it.bears:,.0f}"))
        yield from _table(self._plan.clusters, columns, self._width)

    def _busiest(self, group: str, of: Callable[[Cluster], Shares | None], needed: int) -> Iterator[Column]:
        def column(name: str, text: Callable[[Shares], str]) -> Column:
            return Column(group, name, lambda it: NONE if (found := of(it)) is None else text(found), needed)

        yield column("busiest", lambda it: f"{it.nodes.busiest:.2f}")
        if self._wanted.workers > 1:
            yield column("worker", lambda it: f"{it.workers.busiest:.2f}")

    def _moves(self) -> Iterator[str]:
        goes = "the busiest node" if self._wanted.remove is None else f"node {self._wanted.remove}"
        yield terminal.painted("What moves", BOLD) + ": the part whose owner is another afterwards"
        columns = [*_SIZES, *self._move("a node comes", "from", lambda it: it.comes)]
        columns += self._move(f"{goes} goes", "to", lambda it: it.goes)
        yield from _table(self._plan.clusters, columns, self._width)

    def _move(self, group: str, word: str, of: Callable[[Cluster], Move | None]) -> Iterator[Column]:
        def column(name: str, text: Callable[[Move], str], needed: int = 9) -> Column:
            return Column(group, name, lambda it: NONE if (found := of(it)) is None else text(found), needed)

        yield column("topics", lambda it: f"{it.part:.2%}")
        if not self._is_even:
            yield column("calls", lambda it: NONE if it.calls is None else f"{it.calls:.2%}", 3)
        yield column(f"{word} nodes", lambda it: f"{it.others:,}", 4)
        yield column(f"most {word} one", lambda it: f"{it.most:.2%}", 1)
        yield column("busiest then", lambda it: f"{it.afterwards:.2f}", 2)

    def _heat(self, heat: Heat) -> Iterator[str]:
        from skywalker.pipeline.planner.load import HOTTEST

        rate, worker_rate = self._wanted.rate, self._wanted.worker_rate
        yield terminal.painted("Hot topics", BOLD) + ": each has one owner, one worker, however many nodes there are"
        for top, share in [*heat.shares.items()][: 1 if self._is_even else None]:
            who = "the hottest" if top == 1 else f"the {top:,} hottest"
            yield f"{who:<17}  {_part(share):>8} of all calls" + (
                "" if rate is None else f", {rate * share:,.0f} calls/s"
            )
        if heat.bears is not None:
            yield f"a worker's {worker_rate:,.0f} calls/s do for the hottest up to {heat.bears:,.0f} calls/s in all"
        if heat.too_hot is None:
            return
        if heat.too_hot == 0:
            yield terminal.painted("no topic asks for more than a worker can do", GREEN)
        else:
            # No more than so many were looked at.
            more = " or more" if heat.too_hot == HOTTEST else ""
            ask = "topic asks" if heat.too_hot == 1 else "topics ask"
            yield terminal.painted(f"{heat.too_hot:,}{more} {ask} for more than a worker can do", RED)
        if heat.fewest is not None:
            yield f"with {self._law} none does among {heat.fewest:,} topics or more"
        if heat.steepest is not None:
            yield f"with {self._plan.topics:,} topics none does up to zipf:{heat.steepest:.3f}"


def _part(share: float) -> str:
    return f"{share:.3%}" if share >= 0.0001 else f"1 in {1 / share:,.0f}"


def _table(clusters: Sequence[Cluster], columns: Sequence[Column], width: int) -> Iterator[str]:
    """Yield the lines of a table with a row for each size of cluster: names of groups, of columns, then the rows.

    So that it fits in `width`, it goes without what is needed least.
    """
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
