"""Processes with nodes in them, as tests see them."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cluster.network import Loopback, Machine
from tests.helpers import eventually, time_factor
from tests.silk.driving import keepalive

_ROOT = Path(__file__).resolve().parents[2]


class NodeProcess:
    """A process with nodes in it, for a `with` block. Most of this is about the first of them."""

    def __init__(self, machine: Machine | None = None, *, count: int = 1, period: float = 0.0) -> None:
        self._machine = machine or Loopback()
        self._arguments = [str(count), self._machine.address, str(period or keepalive())]
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.events: list[tuple[str, str]] = []  # what happened, and to whom

    def __enter__(self) -> NodeProcess:
        with self._machine.inside():
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "tests.silk.member", *self._arguments],
                cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        told = self._told()
        self.id, self.router = told["id"], told["router"]
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            told = json.loads(line)
            if "event" in told:
                self.events.append((told["event"], told["id"]))
            else:
                self._answers.put(told)

    def _told(self) -> dict[str, Any]:
        return self._answers.get(timeout=20 * time_factor())

    def kill(self) -> None:
        """End it as kill -9 does."""
        self.popen.kill()
        self.popen.wait()
        self._reader.join()
        for pipe in (self.popen.stdin, self.popen.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]  # there are both

    def order(self, do: str, **fields: Any) -> None:
        """Have it do something; answer() returns what comes of that."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self.popen.stdin.flush()

    def answer(self) -> Any:
        """Return what came of the next order; an error is a text."""
        told = self._told()
        return told["error"] if "error" in told else told["answer"]

    def ask(self, do: str, **fields: Any) -> Any:
        """Have it do something, and return what comes of that."""
        self.order(do, **fields)
        return self.answer()

    def join(self, other: NodeProcess) -> None:
        """Have its nodes be members where another's are."""
        assert self.ask("join", at=other.router, within=10 * time_factor()) is None

    def members(self) -> dict[str, list[str]]:
        """Return the ids of those that each node knows, by its id."""
        found: dict[str, list[str]] = self.ask("members")
        return found

    def of(self, other: NodeProcess) -> list[str]:
        """Return what became known of another, in order."""
        return [what for what, id in self.events if id == other.id]


def met(processes: Sequence[NodeProcess], within: float) -> None:
    """Return once all nodes there know each other, and nobody else."""

    def have_met() -> bool:
        for process in processes:
            process.order("members")
        seen: dict[str, list[str]] = {}
        for process in processes:
            seen |= process.answer()
        return all({id, *others} == seen.keys() for id, others in seen.items())

    eventually(have_met, within)
