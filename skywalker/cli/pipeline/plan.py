"""`skywalker pipeline plan`: how even clusters are, what moves in them, and what the hottest topics do."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

import click

from skywalker import extras, units
from skywalker.cli import exits, terminal
from skywalker.cli.options import Told, result
from skywalker.cli.terminal import Status
from skywalker.errors import ConfigError
from skywalker.members import MAX_TOKENS, MAX_WORKERS

if TYPE_CHECKING:
    from skywalker.pipeline.planner.plan import Cluster, Heat, Move, Plan, Shares, Wanted
    from skywalker.pipeline.planner.skew import Zipf
    from skywalker.pipeline.planner.topics import Source

PAUSE_S: Final = 0.2
"""Seconds between two drawings; what is done before the first needs none."""


class Counting:
    """Draws while a `with` block lasts, and leaves nothing behind."""

    def __init__(self, size: int, unit: str) -> None:
        """Of `size` units."""
        self._size = size
        self._unit = unit
        self._status = Status()
        self._started = self._drawn = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._status.clear()

    def tell(self, done: int) -> None:
        """So many units are done."""
        now = time.monotonic()
        if not self._status.live or now - self._drawn < PAUSE_S:
            return
        self._drawn = now
        rate = done / (now - self._started)
        left = (self._size - done) / rate
        self._status.draw(f"  {done / self._size:4.0%}  {done:,} {self._unit}  {rate:,.0f}/s  {left:,.0f} s left")


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


T = TypeVar("T")

MAX_NODES: Final = 100_000
MAX_RING: Final = 1 << 22
"""Tokens of the largest ring: what is counted by token takes some 300 MB then."""

MAX_THREADS: Final = 64
_AFTERWARDS: Final = (
    "Nodes have random tokens, as real ones have; the same --seed gives the same ones. What is asked is worked out on "
    "this machine, no node is needed."
)


def _counts(ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, ...]:
    return _read(ctx, param, lambda: units.counts(text, MAX_NODES if param.name == "nodes" else MAX_TOKENS))


def _rate(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    rate = None if text is None else float(_read(ctx, param, lambda: units.count(text)))
    if rate == 0:
        raise click.BadParameter("it takes at least 1 call/s", ctx, param)
    return rate


def _node(ctx: click.Context, param: click.Parameter, text: str) -> int | None:
    if text == "busiest":
        return None
    if not text.isdecimal() or len(text) > 9:
        raise click.BadParameter(f"{text!r} is neither 'busiest' nor the number of a node, from 0 on", ctx, param)
    return int(text)


def _skew(ctx: click.Context, param: click.Parameter, text: str | None) -> Zipf | None:
    if text is None:
        return None
    with _needing_numpy():
        from skywalker.pipeline.planner.skew import Zipf
    return _read(ctx, param, lambda: Zipf.parse(text))


def _read(ctx: click.Context, param: click.Parameter, read: Callable[[], T]) -> T:
    try:
        return read()
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


@click.command(short_help="Say what a cluster of some size would be like", epilog=_AFTERWARDS)
@click.option(
    "--nodes", default="10,100,1000", show_default=True, callback=_counts, metavar="N,...", help="sizes of the cluster"
)
@click.option(
    "--tokens",
    default="32..512",
    show_default=True,
    callback=_counts,
    metavar="N,...",
    help="tokens of each node; A..B doubles from A to B",
)
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=1,
    show_default=True,
    metavar="N",
    help="worker processes of each node",
)
@click.option(
    "--topics", metavar="FILE|synthetic:N", help="count these topics too: of a file, or the numbers below N (1e8, 100M)"
)
@click.option(
    "--skew", callback=_skew, metavar="zipf:S", help="the r-th topic has 1/r^S parts of the calls  [default: uniform]"
)
@click.option(
    "--remove",
    default="busiest",
    show_default=True,
    callback=_node,
    metavar="NODE",
    help="the node that goes, by number",
)
@click.option("--rate", callback=_rate, metavar="CALLS/S", help="calls of the whole cluster, 500k for one")
@click.option("--worker-rate", callback=_rate, metavar="CALLS/S", help="calls that one worker can do")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, metavar="N", help="of the tokens"
)
@click.option(
    "--threads", type=click.IntRange(1, MAX_THREADS), metavar="N", help="to count topics with  [default: one a core]"
)
@click.option("--json", "as_json", is_flag=True, help="print it all as one line of JSON")
def plan(topics: str | None, skew: Zipf | None, threads: int | None, as_json: bool, **wanted: Any) -> int:
    """Say how evenly clusters of some sizes share the work, what moves when nodes come and go, and what hot topics do.

    \b
      skywalker pipeline plan                                            the rings alone, exactly
      skywalker pipeline plan --topics synthetic:1e8 --skew zipf:1.1     and many topics, some hot
      skywalker pipeline plan --topics topics.txt --rate 500k --worker-rate 40k

    A FILE has a topic on each line, JSON or a bare word, the hottest first; after a tab may follow how many calls it
    has. It may also be Parquet, with columns 'token' or 'topic', and perhaps 'calls'.
    """
    started = time.monotonic()
    _check(topics, skew, wanted)
    with Told(None, as_json).errors_told():
        with _needing_numpy():
            from skywalker.pipeline.planner.plan import Wanted
        asked = Wanted(**wanted)
        made, source = _made(asked, topics, skew, threads or min(len(os.sched_getaffinity(0)), MAX_THREADS))
    if as_json:
        terminal.write(result("planned", started, value=_document(asked, topics, skew, made)))
        return exits.OK
    law = "" if source is None else str(source.skew or "as many as are given")
    lines = Screen(asked, made, topics or "", law).lines()
    terminal.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
    return exits.OK


def _check(topics: str | None, skew: Zipf | None, wanted: dict[str, Any]) -> None:
    """Refuse what options cannot be together. Raises UsageError, which names them."""
    nodes, tokens, remove = wanted["nodes"], wanted["tokens"], wanted["remove"]
    if (nodes[-1] + 1) * tokens[-1] > MAX_RING:
        raise click.UsageError(
            f"--nodes {nodes[-1]} with --tokens {tokens[-1]} make a ring of {nodes[-1] * tokens[-1]:,} tokens; "
            f"it may have {MAX_RING:,}, and one node more must fit"
        )
    if remove is not None and remove >= nodes[0]:
        raise click.UsageError(f"--remove {remove}: a cluster of {nodes[0]} has the nodes 0 to {nodes[0] - 1}")
    if topics is None and skew is not None:
        raise click.UsageError("--skew says how calls fall on --topics, and there are none")
    if topics is None and wanted["rate"] is not None:
        raise click.UsageError("--rate is what --topics are called at, and there are none")


def _made(wanted: Wanted, topics: str | None, skew: Zipf | None, threads: int) -> tuple[Plan, Source | None]:
    from skywalker.pipeline.planner.plan import plan as make

    if topics is None:
        return make(wanted, None, threads, lambda done: None), None
    from skywalker.pipeline.planner.topics import source as source_of

    try:
        source = source_of(topics, skew)
    except ValueError as error:
        raise ConfigError(f"--topics {error}") from error
    with Counting(source.size, source.unit) as counting:
        return make(wanted, source, threads, counting.tell), source


def _document(wanted: Wanted, topics: str | None, skew: Zipf | None, made: Plan) -> dict[str, Any]:
    asked = dataclasses.asdict(wanted)
    return {
        "asked": {**asked, "topics": topics, "skew": None if skew is None else str(skew)},
        **dataclasses.asdict(made),
    }


@contextmanager
def _needing_numpy() -> Iterator[None]:
    """Say what is missing where the block cannot import it."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"the planner needs numpy and pyarrow ({error}): {extras.command_for('spark')}") from error
