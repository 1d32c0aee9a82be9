"""What a node tells of itself, in words and tables: for all commands that ask its admin server."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from skywalker.cli import terminal

NONE: Final = "-"
LONGEST_TEXT: Final = 60

_BARS: Final = "▁▂▃▄▅▆▇"
"""None as high as its line, so that lines of them stand apart."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def text(value: Any) -> str:
    """Return what others say as a terminal may have it."""
    return NONE if value in (None, "") else terminal.shown(str(value), LONGEST_TEXT)


def number(value: float | None) -> str:
    """Return a count or a rate: 1,234, 12.3M; a rate below 10 has a decimal."""
    if value is None:
        return NONE
    for factor, letter in ((1e9, "G"), (1e6, "M")):
        if abs(value) >= 10 * factor:
            return f"{value / factor:,.1f}{letter}"
    return f"{value:.1f}" if 0 < abs(value) < 10 and value != int(value) else f"{value:,.0f}"


def size(value: float | None) -> str:
    """Return bytes: 17 B, 1.5 MiB."""
    if value is None:
        return NONE
    power = 0
    while abs(value) >= 1024 and power < len(_UNITS) - 1:
        value /= 1024
        power += 1
    return (
        f"{value:.0f} B"
        if not power
        else f"{value:.3g} {_UNITS[power]}"
        if value < 1000
        else f"{value:.0f} {_UNITS[power]}"
    )


def span(seconds: float | None) -> str:
    """Return a time that passed: 80 µs, 1.2 ms, 3.4 s, 5m 03s, 3h 12m, 3d 04h."""
    if seconds is None:
        return NONE
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for big, small, letters in ((86_400, 3600, "dh"), (3600, 60, "hm"), (60, 1, "ms")):
        if whole >= big:
            return f"{whole // big}{letters[0]} {whole % big // small:02}{letters[1]}"
    raise AssertionError("it is a minute at least")


def part(value: float | None) -> str:
    """Return a part of 1 in percent."""
    return NONE if value is None else f"{value:.0%}"


def flag(value: bool | None) -> str:
    """Return whether something is so."""
    return NONE if value is None else "yes" if value else "no"


