"""`skywalker ring` and `skywalker route`: the commands."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.forms import Form
from skywalker.cli.options import Asked, argument, form_options, node_options, result
from skywalker.errors import TimedOut
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

if TYPE_CHECKING:
    from skywalker.cli.ring.views import View
    from skywalker.clients.blocking.client import Client
    from skywalker.members import Snapshot

VIEW_S: Final = 2.0
"""Seconds in which each node of the ring must say which it uses, or less if --timeout is shorter."""

LOOK_S: Final = 0.1
"""Seconds from one look to the next, while nodes are awaited."""

FORMATS: Final = (".png", ".svg")


def _picture(ctx: click.Context, param: click.Parameter, file: Path | None) -> Path | None:
    if file is not None and file.suffix not in FORMATS:
        raise click.BadParameter(f"{str(file)!r} does not end in {' or '.join(FORMATS)}", ctx, param)
    return file


@click.command(short_help="Print which node owns how much")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_picture,
    metavar="FILE",
    help="also draw it, to a .png or .svg",
)
@click.option(
    "--await",
    "count",
    type=click.IntRange(1),
    metavar="N",
    help="first wait, for --timeout at most, until N nodes are there and agree",
)
@node_options
def ring(asked: Asked, plot: Path | None, count: int | None) -> int:
    """Print the nodes of the cluster as the node sees it, which part of all topics each owns, and who owns what.

    Every node is then asked which ring it uses; one that does not answer, or uses another, is named.
    """
    from skywalker.cli.ring.screen import Screen

    timeout = DEFAULT_CONTROL_TIMEOUT_S if asked.timeout is None else asked.timeout
    began = time.monotonic()
    with asked.junction(connect_timeout=None if count is None else timeout) as junction:
        started = time.monotonic()
        snapshot, seen = _seen(asked, junction, timeout)
        while count is not None and (len(snapshot) < count or any(view.problem for view in seen)):
            if time.monotonic() - began >= timeout:
                agree = sum(not view.problem for view in seen)
                raise TimedOut(f"after {timeout:g} s {agree} of {count} nodes are there and agree")
            time.sleep(LOOK_S)
            snapshot, seen = _seen(asked, junction, timeout)
        if plot is not None:
            from skywalker.cli.ring.picture import draw

            draw(snapshot, plot)
        if asked.as_json:
            terminal.write(result("answered", started, value=_document(snapshot, seen)))
        else:
            _print(Screen(snapshot, seen).lines())
    return exits.OK


def _seen(asked: Asked, junction: Client, timeout: float) -> tuple[Snapshot, list[View]]:
    from skywalker.cli.ring.views import snapshot_of, views

    snapshot = snapshot_of(junction, timeout)
    return snapshot, views(snapshot, min(timeout, VIEW_S), asked.connect)


def _document(snapshot: Snapshot, seen: Sequence[View]) -> dict[str, Any]:
    from skywalker.members import Place

    shares, places = snapshot.shares(), snapshot.ring.shares()
    return {
        "version": snapshot.version,
        "agreed": not any(view.problem for view in seen),
        "nodes": [
            {
                **view.member.as_map(),
                "share": shares[view.member.id],
                "of_fair": shares[view.member.id] * len(snapshot),
                "worker_shares": [
                    places.get(Place(view.member.id, worker), 0.0) for worker in range(view.member.workers)
                ],
                "ring": view.ring,
                "problem": view.problem or None,
                "unproven": dict(view.unproven),
            }
            for view in seen
        ],
    }


@click.command(short_help="Print which node owns a topic")
@click.argument("topic")
@form_options
@node_options
def route(asked: Asked, topic: str, form: Form) -> int:
    """Print the token of TOPIC, and the node and the worker where its calls meet. TOPIC is JSON, or a bare word."""
    from skywalker.cli.ring.screen import named, shown
    from skywalker.cli.ring.views import snapshot_of
    from skywalker.ring import token_of
    from skywalker.wire import values

    where = argument(form, "TOPIC", topic)
    token = token_of(values.canonical(values.pack(where)))
    with asked.junction() as junction:
        started = time.monotonic()
        snapshot = snapshot_of(junction, DEFAULT_CONTROL_TIMEOUT_S if asked.timeout is None else asked.timeout)
        place = snapshot.ring.owner(token)
        owner = snapshot.by_id[place.node]
        if asked.as_json:
            about = {key: value for key, value in owner.as_map().items() if key != "tokens"}
            found = {"token": token, "worker": place.worker, "node": about, "version": snapshot.version}
            terminal.write(result("answered", started, value=found))
        else:
            rows = {
                "token": str(token),
                "node": named(owner),
                "id": shown(owner.id, 255),
                "worker": f"{place.worker}, of 0 to {owner.workers - 1}",
            }
            _print(f"{label:<8}{text}" for label, text in rows.items())
    return exits.OK


def _print(lines: Iterable[str]) -> None:
    terminal.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
