"""`skywalker pipeline plan`: the command."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from skywalker import extras, units
from skywalker.cli import exits, terminal
from skywalker.cli.options import Told, result
from skywalker.errors import ConfigError
from skywalker.members import MAX_TOKENS, MAX_WORKERS

if TYPE_CHECKING:
    from skywalker.pipeline.planner.plan import Plan, Wanted
    from skywalker.pipeline.planner.skew import Zipf
    from skywalker.pipeline.planner.topics import Source

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
    from skywalker.cli.pipeline.plan_screen import Screen

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
    from skywalker.cli.pipeline.counting import Counting

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
