"""`skywalker silk members`: who is in a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.options import told_options
from skywalker.cli.silk import words
from skywalker.cli.silk.options import DEFAULT_ENDPOINT, SilkTold, endpoint, key_option, needing_pyzmq

if TYPE_CHECKING:
    from skywalker.cli.silk.survey import Found

ANSWER_S: Final = 2.0
"""Seconds in which each member must answer, unless told otherwise."""

GAP: Final = "  "
LONGEST_NAME: Final = 24
LEAST_HANDLES: Final = 16
"""Columns for what a member handles, however narrow the terminal."""

DIM, BOLD, GREEN, RED = "2", "1", "32", "31"


@click.command(short_help="Print who is in a cluster")
@click.argument("where", metavar="[ENDPOINT]", default=DEFAULT_ENDPOINT, callback=endpoint)
@key_option
@told_options
def members(where: str, keys: Path | None, timeout: float | None, as_json: bool) -> int:
    """Print the members of the cluster of the node at ENDPOINT, without joining it.

    Each of them is asked what it handles, and whom it sees; one that does not answer, or sees others, is named.
    --timeout is how long each may take to answer, 2s unless it is given.
    """
    with SilkTold(timeout, as_json).errors_told():
        started = time.monotonic()
        # Only now: help and mistakes should be quick.
        with needing_pyzmq():
            from skywalker.cli.silk.survey import survey
        found = survey(where, keys, ANSWER_S if timeout is None else timeout)
        if as_json:
            terminal.write(words.result("answered", started, value=_document(found)))
        else:
            terminal.write("".join(f"{line}\n" for line in _screen(found)).encode(errors="replace"))
    return exits.OK


def _document(found: Sequence[Found]) -> dict[str, Any]:
    nodes = [
        {**(each.node.as_map() if each.answers else each.node.brief()), "problem": each.problem or None}
        for each in found
    ]
    return {"agreed": not any(each.problem for each in found), "nodes": nodes}


def _screen(found: Sequence[Found]) -> Iterator[str]:
    count = f"{len(found)} node{'' if len(found) == 1 else 's'}"
    ordered = sorted(found, key=lambda each: (each.node.name, each.node.id))
    problems = [each for each in ordered if each.problem]
    yield ""
    yield "  " + terminal.painted(f"cluster of {count}", BOLD)
    yield ""
    yield from _table([_row(each) for each in ordered])
    yield ""
    if not problems:
        yield "  " + terminal.painted("the node is alone" if len(found) == 1 else "all see each other", GREEN)
    else:
        yield "  " + terminal.painted(f"{len(found) - len(problems)} of {count} see the same", RED)
    for each in problems:
        yield f"  {terminal.shown(str(each.node))} {terminal.shown(each.problem)}"
    yield ""


def _row(each: Found) -> dict[str, str]:
    node = each.node
    return {
        "name": terminal.shown(node.name, LONGEST_NAME) or "-",
        "id": terminal.shown(node.id[:8]),
        "endpoint": terminal.shown(node.router),
        "skywalker": terminal.shown(str(node.serves or "")),
        "handles": terminal.shown(", ".join(node.messages)) or "-" if each.answers else "?",
    }


def _table(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    columns = [name for name in rows[0] if name != "skywalker" or any(row[name] for row in rows)]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in columns}
    if os.isatty(terminal.STDOUT):  # elsewhere there is room for everything
        *others, last = columns
        room = terminal.width() - sum(widths[name] + len(GAP) for name in others) - len(GAP)
        widths[last] = min(widths[last], max(room, LEAST_HANDLES))
    yield terminal.painted(_aligned({name: name for name in columns}, widths), DIM)
    for row in rows:
        yield _aligned(row, widths)


def _aligned(row: dict[str, str], widths: dict[str, int]) -> str:
    return GAP + GAP.join(f"{terminal.shown(row[name], width):<{width}}" for name, width in widths.items()).rstrip()
