"""The ring on a terminal: a table of its nodes, a band of letters that shows who owns what, and who sees another."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from skywalker.cli import terminal
from skywalker.cli.ring.views import View
from skywalker.members import Arc, Member, Snapshot, arcs
from skywalker.ring import TOKENS

LOWEST: Final = -TOKENS // 2
"""The lowest of all tokens, where a drawing begins."""


def columns(ring: Sequence[Arc], count: int) -> list[str]:
    """Cut a ring into `count` equal parts, from the lowest token up; return who owns the most of each."""
    owned: list[Counter[str]] = [Counter() for _ in range(count)]
    for arc in ring:
        # In units of which a column has TOKENS, so that no part is rounded away.
        at = (arc.start - LOWEST) * count
        end = at + arc.length * count
        while at < end:
            column, into = divmod(at, TOKENS)
            part = min(end - at, TOKENS - into)
            owned[column % count][arc.share.node] += part
            at += part
    return [owners.most_common(1)[0][0] for owners in owned]


INDENT: Final = "  "
MARKS: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits
OTHER: Final = "."
"""The mark of every node beyond those that have one of their own."""

WIDEST: Final = 100
"""Columns that are used of a wide terminal."""
ROWS: Final = 4
"""Lines of the band, so that even a narrow terminal shows more parts than a small cluster has tokens."""
LONGEST_NAME: Final = 24
LONGEST_ADDRESS: Final = 48
LONGEST_PROBLEM: Final = 400

DIM, BOLD, GREEN, RED = "2", "1", "32", "31"
GROUNDS: Final = (75, 179, 114, 210, 141, 80, 186, 175, 109, 216, 150, 147)
"""Colours of the 256 on which black letters can be read; neighbours in the table differ."""

_UNNEEDED: Final = ("tokens", "id", "workers", "busiest worker", "address")
"""Columns of the table that a narrow terminal goes without, the first one first."""


class Screen:
    """Makes the lines that `skywalker ring` prints."""

    def __init__(self, snapshot: Snapshot, views: Sequence[View]) -> None:
        self._snapshot = snapshot
        self._views = views
        self._width = max(20, min(terminal.width(), WIDEST) - len(INDENT))
        self._members = sorted(snapshot, key=lambda member: (member.name, member.id))
        marks = [*MARKS[: len(self._members)], *OTHER * (len(self._members) - len(MARKS))]
        self._busiest = _busiest_workers(snapshot)
        self._marks = {member.id: mark for member, mark in zip(self._members, marks, strict=True)}

    def lines(self) -> Iterator[str]:
        """Yield them without their ends."""
        for part in (self._title(), self._table(), self._band(), self._verdict()):
            yield ""
            yield from (INDENT + line for line in part)
        yield ""

    def _title(self) -> Iterator[str]:
        nodes = counted(len(self._members), "node")
        tokens = counted(sum(len(member.tokens) for member in self._members), "token")
        yield terminal.painted(f"ring {self._snapshot.version}", BOLD)
        yield f"{nodes}, {tokens}"
        yield f"a fair share is {1 / len(self._members):.2%}"

    def _table(self) -> Iterator[str]:
        shares = self._snapshot.shares()
        rows = [self._row(member, shares[member.id]) for member in self._members]
        widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
        for name in _UNNEEDED:
            if sum(widths.values()) + 2 * len(widths) + 1 > self._width:
                del widths[name]
        yield " " * 3 + terminal.painted(_aligned({name: name for name in widths}, widths), DIM)
        for member, row in zip(self._members, rows, strict=True):
            yield f"{self._painted(member.id)}  {_aligned(row, widths)}".rstrip()

    def _row(self, member: Member, share: float) -> dict[str, str]:
        return {
            "name": shown(member.name or "-"),
            "address": shown(str(member.address), LONGEST_ADDRESS),
            "id": shown(member.id[:8]),
            "workers": str(member.workers),
            "busiest worker": self._busiest.get(member.id, "-"),
            "tokens": str(len(member.tokens)),
            "share": f"{share:.2%}",
            "of fair": f"{share * len(self._members):.2f}",
        }

    def _band(self) -> Iterator[str]:
        owners = columns(arcs(self._snapshot), self._width * ROWS)
        for start in range(0, len(owners), self._width):
            yield self._run(owners[start : start + self._width])
        yield terminal.painted("tokens ascending, line by line"[: self._width], DIM)

    def _run(self, owners: Sequence[str]) -> str:
        """Return one line of the band; neighbours of one colour are painted together."""
        pieces: list[str] = []
        start = 0
        for at in range(1, len(owners) + 1):
            if at == len(owners) or owners[at] != owners[start]:
                pieces.append(self._painted(owners[start], at - start))
                start = at
        return "".join(pieces)

    def _painted(self, node: str, times: int = 1) -> str:
        mark = self._marks[node]
        ground = f"38;5;16;48;5;{GROUNDS[MARKS.index(mark) % len(GROUNDS)]}" if mark != OTHER else DIM
        return terminal.painted(mark * times, ground)

    def _verdict(self) -> Iterator[str]:
        count = len(self._views)
        others = sorted((view for view in self._views if view.problem), key=lambda view: view.member.name)
        agree = count - len(others)
        if not others:
            yield terminal.painted(f"{'the node uses' if count == 1 else 'all nodes use'} this ring", GREEN)
        else:
            yield terminal.painted(f"{agree:,} of {counted(count, 'node')} use this ring", RED)
        for view in others:
            yield f"{named(view.member)} {shown(view.problem, LONGEST_PROBLEM)}"
        yield from self._strangers()

    def _strangers(self) -> Iterator[str]:
        """Say who was found where a node should be, and is none of this cluster; once, whoever has found it."""
        found: dict[str, str] = {}
        for view in self._views:
            for address, reason in view.unproven.items():
                found.setdefault(address, f"{shown(address, LONGEST_ADDRESS)}, as {named(view.member)} says: {reason}")
        for text in found.values():
            yield terminal.painted("not in the ring: ", RED) + shown(text, LONGEST_PROBLEM)


def named(member: Member) -> str:
    """Return the name of a node, and its address."""
    return f"{shown(member.name or member.id)} ({shown(str(member.address), LONGEST_ADDRESS)})"


def shown(text: str, longest: int = LONGEST_NAME) -> str:
    """Return what a node says of itself as a terminal may have it: no escapes, and not endless."""
    return terminal.shown(text, longest)


def counted(number: int, noun: str) -> str:
    """Return "1 node" or "2 nodes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _busiest_workers(snapshot: Snapshot) -> dict[str, str]:
    """Return by node which of its workers owns the most, and how many fair shares of a worker that is.

    A node that owns nothing, since another has the same tokens, is not there.
    """
    workers = sum(member.workers for member in snapshot)
    ascending = sorted((share, place) for place, share in snapshot.ring.shares().items())
    which = "all" if snapshot.slicing else "{}"
    return {place.node: f"{which.format(place.worker)} at {share * workers:.2f}" for share, place in ascending}


def _aligned(row: Mapping[str, str], widths: Mapping[str, int]) -> str:
    left = ("name", "address", "id")
    return "  ".join(
        f"{row[name]:<{width}}" if name in left else f"{row[name]:>{width}}" for name, width in widths.items()
    )
