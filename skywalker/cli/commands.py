"""The group of all commands; each is loaded when it is called, or when help lists it.

Commands of other packages join through the entry points of the group "skywalker.commands": the
server's `serve` does, so that the library needs no server to be there.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

import skywalker as library

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINTS: Final = "skywalker.commands"

_HOMES: Final = {
    "send": "skywalker.cli.meetings",
    "recv": "skywalker.cli.meetings",
    "take": "skywalker.cli.meetings",
    "publish": "skywalker.cli.pubsub",
    "subscribe": "skywalker.cli.pubsub",
    "ping": "skywalker.cli.questions",
    "hello": "skywalker.cli.questions",
    "tokens": "skywalker.cli.questions",
    "topic": "skywalker.cli.questions",
    "silk": "skywalker.cli.silk.command",
    "ring": "skywalker.cli.ring.command",
    "route": "skywalker.cli.ring.command",
    "top": "skywalker.cli.top.command",
    "report": "skywalker.cli.report",
    "doctor": "skywalker.cli.doctor.command",
    "drain": "skywalker.cli.drain",
    "systemd": "skywalker.cli.systemd.command",
    "certs": "skywalker.cli.certs",
    "token": "skywalker.cli.token",
    "journal": "skywalker.cli.journal",
    "pipeline": "skywalker.cli.pipeline.command",
    "demo": "skywalker.cli.demo.command",
    "demo-cluster": "skywalker.cli.demo_cluster.command",
    "demo-pipeline": "skywalker.cli.demo_pipeline.command",
}


class Commands(click.Group):
    """The commands, by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which one gets to know them."""
        return [*sorted(_installed().names, key=lambda name: name != "serve"), *_HOMES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command; None if there is none of that name."""
        if cmd_name in _HOMES:
            command = getattr(importlib.import_module(_HOMES[cmd_name]), cmd_name.replace("-", "_"))
        else:
            command = next((found.load() for found in _installed().select(name=cmd_name)), None)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, and a mistyped name is told what it was meant to be."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + _meant(args[0], self.list_commands(ctx)), ctx) from None


def _installed() -> EntryPoints:
    # Only now: it takes as long as all the rest, and a command of ours does not need it.
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


def _meant(name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(library.__version__, message="%(prog)s %(version)s")
def skywalker() -> None:
    """Programs meet on topics: one sends a value, another receives it, and nothing is stored.

    \b
      skywalker serve                        run a node, on 127.0.0.1:3443
      skywalker recv jobs                    wait for a value, and print it
      skywalker send jobs '{"id": 1}'        wait for a receiver, and hand it over

    Exit status: 0 delivered, 2 usage, 3 timed out, 4 no node answers, 5 the node refused, 9 nobody knows.
    """
