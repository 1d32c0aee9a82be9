"""What a server costs: the CPU time of all its processes."""

from __future__ import annotations

import contextlib

import psutil

from bench.errors import Unreachable


def tree(pid: int) -> list[psutil.Process]:
    """Return process `pid` and all below it, in the order of their numbers. Raises Unreachable if there is none."""
    try:
        first = psutil.Process(pid)
        return [first, *sorted(first.children(recursive=True), key=lambda process: process.pid)]
    except psutil.NoSuchProcess as error:
        raise Unreachable(f"the server has ended, there is no process {pid}") from error


def seconds(pid: int) -> float:
    """Return the user and system time that process `pid` and all below it have taken, those that ended included.

    Raises Unreachable if there is no such process.
    """
    total = 0.0
    for process in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # it just ended: its time is its parent's now
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
