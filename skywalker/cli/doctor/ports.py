"""Who listens where the node is to listen."""

from __future__ import annotations

from collections.abc import Iterator

from skywalker import processes
from skywalker.cli import local_nodes
from skywalker.cli.doctor.finding import Finding, Level
from skywalker.cli.doctor.machine import Machine
from skywalker.config import Config
from skywalker.errors import LocalProtocolError
from skywalker.listeners import Listener, in_the_way
from skywalker.silk import endpoints


def ports(config: Config, machine: Machine) -> Iterator[Finding]:
    """Each port must be free, or this node's."""
    try:
        wanted = [each for each in doors(config) if each[2]]  # others may be any
    except LocalProtocolError as error:
        yield Finding("ports", "fail", str(error), "correct silk")
        return
    if not (machine.proc / "net" / "tcp").exists():
        yield Finding("ports", "warn", "who listens is not told", "is /proc mounted?")
        return
    taken = {(host, port): in_the_way(host, port, machine.proc) for _, host, port in wanted}
    owners = processes.holders({each.inode for found in taken.values() for each in found}, machine.proc)
    node = machine.node(config)
    for name, host, port in wanted:
        found = taken[host, port]
        at = f"{host} port {port}"
        pids = set().union(*(owners.get(each.inode, set()) for each in found))
        if found:
            level, whose = _judged(found[0], pids, node, config.port, machine)
        elif machine.is_bound(host, port):
            level, whose = "fail", "taken by a program that has bound it, and does not listen there"
        else:
            level, whose = "ok", "free"
        advice = "" if level == "ok" else f"end what has it, or choose another port for {name}"
        yield Finding(name, level, f"{at} is {whose}", advice)


def _judged(listener: Listener, pids: set[int], node: int | None, port: int, machine: Machine) -> tuple[Level, str]:
    """Return whether the node may have a port where there is a listener, which processes have, and who has it."""
    if node in pids:
        return "ok", f"this node's, which runs: process {node}"
    if not pids:
        whose = f"a process of {processes.described_user(listener.user)}, and only root can tell which"
        likely = local_nodes.likely(listener, port, machine.proc)
        if likely is not None:
            return "ok", f"taken by {whose}: it may well be this node, {processes.described(likely, machine.proc)}"
        return "fail", f"taken by {whose}"
    pid = min(pids)
    if processes.name(pid, machine.proc) == "systemd":
        return "ok", "held by systemd, as for a socket unit"
    return "fail", f"taken by {processes.described(pid, machine.proc)}"


def doors(config: Config) -> Iterator[tuple[str, str, int]]:
    """Yield setting, host and port of each address that is to be listened on.

    Raises LocalProtocolError if `silk` is none.
    """
    cluster = config.cluster
    yield "port", config.bind, config.port
    if config.pubsub:
        yield "pubsub_port", *config.pubsub_address
    if config.admin:
        yield "admin_port", config.admin_host, config.admin_port
    if cluster.health_port or cluster.register:
        yield "health_port", config.health_host, cluster.health_port
    silk = endpoints.address_of(endpoints.endpoint(cluster.silk)) if cluster.silk else None
    if silk is not None:
        yield "silk", silk.host, silk.port
