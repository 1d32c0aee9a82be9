"""What the processes of a server use: CPU time and memory, one by one, where the server is on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import socket
import time
from typing import Any

import psutil

from bench import cpu
from bench.errors import Unreachable


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """One process of the server at the end of the time in which it was watched."""

    pid: int
    name: str
    cores: float  # kept busy on average, since it began or since the watch did
    resident_bytes: int
    own_bytes: int | None  # that it shares with no other process, if we may look


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """What the whole server used."""

    cores: float  # those of processes that ended included
    processes: list[Process]


class Watch:
    """Watches a process and all below it. Raises Unreachable if there is none."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._began, self._total = time.monotonic(), cpu.seconds(self.pid)
        self._each = {process.pid: _seconds(process) for process in cpu.tree(self.pid)}

    def end(self) -> Usage | None:
        """Return what was used since, None if the server has ended."""
        seconds = time.monotonic() - self._began
        found = []
        try:
            total = cpu.seconds(self.pid) - self._total
            for process in cpu.tree(self.pid):
                with contextlib.suppress(psutil.NoSuchProcess):
                    used = _seconds(process) - self._each.get(process.pid, 0.0)
                    found.append(
                        Process(
                            process.pid, process.name(), used / seconds, process.memory_info().rss, _own_bytes(process)
                        )
                    )
        except Unreachable:
            return None
        return Usage(total / seconds, found)


def _seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _own_bytes(process: psutil.Process) -> int | None:
    try:
        return int(process.memory_full_info().uss)
    except psutil.AccessDenied:
        return None


def listener(host: str, port: int) -> int | None:
    """Return the process that listens on a port of this machine, the first of its family; None if it can't be seen."""
    if not _is_here(host):
        return None
    try:
        found = next((each.pid for each in psutil.net_connections("tcp") if _listens(each, port) and each.pid), None)
        if found is None:
            return None
        process = psutil.Process(found)
        # Who shares a listener with its children is seen as any one of them.
        while (parent := process.parent()) and any(_listens(each, port) for each in parent.net_connections("tcp")):
            process = parent
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return None
    return process.pid


def _listens(connection: Any, port: int) -> bool:
    return bool(connection.status == psutil.CONN_LISTEN and connection.laddr.port == port)


def _is_here(host: str) -> bool:
    own = {address.address for addresses in psutil.net_if_addrs().values() for address in addresses}
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return any(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback or address in own for address in found)