def spark(values: Sequence[float | None], width: int) -> str:
    """Return values as `width` bars above 0, each the highest of its share of them; a gap where there was none."""
    count = len(values)
    shares = [
        values[at * count // width : max((at + 1) * count // width, at * count // width + 1)] for at in range(width)
    ]
    peaks = [max((value for value in share if value is not None), default=None) for share in shares]
    highest = max((peak for peak in peaks if peak is not None), default=0.0)
    top = len(_BARS) - 1
    return "".join(" " if peak is None else _BARS[round(top * peak / highest) if highest > 0 else 0] for peak in peaks)


Row = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column. `shown` writes a value of it."""

    title: str
    shown: Callable[[Any], str] = text
    order: str = ""  # by what the node sorts if the table is sorted by this, where it has an order for it

    @property
    def right(self) -> bool:
        """Whether it is aligned to the right, as what can be compared is."""
        return self.shown in (number, size, span, part)


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


Document = dict[str, Any]

STATE: Final = "/api/state"
HISTORY: Final = "/api/history"
TOPICS: Final = "/api/topics"
CONNECTIONS: Final = "/api/connections"


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """One table of a node, and what it is made of."""

    name: str
    path: str  # of the document
    columns: tuple[Column, ...]
    table: Callable[[Document], Table]
    by: int = 0  # the column that it is sorted by unless told otherwise
    descending: bool = False

    def order(self, by: int) -> str:
        """Return by what a node is to sort, for a table sorted by a column; empty for a document that has no order."""
        return self.columns[by].order or self.columns[self.by].order


_WORKERS: Final = (
    Column("worker"),
    Column("state"),
    Column("cpu", part),
    Column("memory", size),
    Column("calls/s", number),
    Column("share", part),
    Column("away", part),
    Column("waiting", number),
    Column("conns", number),
    Column("topics", number),
    Column("turn p99", span),
    Column("beat", span),
    Column("pid"),
    Column("choked", number),
    Column("held", size),
    Column("unread", size),
    Column("unsent", size),
)


def _workers(state: Document) -> Table:
    rows = [
        (
            each["slot"],
            each["state"],
            each["cpu"],
            each["rss"],
            each["calls"],
            each["share"],
            each["forwarded"],
            sum(each["waiting"].values()),
            each["connections"],
            each["topics"],
            each["turn_p99"],
            each["beat_age"],
            each["pid"],
            each["choked"],
            each["held_bytes"],
            each["unread_bytes"],
            sum(each["unsent_bytes"].values()),
        )
        for each in state["workers"]
    ]
    return Table(_WORKERS, rows)


_TOPICS: Final = (
    Column("topic"),
    Column("worker"),
    Column("oldest", span, "waiting"),
    Column("calls/s", number, "rate"),
    Column("of worker", part, "rate"),
    Column("senders", number),
    Column("receivers", number),
    Column("takers", number),
    Column("subscribers", number),
)


def _topics(document: Document) -> Table:
    names = ("topic", "worker", "since", "rate", "share", "senders", "receivers", "takers", "subscribers")
    rows = [tuple(each[name] for name in names) for each in document["topics"]]
    return Table(_TOPICS, rows, key=2, note=_note(document, "topics", len(rows)))


_CONNECTIONS: Final = (
    Column("peer"),
    Column("worker"),
    Column("name"),
    Column("door"),
    Column("age", span, "age"),
    Column("waiting", number, "waiting"),
    Column("subscribed", number),
    Column("unread", size, "unread"),
    Column("choked", flag),
)


def _connections(document: Document) -> Table:
    names = ("peer", "worker", "name", "door", "age", "waiting", "subscriptions", "unread_bytes", "choked")
    rows = [tuple(each[name] for name in names) for each in document["connections"]]
    return Table(_CONNECTIONS, rows, key=2, note=_note(document, "connections", len(rows)))


def _clock(unix: float | None) -> str:
    return NONE if unix is None else time.strftime("%H:%M:%S", time.localtime(unix))


_CLOSED: Final = (Column("closed", _clock), Column("peer"), Column("worker"), Column("reason"), Column("in words"))


def _closed(document: Document) -> Table:
    names = ("time", "peer", "worker", "reason", "text")
    rows = [tuple(each[name] for name in names) for each in document["closed"]]
    return Table(_CLOSED, rows, key=3)


_COUNTS: Final = (Column("of"), Column("what"), Column("since the start", number))


def _counts(state: Document) -> Table:
    return Table(_COUNTS, [row for row in _totals(state) if row[-1]], key=2)


def _totals(state: Document) -> Iterator[Row]:
    for method, outcomes in state["calls"].items():
        yield from (("calls", f"{method} {outcome}", total) for outcome, total in outcomes.items())
    for name, of in (
        ("routed", "routed"),
        ("moves", "connections moved"),
        ("closes", "connections closed"),
        ("limits_hit", "limits hit"),
        ("errors", "errors answered"),
        ("restarts", "restarts"),
        ("reloads", "reloads"),
    ):
        totals: Mapping[str, int] = state[name]
        yield from ((of, what, total) for what, total in totals.items())


_PROCESSES: Final = (
    Column("process"),
    Column("pid"),
    Column("cpu", part),
    Column("memory", size),
    Column("open files", number),
)


def _processes(state: Document) -> Table:
    names = ("name", "pid", "cpu", "rss", "open_files")
    return Table(_PROCESSES, [tuple(each[name] for name in names) for each in state["processes"]])


def _note(document: Document, noun: str, listed: int) -> str:
    """Say how many there are where not all are listed, and what nobody could look at."""
    there, looked_at = document[f"{noun}_in_all"], document["looked_at"]
    notes = [f"{listed:,} of {there:,}" if listed < there else f"{there:,}"]
    if looked_at < there:
        notes.append(f"{looked_at:,} looked at")
    if document["silent"]:
        notes.append(f"no answer from worker {', '.join(map(str, document['silent']))}")
    return "; ".join(notes)


VIEWS: Final = (
    View("workers", STATE, _WORKERS, _workers),
    View("topics", TOPICS, _TOPICS, _topics, by=2, descending=True),
    View("connections", CONNECTIONS, _CONNECTIONS, _connections, by=7, descending=True),
    View("closed", CONNECTIONS, _CLOSED, _closed, by=0, descending=True),
    View("counts", STATE, _COUNTS, _counts),
    View("processes", STATE, _PROCESSES, _processes),
)
"""The tables, in the order of the keys that choose them."""


def condition(state: Mapping[str, Any]) -> str:
    """Return in one word how a node is: "serving", "draining" or "not ready"."""
    node = state["node"]
    return "draining" if node["draining"] else "serving" if node["ready"] else "not ready"


def workers(state: Mapping[str, Any]) -> str:
    """Return how many workers serve, of how many."""
    return f"{sum(1 for each in state['workers'] if each['state'] == 'serving')} of {state['node']['workers']}"


def uptime(state: Mapping[str, Any]) -> str:
    """Return how long the node has run."""
    return span(max(0.0, state["time"] - state["node"]["started"]))


def waiting(state: Mapping[str, Any]) -> str:
    """Return who waits, by kind."""
    return ", ".join(f"{number(count)} {text(kind)}" for kind, count in state["waiting"].items())


def facts(state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels and texts."""
    node, ring, rates = state["node"], state["ring"], state["rates"]
    steering = "steering" if node["steering"] else "no steering"
    yield "node", f"{text(node['name'])} at {text(node['address'])}, pid {text(node['pid'])}, id {text(node['id'])}"
    yield "version", f"{text(node['version'])}, {steering}"
    yield "state", f"{condition(state)}, {workers(state)} workers serve, up {uptime(state)}"
    yield "ring", f"{text(ring['version'])}, {number(ring['nodes'])} node{'' if ring['nodes'] == 1 else 's'}"
    yield "calls", f"{number(rates['calls'])}/s, of which {number(rates['met'])}/s met"
    yield "bytes", f"{size(rates['bytes_received'])}/s in, {size(rates['bytes_sent'])}/s out"
    for label, key in (("hand-off", "hand_off"), ("wait", "wait")):
        times = state["latency"][key]
        yield label, f"p50 {span(times['p50'])}, p99 {span(times['p99'])} in the last minute"
    yield "waiting", waiting(state)
    yield "connections", number(state["connections"])
