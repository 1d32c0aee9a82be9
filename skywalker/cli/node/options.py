"""What the commands that ask admin servers are told: which nodes."""

from __future__ import annotations

import click

from skywalker.cli.admin_api import DEFAULT_ADMIN_ADDRESS, FAILURES, AdminAddress, AdminApi, nodes_of_cluster
from skywalker.cli.credentials import Credentials, credential_options
from skywalker.cli.options import Command
from skywalker.errors import LocalProtocolError, SkywalkerError


def admin_address(ctx: click.Context, param: click.Parameter, text: str) -> AdminAddress:
    """Return the address that an argument is. Raises BadParameter."""
    try:
        return AdminAddress.parse(text)
    except LocalProtocolError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def _addresses(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[AdminAddress, ...]:
    return tuple(dict.fromkeys(admin_address(ctx, param, text) for text in texts or (DEFAULT_ADMIN_ADDRESS,)))


def node_arguments(command: Command) -> Command:
    """Add ADDRESS..., --cluster and the credentials.

    The command gets them as `addresses`, of which there is one at least, `cluster` and `credentials`.
    """
    for option in (
        credential_options,
        click.option(
            "--cluster", is_flag=True, help="ask all nodes of the ring, on their own hosts at the same admin port"
        ),
        click.argument("addresses", metavar="[ADDRESS]...", nargs=-1, callback=_addresses),
    ):
        command = option(command)
    return command


def asked_nodes(addresses: tuple[AdminAddress, ...], cluster: bool, credentials: Credentials) -> list[AdminApi]:
    """Return whom to ask: those there, or with `cluster` all nodes that they know.

    Raises the first of FAILURES if none answers, ConfigError for what is in a file of the credentials.
    """
    credentials.context()  # raises now what would be too late later
    if not cluster:
        return [AdminApi(address, credentials) for address in addresses]
    found: list[AdminAddress] = []
    errors: list[SkywalkerError] = []
    for address in addresses:
        try:
            found += nodes_of_cluster(AdminApi(address, credentials))
        except FAILURES as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return [AdminApi(address, credentials) for address in dict.fromkeys(found)]
