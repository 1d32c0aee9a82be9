"""What the processes of a server use: CPU time and memory, all together and one by one, where it is on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import socket
import time
from typing import Any

import psutil

from bench.errors import Unreachable
from skywalker.embedding import AGENT


def tree(pid: int) -> list[psutil.Process]:
    """Return process `pid` and all below it, in the order of their numbers. Raises Unreachable if there is none."""
    try:
        first = psutil.Process(pid)
        return [first, *sorted(first.children(recursive=True), key=lambda process: process.pid)]
    except psutil.NoSuchProcess as error:
        raise Unreachable(f"the server has ended, there is no process {pid}") from error


def clock_of(pid: int) -> int:
    """Return the clock of the CPU time of a process, as clock_getcpuclockid() of glibc makes it."""
    return ~pid << 3 | 2


def _seconds(process: psutil.Process) -> float:
    """Return what a process itself has taken, by the kernel's nanoseconds: /proc has hundredths of a second."""
    try:
        return time.clock_gettime(clock_of(process.pid))
    except OSError:
        return 0.0


def cpu_seconds(*pids: int) -> float:
    """Return the user and system time that processes and all below them have taken, those that ended included.

    Raises Unreachable if there is no such process.
    """
    total = 0.0
    for process in (each for pid in pids for each in tree(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it just ended: its time is its parent's now
            times = process.cpu_times()
            total += _seconds(process) + times.children_user + times.children_system
    return total


def memory(pid: int) -> tuple[str, int]:
    """Return what is measured and how many bytes it is, for `pid` and all below it but the agent. Raises Unreachable.

    What they share is counted once (PSS), or for each of them (RSS) where that may not be read.
    """
    processes = [process for process in tree(pid) if process.name() != AGENT]
    try:
        return "PSS", sum(process.memory_full_info().pss for process in processes)
    except (psutil.AccessDenied, AttributeError):
        return "RSS", sum(process.memory_info().rss for process in processes)
    except psutil.NoSuchProcess as error:
        raise Unreachable("a process of the server has ended") from error


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

    cpu_s: float  # user and system, that of processes that ended included
    cores: float  # kept busy on average
    processes: list[Process]


class Watch:
    """Watches processes and all below them, which make one server. Raises Unreachable if there is one missing."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._began, self._total = time.monotonic(), cpu_seconds(*self._pids)
        self._each = {process.pid: _seconds(process) for process in self._processes()}

    def end(self) -> Usage | None:
        """Return what was used since, None if the server has ended."""
        seconds = time.monotonic() - self._began
        found = []
        try:
            total = cpu_seconds(*self._pids) - self._total
            for process in self._processes():
                with contextlib.suppress(psutil.NoSuchProcess):
                    used = _seconds(process) - self._each.get(process.pid, 0.0)
                    resident = process.memory_info().rss
                    found.append(Process(process.pid, process.name(), used / seconds, resident, _own_bytes(process)))
        except Unreachable:
            return None
        return Usage(total, total / seconds, found)

    def _processes(self) -> list[psutil.Process]:
        return [process for pid in self._pids for process in tree(pid)]


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
