"""`skywalker silk members` and `watch`: who is in a cluster, and who joins, leaves and fails."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.options import told_options
from skywalker.cli.silk.options import (
    DEFAULT_ENDPOINT,
    Asked,
    SilkTold,
    endpoint,
    key_option,
    needing_pyzmq,
    node_options,
    printed,
    result,
)
from skywalker.errors import Unreachable

if TYPE_CHECKING:
    from skywalker.silk import NodeInfo
    from skywalker.silk.events import Event

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
        found = survey(where, keys, ANSWER_S if timeout is None else timeout)
        if as_json:
            terminal.write(result("answered", started, value=_document(found)))
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


AT_ONCE: Final = 32
"""Members that are asked at a time, so that those that do not answer take the time of one or two."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """One member."""

    node: NodeInfo
    answers: bool  # else no more is known of it than others say
    problem: str = ""  # in words


def survey(endpoint: str, keys: Path | None, timeout: float) -> list[Found]:
    """Ask whoever is at an endpoint, and then all members that it sees, in `timeout` seconds each.

    Raises Unreachable if nobody answers at the endpoint.
    """
    with needing_pyzmq():
        from skywalker.silk import ask
    first = ask(endpoint, keys=keys, timeout=timeout)
    everyone = {node.id: node for node in first}
    look = functools.partial(_look, everyone=everyone, keys=keys, timeout=timeout)
    from concurrent.futures import ThreadPoolExecutor  # only now: help should be quick

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return [Found(first[0], answers=True), *threads.map(look, first[1:])]


def _look(node: NodeInfo, everyone: dict[str, NodeInfo], keys: Path | None, timeout: float) -> Found:
    from skywalker.silk import ask

    try:
        seen = ask(node.router, keys=keys, timeout=timeout)
    except Unreachable:
        return Found(node, answers=False, problem=f"did not answer within {timeout:g} s")
    if seen[0].id != node.id:
        return Found(node, answers=False, problem="is not who answers at its endpoint")
    return Found(seen[0], answers=True, problem=_difference(seen, everyone))


def _difference(seen: Sequence[NodeInfo], everyone: dict[str, NodeInfo]) -> str:
    """Return in words what else a member sees than the first one does."""
    ids = {node.id for node in seen}
    missed = [node.name or id for id, node in everyone.items() if id not in ids]
    more = [node.name or node.id for node in seen if node.id not in everyone]
    parts = (f"does not see {', '.join(missed)}" if missed else "", f"also sees {', '.join(more)}" if more else "")
    return " and ".join(part for part in parts if part)


_COLOURS: Final = {"joined": "32", "left": "33", "failed": "31", "suspected": "35"}


@click.command(short_help="Print who joins, leaves and fails")
@click.argument("where", metavar="[ENDPOINT]", default=DEFAULT_ENDPOINT, callback=endpoint)
@node_options
def watch(asked: Asked, where: str) -> int:
    """Join the cluster at ENDPOINT, and print what becomes of its members, until interrupted.

    Who is there already has joined, too. A member is suspected when it has been silent for three of its keepalive
    periods; then it has recovered, or has failed, within one more. A member that says something new of itself, such as
    what it handles, has changed. --timeout is how long somebody may take to answer at ENDPOINT, 5s unless it is given.
    """
    with asked.node(where) as node:
        events = node.events()
        node.join(where, asked.join_timeout)
        for event in events:
            terminal.write(_as_json(event) if asked.as_json else _line(event))
    return exits.OK


def _line(event: Event) -> bytes:
    name = type(event).__name__.lower()
    clock = datetime.datetime.now().strftime("%H:%M:%S.%f")[:-3]
    word = terminal.painted(f"{name:<9}", _COLOURS.get(name, "0"))
    return f"{clock}  {word}  {terminal.shown(str(event.node))}\n".encode(errors="replace")


def _as_json(event: Event) -> bytes:
    return printed({"status": type(event).__name__.lower(), "time": time.time(), "node": event.node.as_map()})
