"""The command: three nodes, what they find each other by, and a client, on one screen. Leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skywalker.cli import exits
from skywalker.cli.demo.command import ctrl_c_waits, text
from skywalker.errors import SkywalkerError

if TYPE_CHECKING:
    from skywalker.cli.demo_cluster.discovery import Addresses, Discovery
    from skywalker.cli.demo_cluster.fleet import Fleet
    from skywalker.cli.demo_cluster.screen import Screen


@click.command(short_help="Watch a cluster while its nodes come and go")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option("--seconds", type=click.FloatRange(1, 3600), default=15.0, metavar="N", help="how long to send")
@click.option("--rate", type=click.FloatRange(1, 100_000), default=1000.0, metavar="N", help="lines a second")
@click.option(
    "--discovery",
    type=click.Choice(["silk", "consul", "list"]),
    default="silk",
    show_default=True,
    help="how the nodes find each other",
)
def demo_cluster(file: Path | None, seconds: float, rate: float, discovery: str) -> int:
    """Start a cluster of three nodes, and send the lines of FILE through it while one is killed, one joins, one drains.

    The nodes find each other by Silk, in a Consul of the demo's own, or by a list, which will do wherever one of the
    others is not installed. In the end, what arrived is compared with what was sent; a line that was lost makes the
    exit status 1. Without FILE, some text is found on this machine.
    """
    file = text(file)
    # Only now: help reads this file too.
    from skywalker.cli.demo_cluster.run import run
    from skywalker.cli.demo_cluster.screen import Screen

    screen = Screen()
    screen.title("skywalker demo-cluster")
    with _fleet(discovery, screen, file, rate) as fleet:
        return exits.OK if run(fleet, file, seconds, rate, screen) else exits.FAILED


@contextlib.contextmanager
def _fleet(wanted: str, screen: Screen, file: Path, rate: float) -> Iterator[Fleet]:
    from skywalker.cli.demo_cluster.discovery import by_list
    from skywalker.cli.demo_cluster.fleet import Fleet
    from skywalker.cli.demo_cluster.ports import free_addresses
    from skywalker.cli.demo_cluster.run import TAKERS
    from skywalker.cli.demo_cluster.story import FIRST, NAMES
    from skywalker.cli.demo_cluster.traffic import TOPICS

    with contextlib.ExitStack() as stack:
        with ctrl_c_waits():
            addresses, note = free_addresses(NAMES), ""
            try:
                discovery = _discovery(wanted, addresses, stack)
            except SkywalkerError as error:
                discovery, note = by_list(addresses), f"without {wanted.title()}: {error}"
            fleet = stack.enter_context(Fleet.sailing(addresses, discovery, FIRST))
        try:
            route = screen.flow("1 sender", f"{TOPICS} topics", f"{TAKERS} taker processes")
            screen.start(file, f"{route}, {rate:,.0f} lines/s", f"{len(FIRST)}, which {discovery.text}", note)
            yield fleet
        finally:
            with ctrl_c_waits():
                stack.close()


def _discovery(wanted: str, addresses: Addresses, stack: contextlib.ExitStack) -> Discovery:
    """Return how the nodes are to find each other. Raises SkywalkerError if what that takes is not to be had."""
    from skywalker.cli.demo_cluster import discovery
    from skywalker.cli.demo_cluster.discovery import consul
    from skywalker.discovery import silk

    match wanted:
        case "silk":
            silk.require()
            return discovery.by_silk(addresses)
        case "consul":
            return discovery.by_consul(addresses, stack.enter_context(consul()))
    return discovery.by_list(addresses)
