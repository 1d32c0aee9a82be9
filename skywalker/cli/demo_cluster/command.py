"""The command: three nodes, the Consul they find each other by, and a client, on one screen. Leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skywalker.cli import exits
from skywalker.cli.demo.command import ctrl_c_waits, text

if TYPE_CHECKING:
    from skywalker.cli.demo_cluster.fleet import Fleet
    from skywalker.cli.demo_cluster.screen import Screen


@click.command(short_help="Watch a cluster while its nodes come and go")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option("--seconds", type=click.FloatRange(1, 3600), default=15.0, metavar="N", help="how long to send")
@click.option("--rate", type=click.FloatRange(1, 100_000), default=1000.0, metavar="N", help="lines a second")
@click.option("--static", is_flag=True, help="have the nodes find each other by a list, also where there is a Consul")
def demo_cluster(file: Path | None, seconds: float, rate: float, static: bool) -> int:
    """Start a cluster of three nodes, and send the lines of FILE through it while one is killed, one joins, one drains.

    The nodes find each other in a Consul of the demo's own where `consul` is installed, else by a list. In the end,
    what arrived is compared with what was sent; a line that was lost makes the exit status 1. Without FILE, some text
    is found on this machine.
    """
    file = text(file)
    # Only now: help reads this file too.
    from skywalker.cli.demo_cluster.run import run
    from skywalker.cli.demo_cluster.screen import Screen

    screen = Screen()
    screen.title("skywalker demo-cluster")
    with _fleet(static, screen, file, rate) as fleet:
        return exits.OK if run(fleet, file, seconds, rate, screen) else exits.FAILED


@contextlib.contextmanager
def _fleet(static: bool, screen: Screen, file: Path, rate: float) -> Iterator[Fleet]:
    from skywalker.cli.demo_cluster.consul import ConsulError, consul
    from skywalker.cli.demo_cluster.fleet import Fleet
    from skywalker.cli.demo_cluster.run import TAKERS
    from skywalker.cli.demo_cluster.story import FIRST, NAMES
    from skywalker.cli.demo_cluster.traffic import TOPICS

    with contextlib.ExitStack() as stack:
        with ctrl_c_waits():
            address, note = None, ""
            if not static:
                try:
                    address = stack.enter_context(consul())
                except ConsulError as error:
                    note = f"without Consul: {error}"
            fleet = stack.enter_context(Fleet.sailing(NAMES, address, FIRST))
        try:
            route = screen.flow("1 sender", f"{TOPICS} topics", f"{TAKERS} taker processes")
            discovery = "find each other by a list" if address is None else f"find each other in a Consul at {address}"
            screen.start(file, f"{route}, {rate:,.0f} lines/s", f"{len(FIRST)}, which {discovery}", note)
            yield fleet
        finally:
            with ctrl_c_waits():
                stack.close()
