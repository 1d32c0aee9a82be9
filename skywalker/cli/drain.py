"""`skywalker drain`: shut down a node of this machine gracefully."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import select
import signal
import socket
import time
from typing import Final

import click

from skywalker.address import Address
from skywalker.cli import exits, terminal
from skywalker.cli.admin_api import FAILURES, AdminAddress, AdminApi, admin_address, reading
from skywalker.cli.credentials import Credentials, credential_options
from skywalker.cli.local_nodes import draining, nodes, serves
from skywalker.cli.node import waiting
from skywalker.cli.terminal import Status
from skywalker.errors import ConfigError, SkywalkerError, Unreachable
from skywalker.limits import DEFAULT_ADMIN_PORT, DEFAULT_HOST, DEFAULT_PORT
from skywalker.listeners import listeners, taken_by
from skywalker.processes import described, described_user, holders

LOOK_S: Final = 0.5
"""Seconds from one look at what the node waits for to the next."""

ADMIN_S: Final = 0.5
"""Seconds for its admin server to answer: without it there is just less to tell."""


@click.command(short_help="Shut down a node on this machine gracefully")
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
    help="the node's address; needed if several nodes have that port",
)
@click.option(
    "--admin",
    metavar="ADDRESS",
    callback=lambda ctx, param, text: None if text is None else admin_address(ctx, param, text),
    help="the node's admin server, which knows what it waits for: host:port, or https://host:port  "
    f"[default: port {DEFAULT_ADMIN_PORT} where the node listens]",
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="return when it has ended, or at once")
@credential_options
def drain(port: int, bind: str | None, admin: AdminAddress | None, wait: bool, credentials: Credentials) -> int:
    """Shut down the node of this machine that listens on a port: it leaves its cluster, answers its calls, and ends.

    It gets a SIGTERM; waiting calls then have its --drain-timeout. A node that is already draining, because it does
    not listen any more or its admin server says so, gets no second SIGTERM, which would end it at once. systemd does
    not start it again.
    """
    address, pid = _node(port, bind)
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return exits.OK  # it has ended since
    try:
        hosts = dict.fromkeys((address.host, DEFAULT_HOST))
        usual = [each for host in hosts if serves(pid, each := Address(host, DEFAULT_ADMIN_PORT))]
        beside = AdminAddress(usual[0] if usual else Address(address.host, DEFAULT_ADMIN_PORT))
        api = AdminApi(admin or beside, credentials, ADMIN_S)
        # From here on the number is this process's, whoever had it before.
        if nodes().get(address) == pid:
            if not _told(api, pid)[0]:
                _tell(process, pid, address)
        elif pid not in draining(port):
            return exits.OK
        if wait:
            _wait(process, pid, address, api)
    finally:
        os.close(process)
    return exits.OK


def _node(port: int, bind: str | None) -> tuple[Address, int]:
    """Return where a node listens, or did before it began to drain, and its first process.

    Raises Unreachable, ConfigError, or a SkywalkerError that says who may see it.
    """
    host = _number(bind, port) if bind else None
    found = nodes()
    chosen = {at: pid for at, pid in found.items() if at.port == port and host in (None, at.host)}
    if len(chosen) > 1:
        ways = "; ".join(f"--bind {at.host} for {described(pid)}" for at, pid in sorted(chosen.items()))
        raise ConfigError(f"several nodes listen on port {port}: choose one, {ways}")
    for address, pid in chosen.items():
        return address, pid
    leaving = draining(port)
    if len(leaving) > 1:
        those = "; ".join(map(described, sorted(leaving)))
        raise ConfigError(f"several nodes that had port {port} are draining: see which is meant, {those}")
    for pid in leaving:
        return Address(bind or DEFAULT_HOST, port), pid
    at = f"{bind} port {port}" if bind else f"port {port}"
    for each in listeners():
        if each.port == port and host in (None, each.host):
            if not holders({each.inode}):
                raise SkywalkerError(
                    f"what listens on {at} is of {described_user(each.user)}: if it is a node, drain it as that user, "
                    "or as root"
                )
            raise Unreachable(f"no node of this machine listens on {at}: {taken_by(each.host, port)}, does")
    others = ", ".join(str(each) for each in sorted(found))
    there = f"nodes here listen on {others}" if others else "none runs here"
    raise Unreachable(f"no node of this machine listens on {at}: {there}")


def _number(bind: str, port: int) -> str:
    """Return the number of the address that a node binds, which is told that. Raises ConfigError if it is none."""
    try:
        found = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(f"--bind: {bind} is not an address of this machine: {error.strerror}") from error
    return str(ipaddress.ip_address(str(found[0][4][0]).partition("%")[0]))


def _tell(process: int, pid: int, address: Address) -> None:
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has ended since
    except PermissionError as error:
        raise SkywalkerError(
            f"process {pid} is the node at {address}, but you may not end it: drain it as its user, or as root"
        ) from error


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
    """Return whether a node drains and who waits there, as its admin server tells; False and "" if it does not.

    One of this machine that another user runs is not asked: it might keep the node from being told, and gets no token.
    """
    if not serves(pid, api.address.at):
        return False, ""
    with contextlib.suppress(*FAILURES):
        state = api.get("/api/state")
        with reading(api.address):
            if state["node"]["pid"] == pid:
                return bool(state["node"]["draining"]), waiting(state)
    return False, ""
