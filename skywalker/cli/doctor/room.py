"""Whether there is room for what the settings allow: files, queues of connections, memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from skywalker import memory as bounds
from skywalker.cli.doctor.finding import Finding, weighed
from skywalker.cli.doctor.machine import ADDRESS_SPACE, DATA, FILES, Machine, workers
from skywalker.cli.node.words import size
from skywalker.config import Config

OWN_FILES: Final = 64
"""Files that a worker has open besides its connections and its links to other workers."""

INFINITY: Final = float("inf")

MOST_OF_MEMORY: Final = 0.8
"""The part of the memory that waiting calls may fill: the rest is for the processes themselves and the system."""


def open_files(config: Config, machine: Machine) -> Iterator[Finding]:
    """Each worker is a process with a limit of its own, and raises it to the hard one."""
    count = workers(config, machine)
    wanted = config.limits.max_connections + count + OWN_FILES
    pid = machine.node(config)
    limits = machine.limit(FILES, pid)
    if limits is None:
        yield Finding("open files", "warn", "the limit is not told", "is /proc mounted?")
        return
    soft, hard = limits
    whose = f"of the node that runs, process {pid}" if pid else "of this shell"
    yield weighed(
        "open files",
        hard >= wanted,
        f"the limit {whose} is {soft:,.0f}, can be {hard:,.0f}; a worker needs {wanted:,}",
        f"LimitNOFILE={wanted} in the unit, ulimit -Hn {wanted} in a shell, or a lower max_connections",
        "fail" if hard < wanted / 2 else "warn",
    )
    most = machine.number("sys/fs/file-max")
    if most is not None and most < wanted * count:
        found = f"the machine may have {most:,} open; {count} workers need {wanted * count:,}"
        yield Finding("files in all", "warn", found, f"sysctl -w fs.file-max={2 * wanted * count}")


def accept_queue(config: Config, machine: Machine) -> Iterator[Finding]:
    """The kernel cuts the backlog of a listener off at somaxconn."""
    yield _queue("somaxconn", "net.core.somaxconn", config, machine)


def syn_queue(config: Config, machine: Machine) -> Iterator[Finding]:
    """Connections that are being made wait in a queue before that one."""
    yield _queue("syn backlog", "net.ipv4.tcp_max_syn_backlog", config, machine)


def _queue(name: str, key: str, config: Config, machine: Machine) -> Finding:
    most = machine.number(f"sys/{key.replace('.', '/')}")
    if most is None:
        return Finding(name, "warn", f"{key} is not told", "is /proc mounted, and IPv4 there?")
    return weighed(
        name,
        most >= config.backlog,
        f"{key} is {most:,}, the backlog {config.backlog:,}",
        f"sysctl -w {key}={config.backlog}, and the same in /etc/sysctl.d to keep it",
    )


def memory(config: Config, machine: Machine) -> Iterator[Finding]:
    """What all workers may hold at once must fit."""
    count, there = workers(config, machine), machine.memory()
    if there is None:
        yield Finding("memory", "warn", "how much there is is not told", "is /proc mounted?")
        return
    group = bounds.of_group(machine.proc, machine.cgroups)
    whose = "" if group is None or group >= there else " that the control group may have"
    there = min(there, group or there)
    most = config.limits.waiting_bytes * count
    yield weighed(
        "memory",
        most <= there * MOST_OF_MEMORY,
        f"calls that wait may take {size(most)} in {count} workers, of {size(there)}{whose}",
        f"waiting_bytes of at most {size(there * MOST_OF_MEMORY / count)}, fewer workers, or more memory",
    )


def address_space(config: Config, machine: Machine) -> Iterator[Finding]:
    """Each worker is a process with a limit of its own, and dies where that is less than what it may hold."""
    pid = machine.node(config)
    told = (machine.limit(kind, pid) for kind in (ADDRESS_SPACE, DATA))
    there = min((limit[0] for limit in told if limit is not None), default=INFINITY)
    if there == INFINITY:
        return
    count = workers(config, machine)
    needed, short = bounds.wanted(config.limits, count), bounds.shortage(config.limits, count, int(there))
    found = f"a process may have {size(there)}, and a worker may come to take {size(needed)}"
    yield weighed("address space", not short, found, short.partition(": give ")[2], "fail")
