"""Who listens where the node is to listen."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

from skywalker.cli import holders, terminal
from skywalker.cli.doctor.finding import Finding
from skywalker.cli.doctor.machine import Machine
from skywalker.config import Config
from skywalker.silk import endpoints

LISTENS: Final = "0A"
"""The state of a listener in /proc/net/tcp."""

LONGEST_PROGRAM: Final = 32


class Listener(NamedTuple):
    """A listening socket of this network namespace."""

    host: str
    port: int
    user: int
    inode: int


def ports(config: Config, machine: Machine) -> Iterator[Finding]:
    """Each port must be free, or this node's."""
    there = [*_listeners(machine)]
    wanted = [*_wanted(config)]
    if not there and not (machine.proc / "net" / "tcp").exists():
        yield Finding("ports", "warn", "who listens is not told", "is /proc mounted?")
        return
    taken = {(host, port): [each for each in there if _meet(each, host, port)] for _, host, port in wanted}
    owners = holders.holders({each.inode for found in taken.values() for each in found}, machine.proc)
    node = machine.node(config)
    for name, host, port in wanted:
        found = taken[host, port]
        pids = set().union(*(owners.get(each.inode, set()) for each in found))
        yield _finding(name, host, port, found, pids, node, machine)


def _finding(
    name: str, host: str, port: int, found: list[Listener], pids: set[int], node: int | None, machine: Machine
) -> Finding:
    at = f"{host} port {port}"
    if not found:
        return Finding(name, "ok", f"{at} is free")
    if node in pids:
        return Finding(name, "ok", f"{at} is this node's, which runs: process {node}")
    advice = f"end what listens there, or choose another port for {name}"
    if not pids:
        whose = f"a process of user {found[0].user}, and only root can tell which"
        if machine.is_claimed(host, port):
            return Finding(name, "ok", f"{at} is a skywalker node's: {whose}")
        return Finding(name, "fail", f"{at} is taken by {whose}", advice)
    pid = min(pids)
    program = terminal.shown(holders.program(pid, machine.proc), LONGEST_PROGRAM)
    if program == "systemd":
        return Finding(name, "ok", f"{at} is held by systemd, as for a socket unit")
    return Finding(name, "fail", f"{at} is taken by {program}, process {pid}", advice)


def _wanted(config: Config) -> Iterator[tuple[str, str, int]]:
    """Yield setting, host and port of each port that is to be listened on; not those that may be any."""
    cluster = config.cluster
    doors = [("port", config.bind, config.port)]
    if config.pubsub:
        doors.append(("pubsub_port", *config.pubsub_address))
    if config.admin:
        doors.append(("admin_port", config.admin_bind, config.admin_port))
    doors.append(("health_port", cluster.health_bind, cluster.health_port))
    silk = endpoints.address_of(endpoints.endpoint(cluster.silk)) if cluster.silk else None
    if silk is not None:
        doors.append(("silk", silk.host, silk.port))
    yield from (each for each in doors if each[2])


def _listeners(machine: Machine) -> Iterator[Listener]:
    for name in ("tcp", "tcp6"):
        try:
            lines = (machine.proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ...
            fields = line.split()
            if len(fields) > 9 and fields[3] == LISTENS:
                host, _, port = fields[1].partition(":")
                yield Listener(_host(host), int(port, 16), int(fields[7]), int(fields[9]))


def _host(written: str) -> str:
    """Return the address that is written as words of 32 bits in hexadecimal, each in the order of this machine."""
    words = (int(written[at : at + 8], 16) for at in range(0, len(written), 8))
    return str(ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words)))


def _meet(listener: Listener, host: str, port: int) -> bool:
    """Whether a listener there would be in the way."""
    if listener.port != port:
        return False
    try:
        wanted = ipaddress.ip_address(host)
    except ValueError:
        return True  # a name may stand for any
    there = ipaddress.ip_address(listener.host)
    if there.version != wanted.version:
        return there.version == 6 and there.is_unspecified  # as a rule IPv4 as well
    return there == wanted or there.is_unspecified or wanted.is_unspecified
