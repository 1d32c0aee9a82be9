"""`skywalker drain`: end the node of this machine in order."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Collection
from typing import Final

import click

from skywalker.address import Address
from skywalker.cli import exits, terminal
from skywalker.cli.admin_api import DEFAULT_ADMIN_ADDRESS, FAILURES, AdminAddress, AdminApi, reading
from skywalker.cli.credentials import Credentials, credential_options
from skywalker.cli.holders import claims, holder
from skywalker.cli.node import facts
from skywalker.cli.node.options import admin_address
from skywalker.cli.status import Status
from skywalker.errors import ConfigError, SkywalkerError, Unreachable
from skywalker.limits import DEFAULT_PORT

LOOK_S: Final = 0.5
"""Seconds from one look at what the node waits for to the next."""

ADMIN_S: Final = 0.5
"""Seconds for its admin server to answer: without it there is just less to tell."""


@click.command(short_help="End the node of this machine in order")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=DEFAULT_PORT,
    envvar="SKYWALKER_PORT",
    show_default=True,
    show_envvar=True,
    help="the port that the node listens on",
)
@click.option(
    "--bind",
    envvar="SKYWALKER_BIND",
    show_envvar=True,
    help="the address, as the node was told it; needed if several have that port",
)
@click.option(
    "--admin",
    metavar="ADDRESS",
    default=DEFAULT_ADMIN_ADDRESS,
    callback=admin_address,
    show_default=True,
    help="its admin server, which knows what it waits for: host:port, or https://host:port",
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="return when it has ended, or at once")
@credential_options
def drain(port: int, bind: str | None, admin: AdminAddress, wait: bool, credentials: Credentials) -> int:
    """Have the node of this machine that listens on a port leave its cluster, answer what waits, and end.

    It is told by SIGTERM, and calls that wait get its --drain-timeout. A node that drains already, as its admin
    server tells, is waited for and not told again, since that would end it at once. Under systemd it stays down.
    """
    found = claims()
    host = _host(found, port, bind)
    address, inode = Address(host, port), found[host, port]
    pid = holder(inode)
    if pid is None:
        raise SkywalkerError(f"the node at {address} is another user's: drain it as that user, or as root")
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return exits.OK  # it has ended since
    try:
        api = AdminApi(admin, credentials, ADMIN_S)
        # From here on the number is this process's, whoever had it before.
        if holder(inode) == pid and not _told(api, pid)[0]:
            try:
                signal.pidfd_send_signal(process, signal.SIGTERM)
            except PermissionError as error:
                raise SkywalkerError(
                    f"process {pid} is the node at {address}, but you may not end it: drain it as its user, or as root"
                ) from error
        if wait:
            _wait(process, pid, address, api)
    finally:
        os.close(process)
    return exits.OK


def _host(found: Collection[tuple[str, int]], port: int, bind: str | None) -> str:
    """Return the host that a node listens on, of those found with that port. Raises Unreachable, or ConfigError."""
    hosts = sorted(host for host, its_port in found if its_port == port)
    if bind is not None and bind in hosts:
        return bind
    if not hosts or bind is not None:
        others = ", ".join(str(Address(*each)) for each in sorted(found))
        there = f"nodes here listen on {others}" if others else "none runs here"
        raise Unreachable(f"no node of this machine listens on {f'{bind} port' if bind else 'port'} {port}: {there}")
    if len(hosts) > 1:
        raise ConfigError(f"several nodes listen on port {port}: choose by --bind {' or --bind '.join(hosts)}")
    return hosts[0]


def _wait(process: int, pid: int, address: Address, api: AdminApi) -> None:
    """Return once a process has ended; meanwhile a terminal is shown what it waits for."""
    started = time.monotonic()
    status = Status()
    try:
        while not select.select([process], [], [], LOOK_S if status.live else None)[0]:
            _, waiting = _told(api, pid)
            what = f", waiting there: {waiting}" if waiting else ""
            status.draw(f"draining {address}, process {pid}, for {time.monotonic() - started:.0f} s{what}")
    finally:
        status.clear()
    terminal.write(f"{address} has ended\n".encode())


def _told(api: AdminApi, pid: int) -> tuple[bool, str]:
    """Return whether a node drains and who waits there, as its admin server tells; False and "" if it does not."""
    with contextlib.suppress(*FAILURES):
        state = api.get("/api/state")
        with reading(api.address):
            if state["node"]["pid"] == pid:
                return bool(state["node"]["draining"]), facts.waiting(state)
    return False, ""
