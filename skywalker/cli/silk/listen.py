"""`skywalker silk listen`: a node that handles messages by printing them."""

from __future__ import annotations

import functools
import itertools
import time
from typing import Any

import click

from skywalker.cli import exits, terminal
from skywalker.cli.silk import words
from skywalker.cli.silk.options import MOMENT_S, Asked, endpoint, node_options


def _reply(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
    return None if text is None else words.argument("--reply", text)


@click.command(short_help="Handle messages by printing them")
@click.option("--type", "types", multiple=True, required=True, metavar="TYPE", help="what to handle; may be repeated")
@click.option("--join", metavar="ENDPOINT", callback=endpoint, help="where a member of the cluster is")
@click.option("--reply", metavar="JSON", callback=_reply, help="what to reply to who asks; null unless it is given")
@click.option("--count", type=click.IntRange(1), metavar="N", help="end after this many messages")
@node_options
def listen(asked: Asked, types: tuple[str, ...], join: str | None, reply: Any, count: int | None) -> int:
    """Be a node that handles messages of the TYPEs: the data of each is printed as a line of JSON, and replied to.

    Without --join it is the first of a cluster, and takes messages at 127.0.0.1:3444; with it, at any free port. Where
    others can join it is said on standard error. It goes on until interrupted. --timeout is how long somebody may take
    to answer where it joins, 5s unless it is given.
    """
    # Only now: help and mistakes should be quick.
    from skywalker.cli.silk.inbox import Inbox

    inbox = Inbox(asked.as_json)
    with asked.node(join) as node, inbox.open():
        for type in types:
            node.handle(type, functools.partial(inbox.handle, type, reply))
        if join is not None:
            node.join(join, asked.join_timeout)
        if asked.as_json:
            terminal.write(words.printed({"status": "listening", "node": node.info.as_map()}))
        else:
            click.echo(f"listening at {node.info.router}, where others can join", err=True)
        for _ in itertools.count() if count is None else range(count):
            inbox.print_next()
        time.sleep(MOMENT_S)
    return exits.OK
