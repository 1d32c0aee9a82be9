"""`skywalker silk request`: a message to one node, or to all that handle its type."""

from __future__ import annotations

import click

from skywalker.cli.options import standard_input
from skywalker.cli.silk.options import (
    DEFAULT_ENDPOINT,
    Asked,
    argument,
    ended_by_sigterm,
    endpoint,
    needing_pyzmq,
    node_options,
    read,
)
from skywalker.json_form import FormError


@click.command(short_help="Ask a node, or all that handle a type")
@click.argument("type")
@click.argument("data", default="null", metavar="[DATA]")
@click.option(
    "--join",
    metavar="ENDPOINT",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    callback=endpoint,
    help="where a member of the cluster is",
)
@click.option("--node", "to", metavar="NODE", help="ask this one, by its name, its id or the beginning of that")
@click.option("--all", "to_all", is_flag=True, help="ask all that handle TYPE: a line for each, as they reply")
@click.option("--tell", is_flag=True, help="want no reply: it is sent once, and may be lost")
@click.option("--broadcast", is_flag=True, help="likewise, to all that handle TYPE")
@node_options
def request(
    asked: Asked, type: str, data: str, join: str, to: str | None, to_all: bool, tell: bool, broadcast: bool
) -> int:
    """Join a cluster, send a message of TYPE to a node that handles it, print the data of the reply, and leave.

    DATA is JSON; a bare word is a string, - is standard input, and without it there is none: null. The message is sent
    again as often as the node says of the type, else once; if that was in vain, the exit status is 3. --timeout is the
    time for all of it.
    """
    if sum((to is not None, to_all, broadcast)) > 1:
        raise click.UsageError("--node, --all and --broadcast exclude each other")
    if tell and (to_all or broadcast):
        raise click.UsageError("--tell is for one node; --broadcast alone tells all")
    what = _standard_input() if data == "-" else argument("DATA", data)
    with asked.errors_told(), ended_by_sigterm():
        with needing_pyzmq():
            from skywalker.cli.silk.errand import Errand  # only now: help and mistakes should be quick
        errand = Errand(asked, type, what, to)
        if to_all:
            return errand.run(join, errand.ask_all)
        return errand.run(join, errand.broadcast if broadcast else errand.tell if tell else errand.ask)


def _standard_input() -> object:
    try:
        return read(b"".join(standard_input()))
    except FormError as error:
        raise click.UsageError(f"standard input: {error}") from error
