"""What a server costs: the CPU time of all its processes."""

from __future__ import annotations

import contextlib

import psutil

from bench.errors import Unreachable


def seconds(pid: int) -> float:
    """Return the user and system time that process `pid` and all below it have taken, those that ended included.

    Raises Unreachable if there is no such process.
    """
    try:
        first = psutil.Process(pid)
        processes = [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess as error:
        raise Unreachable(f"the server has ended, there is no process {pid}") from error
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # it just ended: its time is its parent's now
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
