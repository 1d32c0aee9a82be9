"""What is done to the processes of nodes that are in use."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import psutil

from skywalker import embedding
from tests.helpers import time_factor
from tests.soak.background import Background
from tests.soak.stage import DRAIN_S, WORKERS, Nodes
from tests.workers.processes import is_gone

LOOK_S: Final = 0.1
RELOAD_S: Final = WORKERS * (DRAIN_S + 5.0)
"""Seconds for a reload to be done: each worker may have clients who stay until the end of its drain."""


class Trouble(Background):
    """Strikes, one deed after the other."""

    def __init__(self, nodes: Nodes, dice: random.Random, pauses_s: tuple[float, float]) -> None:
        """`pauses_s` are the shortest and the longest time between two deeds."""
        super().__init__("trouble")
        self.done: Counter[str] = Counter()
        self.ended: set[int] = set()  # the processes that it has ended, or told to end
        self._nodes = nodes
        self._dice = dice
        self._pauses_s = pauses_s
        self.failures: list[str] = []  # of a node, to come back after what was done to it; that is the end of it all
        self._deeds: tuple[Callable[[embedding.Node], None], ...] = (
            self._kill, self._end, self._reload, self._kill_agent,
        )  # fmt: skip

    def _run(self) -> None:
        try:
            deeds = [*self._deeds]
            while not self._over.is_set():
                self._dice.shuffle(deeds)
                for deed in deeds:
                    # The first time all of them, however short it is.
                    if self._over.wait(self._dice.uniform(*self._pauses_s)) and len(self.done) == len(deeds):
                        return
                    deed(self._dice.choice(self._nodes.battered))
        except (AssertionError, OSError, IndexError) as error:
            self.failures.append(f"nothing more was done to nodes: {error!r}")

    def _kill(self, node: embedding.Node) -> None:
        """Kill one worker, or all at once."""
        pids = node.worker_pids()
        victims = pids if self._dice.random() < 0.15 else [self._dice.choice(pids)]
        self.done["killed"] += 1
        for pid in victims:
            self._signal(pid, signal.SIGKILL)
        self._until(lambda: _replaced(node, victims), 10.0, "a worker that was killed is not replaced")

    def _end(self, node: embedding.Node) -> None:
        """Tell one worker to end."""
        victim = self._dice.choice(node.worker_pids())
        self.done["drained"] += 1
        self._signal(victim, signal.SIGTERM)
        self._until(lambda: _replaced(node, [victim]), DRAIN_S + 10.0, "a worker that drained is not replaced")

    def _reload(self, node: embedding.Node) -> None:
        """Have the node reload, and perhaps kill a worker meanwhile."""
        before = len(_reloads(node))
        self.done["reloaded"] += 1
        os.kill(node.pid, signal.SIGHUP)
        if self._dice.random() < 0.3:
            time.sleep(self._dice.uniform(0.0, 2.0))
            self._kill(node)
        self._until(lambda: len(_reloads(node)) > before, RELOAD_S, "a reload does not come to its end")

    def _kill_agent(self, node: embedding.Node) -> None:
        for child in psutil.Process(node.pid).children():
            if child.name() == embedding.AGENT:
                self.done["lost its agent"] += 1
                self._signal(child.pid, signal.SIGKILL)
                self._until(functools.partial(is_gone, child.pid), 5.0, "an agent that was killed has not ended")

    def _signal(self, pid: int, number: signal.Signals) -> None:
        self.ended.add(pid)
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself, as one that is replaced does
            os.kill(pid, number)

    def _until(self, is_so: Callable[[], bool], within_s: float, failure: str) -> None:
        deadline = time.monotonic() + within_s * time_factor()
        while not is_so():
            if time.monotonic() > deadline:
                raise AssertionError(f"{failure}, after {within_s:g} s")
            time.sleep(LOOK_S)


def _replaced(node: embedding.Node, victims: list[int]) -> bool:
    return all(map(is_gone, victims)) and len(node.worker_pids()) >= WORKERS


def _reloads(node: embedding.Node) -> list[str]:
    return re.findall(r"event=(?:reloaded|reload-failed)\b", node.log)
