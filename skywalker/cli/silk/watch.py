"""`skywalker silk watch`: who joins, leaves and fails."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.silk.options import DEFAULT_ENDPOINT, Asked, endpoint, node_options
from skywalker.cli.silk.words import printed

if TYPE_CHECKING:
    from skywalker.silk.events import Event

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
