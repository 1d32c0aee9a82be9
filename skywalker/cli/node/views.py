"""The tables of one node, each made of a document of its admin API. One of another shape raises what it may."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from skywalker.cli.node.table import Column, Row, Table
from skywalker.cli.node.words import NONE, flag, number, part, size, span

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
    Column("senders", number),
    Column("receivers", number),
    Column("takers", number),
    Column("subscribers", number),
)


def _topics(document: Document) -> Table:
    names = ("topic", "worker", "since", "rate", "senders", "receivers", "takers", "subscribers")
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
