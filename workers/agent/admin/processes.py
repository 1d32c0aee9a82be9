"""The processes of a node, as the kernel sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process uses: `cpu` is the part of a core since the look before, `cpu_s` all it ever used."""

    name: str
    pid: int
    cpu: float
    cpu_s: float
    rss: int  # bytes


@dataclass(frozen=True, slots=True)
class _Known:
    process: psutil.Process
    at: float
    usage: Usage


class Processes:
    """Looks at them."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def look(self, named: Iterable[tuple[int, str]], now: float) -> list[Usage]:
        """Return what each process uses that has a pid and a name here, but for those that are gone."""
        before, self._known = self._known, {}
        for pid, name in named:
            known = _look(pid, name, now, before.get(pid))
            if known is not None:
                self._known[pid] = known
        return [known.usage for known in self._known.values()]

    def open_files(self) -> dict[int, int]:
        """Count the open files of each process, by pid. It takes the kernel a while for one that has thousands."""
        counts = {}
        for pid, known in self._known.items():
            try:
                counts[pid] = known.process.num_fds()
            except psutil.Error:
                counts[pid] = 0  # it is gone
        return counts


def _look(pid: int, name: str, now: float, before: _Known | None) -> _Known | None:
    try:
        process = psutil.Process(pid) if before is None else before.process
        with process.oneshot():
            times = process.cpu_times()
            rss = process.memory_info().rss
    except psutil.Error:
        return None
    cpu_s = times.user + times.system
    cpu = 0.0
    if before is not None and now > before.at:
        cpu = (cpu_s - before.usage.cpu_s) / (now - before.at)
    return _Known(process, now, Usage(name, pid, cpu, cpu_s, rss))
