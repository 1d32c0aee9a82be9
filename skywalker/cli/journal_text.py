"""Journals as people and scripts read them: a line for each call, and a page of figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from skywalker.cli import moment, terminal
from skywalker.cli.aligned import aligned
from skywalker.journal.header import Header
from skywalker.journal.merging import Run
from skywalker.journal.reading import KINDS, kinds, waits_us
from skywalker.journal.statistics import PERCENTS, Summary
from skywalker.journal.topic_text import topic_text

INDENT: Final = "  "
DIM: Final = "2"
BOLD: Final = "1"

LONGEST_TOPIC: Final = 60
LONGEST_NAME: Final = 24

HEADING: Final = f"{'time (UTC)':<26}  {'worker':<12}  {'method':<7}  {'outcome':<9}  {'route':<7}  {'wait':>9}  topic"

_NS: Final = 1_000_000_000

Names = Mapping[int, bytes]
"""Topics by token, as MessagePack."""


def lines(run: Run, names: Names) -> Iterator[str]:
    """Yield a line for each record, without its end."""
    for record in _rows(run):
        when, where = moment.shown(record["time_ns"]), terminal.shown(f"{record['name']}/{record['worker']}", 12)
        yield (
            f"{when:<26}  {where:<12}  {record['method']:<7}  {record['outcome']:<9}  "
            f"{record['route']:<7}  {duration(record['wait_us'] / 1e6):>9}  {topic(record['token'], names)}"
        )


def json_lines(run: Run, names: Names) -> Iterator[str]:
    """Yield a line of JSON for each record, without its end."""
    for record in _rows(run):
        time_ns = record.pop("time_ns")
        name = names.get(record["token"])
        line = {
            "time": f"{moment.shown(time_ns).replace(' ', 'T')}Z",
            **record,
            "topic": None if name is None else topic_text(name),
        }
        yield terminal.json_line(line).decode().removesuffix("\n")


def page(summary: Summary, names: Names, sampled: bool) -> Iterator[str]:
    """Yield the lines of a page of figures."""
    begin, end = moment.shown(summary.first_ns)[:19], moment.shown(summary.last_ns)[:19]
    yield ""
    yield INDENT + terminal.painted(f"{summary.calls:,} calls", BOLD)
    yield f"{INDENT}from {begin} to {end} UTC, {duration(summary.span_s)}"
    rate = f"{summary.rate:,.0f} a second; " if summary.rate is not None else ""
    yield f"{INDENT}{rate}values of {bytes_text(summary.size)}"
    if sampled:
        yield f"{INDENT}counted from {summary.records:,} records, since not every call was recorded"
    if summary.dropped:
        yield f"{INDENT}{summary.dropped:,} more records are missing, since the disk did not take them"
    for part in (_ends(summary), *_places(summary), _topics(summary, names)):
        yield ""
        yield from (INDENT + line for line in part)
    yield ""


def document(summary: Summary, names: Names) -> dict[str, Any]:
    """Return the figures as JSON has them; waits are in seconds."""
    return {
        "records": summary.records,
        "dropped": summary.dropped,
        "calls": summary.calls,
        "first": summary.first_ns / _NS,
        "last": summary.last_ns / _NS,
        "rate": summary.rate,
        "value_bytes": summary.size,
        "methods": {
            method: {
                outcome: {"calls": waits.calls, "wait_s": {_percent(at): s for at, s in waits.seconds.items()}}
                for outcome, waits in outcomes.items()
            }
            for method, outcomes in summary.waits.items()
        },
        "routes": dict(summary.routes),
        "doors": dict(summary.doors),
        "workers": [{**writer._asdict(), "calls": calls} for writer, calls in summary.workers.items()],
        "topics": summary.topics,
        "top_topics": [
            {"token": token, "topic": topic_text(names[token]) if token in names else None, "calls": calls}
            for token, calls in summary.top
        ],
    }


def duration(seconds: float) -> str:
    """Return seconds as people say them: 12 µs, 1.23 ms, 3.2 s, 5 min 20 s, 2 h 3 min."""
    if seconds < 0.000_999_5:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.999_5:
        return f"{seconds * 1e3:#.3g} ms".replace(". ", " ")
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def bytes_text(size: int) -> str:
    """Return a number of bytes as people say it."""
    if size < 1000:
        return f"{size} B"
    for unit, bytes in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if size < 999_500 * bytes / 1e3:
            return f"{size / bytes:.3g} {unit}"
    return f"{size / 1e12:,.3g} TB"


def topic(token: int, names: Names) -> str:
    """Return what a topic is called, or its token, as a terminal may have it."""
    name = names.get(token)
    return terminal.shown(topic_text(name), LONGEST_TOPIC) if name is not None else f"token {token}"


def name_of(node: str, name: str) -> str:
    """Return what a node is called, or else how its id begins."""
    return terminal.shown(name or node[:8], LONGEST_NAME)


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    columns = {
        "time_ns": run.times.tolist(),
        **{field: run.records[field].tolist() for field in ("connection", "token", "size")},
        **{field: [KINDS[field][kind] for kind in kinds(run.records, field).tolist()] for field in KINDS},
        "wait_us": waits_us(run.records).tolist(),
    }
    about = [_about(segment.header) for segment in run.segments]
    for at, origin in enumerate(run.origins.tolist()):
        yield about[origin] | {name: column[at] for name, column in columns.items()}


def _about(header: Header) -> dict[str, Any]:
    return {
        "node": header.node,
        "name": name_of(header.node, header.name),
        "worker": header.worker,
        "sample": header.sample,
        "ring": header.ring,
        "source": header.source,
    }


def _ends(summary: Summary) -> Iterator[str]:
    heads = ("method", "outcome", "calls", "share", *(f"wait {_percent(percent)}" for percent in PERCENTS))
    rows = [
        (
            method,
            outcome,
            f"{waits.calls:,}",
            f"{waits.calls / summary.calls:.1%}",
            *(duration(waits.seconds[percent]) for percent in PERCENTS),
        )
        for method, outcomes in summary.waits.items()
        for outcome, waits in outcomes.items()
    ]
    return _table(heads, rows, left=2)


def _places(summary: Summary) -> Iterator[Iterator[str]]:
    workers: Counter[str] = Counter()
    for (source, node, name, worker), calls in summary.workers.items():
        workers[
            f"{'' if source == 'node' else f'{terminal.shown(source, LONGEST_NAME)} '}{name_of(node, name)}/{worker}"
        ] += calls
    for head, counts in (("route", summary.routes), ("door", summary.doors), ("worker", workers)):
        rows = [(name, f"{calls:,}", f"{calls / summary.calls:.1%}") for name, calls in counts.items()]
        yield _table((head, "calls", "share"), rows, left=1)


def _topics(summary: Summary, names: Names) -> Iterator[str]:
    rest = summary.topics - len(summary.top)
    rows = [(topic(token, names), f"{calls:,}", f"{calls / summary.calls:.1%}") for token, calls in summary.top]
    yield from _table(("topic", "calls", "share"), rows, left=1)
    if rest:
        yield terminal.painted(f"and {rest:,} more topics", DIM)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> Iterator[str]:
    """Yield lines, the first `left` columns to the left and the others to the right."""
    head, *lines = aligned([heads, *rows], [at >= left for at in range(len(heads))])
    yield terminal.painted(head, DIM)
    yield from lines


def _percent(percent: float) -> str:
    return "longest" if percent == 100 else f"p{percent:g}"
