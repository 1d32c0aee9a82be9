"""What the processes of the nodes take and what the nodes say of themselves, looked at again and again."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from skywalker.embedding import AGENT
from tests.soak.background import Background
from tests.soak.stage import Place, Stage

TABLES: Final = {
    "connections": "connections", "waiting": "calls and subscriptions", "topics": "topics", "held_bytes": "held bytes",
    "unread_bytes": "unread bytes", "choked_connections": "choked connections", "unsent_bytes": "unsent bytes",
}  # fmt: skip
"""Figures of a node that are 0 when nobody uses it."""

ANSWER_S: Final = 1.0
"""Seconds for a node to say it; while its agent is dead, nobody does."""

SUPERVISOR: Final = "supervisor"

Role = tuple[str, str]
"""A node, and the supervisor, the agent or the place of a worker."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process takes."""

    node: str
    role: str
    pid: int
    own_bytes: int  # of anonymous memory, its part of what it shares with others of its node
    files: int
    threads: int


@dataclass(frozen=True, slots=True)
class Sample:
    """All of it at one moment; `tables` by node has what is in TABLES, and is without those that did not answer."""

    at: float
    usages: tuple[Usage, ...]
    tables: Mapping[str, Mapping[str, float]]

    def own_bytes(self) -> dict[Role, int]:
        """Return the memory by node and role; one that is being replaced counts with its successor."""
        return self._sums(lambda usage: usage.own_bytes)

    def files(self) -> dict[Role, int]:
        """Return the open files, of all workers of a node together: any of them has what other nodes' agents keep."""
        return self._sums(lambda usage: usage.files, together=True)

    def threads(self) -> dict[Role, int]:
        """Return the threads, likewise."""
        return self._sums(lambda usage: usage.threads, together=True)

    def _sums(self, figure: Callable[[Usage], int], *, together: bool = False) -> dict[Role, int]:
        found: dict[Role, int] = defaultdict(int)
        for usage in self.usages:
            role = "workers" if together and usage.role.startswith("worker-") else usage.role
            found[usage.node, role] += figure(usage)
        return dict(found)

    def left_over(self, before: Sample) -> list[str]:
        """Return, in words, what is in any table, but for the connections that nodes had to each other before."""
        found = [f"{node} does not say" for node in {usage.node for usage in self.usages} - self.tables.keys()]
        for node, tables in self.tables.items():
            own = {"connections": before.tables.get(node, {}).get("connections", 0)}
            found += [
                f"{node} has {value:,.0f} {TABLES[name]}" for name, value in tables.items() if value > own.get(name, 0)
            ]
        return found


class Gauge(Background):
    """Looks every `period_s`."""

    def __init__(self, stage: Stage, period_s: float) -> None:
        super().__init__("gauge")
        self.samples: list[Sample] = []
        self._stage = stage
        self._period_s = period_s

    def look(self) -> Sample:
        """Return how it is now."""
        usages = [usage for place in self._stage.places for usage in _usages(place)]
        tables = {}
        for place in self._stage.places:
            with contextlib.suppress(OSError, http.client.HTTPException):  # its agent is dead just now
                tables[place.name] = _tables(self._stage, place)
        return Sample(time.monotonic(), tuple(usages), tables)

    def _run(self) -> None:
        while not self._over.wait(self._period_s):
            self.samples.append(self.look())


def _usages(place: Place) -> list[Usage]:
    children = Path(f"/proc/{place.pid}/task/{place.pid}/children").read_text().split()
    found = []
    for pid in (place.pid, *map(int, children)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it has just ended
            proc = Path(f"/proc/{pid}")
            role = SUPERVISOR if pid == place.pid else _role((proc / "comm").read_text().strip())
            memory = _fields(proc / "smaps_rollup")
            threads = _fields(proc / "status")["Threads"]
            files = len([*(proc / "fd").iterdir()])
            # A kernel before 6.0 does not tell the anonymous part apart.
            own = memory.get("Pss_Anon", memory["Pss"])
            if role:
                found.append(Usage(place.name, role, pid, own * 1024, files, threads))
    return found


def _role(name: str) -> str:
    """Return what a process is by its name, nothing if it was just forked and has none yet."""
    return "agent" if name == AGENT else name.replace("skywalker-", "worker-") if name.startswith("skywalker-") else ""


def _fields(file: Path) -> dict[str, int]:
    found = {}
    for line in file.read_text().splitlines():
        name, _, rest = line.partition(":")
        number, *_ = [*rest.split(), ""]
        if number.isdecimal():
            found[name] = int(number)
    return found


def _tables(stage: Stage, place: Place) -> dict[str, float]:
    with contextlib.closing(stage.http(place, ANSWER_S)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    found = dict.fromkeys(TABLES, 0.0)
    for family in text_string_to_metric_families(text):
        name = family.name.removeprefix("skywalker_")
        if name in found:
            found[name] = sum(sample.value for sample in family.samples)
    return found
