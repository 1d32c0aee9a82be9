"""The pure core with a shell that does what a test says, at a model of nodes."""

from __future__ import annotations

from typing import Any, Protocol

from skywalker.clients.call import Call
from skywalker.clients.calls import Calls
from skywalker.clients.line import Line
from skywalker.clients.routes import DIRECT_AFTER_CALLS
from tests.clients.scripted import framed
from tests.clients.test_calls import begin

T0 = 1000.0


class Model(Protocol):
    """What the client is connected to."""

    def write(self, calls: Calls) -> None:
        """Take what the client has to write, as a shell does."""

    def cut(self, line: Line) -> None:
        """Cut a connection."""


class ModelClient:
    """Derive from it, and say how connections are made."""

    def __init__(self, calls: Calls, model: Model) -> None:
        self.calls = calls
        self.now = T0
        self.begun: list[Call] = []
        self._model = model

    def make_direct_lines_worth_it(self) -> None:
        """Make the calls that it takes, at the main connection."""
        for _ in range(DIRECT_AFTER_CALLS):
            call = begin(self.calls, "ping")
            self.calls.receive(self.calls.main, framed([":ping", call.id, True]), self.now)
        self.settle()

    def lines(self) -> list[Line]:
        """Return the lines that have a connection."""
        found = [*self.calls._lines(), *self.calls.routes.candidates]
        return [line for line in dict.fromkeys(found) if line.shell is not None]

    def begin(self, topic: str, kind: Any = "recv") -> Call:
        """Begin a call that waits."""
        call = begin(self.calls, kind, topic, *(["v"] if kind == "send" else []), timeout=1e4 * 8, now=self.now)
        self.begun.append(call)
        return call

    def settle(self) -> None:
        """Do what the core wants done."""
        for line in [line for line in self.calls.touched if line.hang_up and line.shell is not None]:
            self.cut(line)
        self._model.write(self.calls)

    def cut(self, line: Line) -> None:
        """Lose a connection."""
        if line.shell is None:
            return
        self._model.cut(line)
        line.shell = None
        if line is self.calls.main:
            self.calls.disconnected("cut", self.now)
        else:
            self.calls.lost(line, self.now)
        self.settle()
