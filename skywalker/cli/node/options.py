"""What the commands that ask admin servers are told: which nodes."""

from __future__ import annotations

import click

from skywalker.address import Address
from skywalker.cli.admin_api import DEFAULT_ADMIN_ADDRESS, AdminApi, NoAnswer, nodes_of_cluster
from skywalker.cli.options import Command
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_ADMIN_PORT


def _addresses(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Address, ...]:
    try:
        found = [Address.parse(text, DEFAULT_ADMIN_PORT) for text in texts or (DEFAULT_ADMIN_ADDRESS,)]
    except LocalProtocolError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    return tuple(dict.fromkeys(found))


def node_arguments(command: Command) -> Command:
    """Add ADDRESS... and --cluster; the command gets them as `addresses`, of which there is one at least, `cluster`."""
    for option in (
        click.option(
            "--cluster", is_flag=True, help="ask all nodes of the ring, on their own hosts at the same admin port"
        ),
        click.argument("addresses", metavar="[ADDRESS]...", nargs=-1, callback=_addresses),
    ):
        command = option(command)
    return command


def asked_nodes(addresses: tuple[Address, ...], cluster: bool) -> list[Address]:
    """Return where to ask: there, or with `cluster` all nodes that they know. Raises NoAnswer if none answers."""
    if not cluster:
        return [*addresses]
    found: list[Address] = []
    errors: list[NoAnswer] = []
    for address in addresses:
        try:
            found += nodes_of_cluster(AdminApi(address))
        except NoAnswer as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return [*dict.fromkeys(found)]
