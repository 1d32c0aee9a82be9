"""`skywalker top`: the command."""

from __future__ import annotations

import os

import click

from skywalker import extras
from skywalker.cli import exits, terminal
from skywalker.cli.admin_api import AdminAddress, asked_nodes, node_arguments
from skywalker.cli.credentials import Credentials


@click.command(short_help="Watch nodes, on a terminal")
@node_arguments
def top(addresses: tuple[AdminAddress, ...], cluster: bool, credentials: Credentials) -> int:
    """Show what the nodes with admin servers at ADDRESS... do, refreshed every second.

    Each is host:port, or https://host:port for TLS. For several nodes there is a line for each; Enter opens one, Escape
    leads back. The keys are shown below the table.
    """
    if not (os.isatty(0) and os.isatty(terminal.STDOUT)):
        raise click.UsageError("top needs a terminal; `skywalker report` prints the same once, as text or as JSON")
    try:
        from skywalker.cli.top.console import Top
    except ImportError as error:
        raise click.UsageError(f"top needs textual: {extras.command_for('top')}") from error
    Top(asked_nodes(addresses, cluster, credentials), many=cluster or len(addresses) > 1).run()
    return exits.OK
