"""Where a test of Silk takes place: in simulated time with a simulated ZeroMQ, or with the real ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import zmq

from skywalker.silk import blocking
from tests import helpers
from tests.silk.world import Node, World
from tests.simulation.zeromq import Context

T = TypeVar("T")

WITHIN_S = 5.0


class Ground(Protocol):
    """What both have."""

    def context(self) -> Any:
        """Return a context of ZeroMQ, for one who is no node of ours."""

    def poll(self, socks: Sequence[Any], seconds: float) -> list[Any]:
        """Return those at which something has come, once it has, or the seconds are over."""

    def node(self, *endpoints: str, **settings: Any) -> Any:
        """Return a node of ours, for a `with` block."""

    def now(self) -> float:
        """Return the time."""

    def pause(self, seconds: float) -> None:
        """Have time go by."""

    def eventually(self, check: Callable[[], T], within: float) -> T:
        """Return what `check` returns, once that is true."""


class Real:
    """Real sockets, threads and clocks."""

    def context(self) -> Any:
        return zmq.Context()

    def poll(self, socks: Sequence[Any], seconds: float) -> list[Any]:
        poller = zmq.Poller()
        for sock in socks:
            poller.register(sock, zmq.POLLIN)
        return [sock for sock, _ in poller.poll(max(0, round(seconds * 1000)))]

    def node(self, *endpoints: str, **settings: Any) -> blocking.Node:
        return blocking.Node(*endpoints, **settings)

    def now(self) -> float:
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def eventually(self, check: Callable[[], T], within: float) -> T:
        return helpers.eventually(check, within)


class Simulated:
    """A world of its own."""

    def __init__(self) -> None:
        self.world = World()

    def context(self) -> Any:
        return Context(self.world.zeromq, self.world.process().task)

    def poll(self, socks: Sequence[Any], seconds: float) -> list[Any]:
        ends_at = self.world.now + max(0.0, seconds)
        while not (ready := [sock for sock in socks if sock.has_message()]):
            if not self.world.kernel.next(ends_at):
                break
        return ready

    def node(self, *endpoints: str, **settings: Any) -> Node:
        return Node(self.world, *endpoints, **settings)

    def now(self) -> float:
        return self.world.now

    def pause(self, seconds: float) -> None:
        self.world.go_on(seconds)

    def eventually(self, check: Callable[[], T], within: float) -> T:
        return self.world.until(check, within)


here: Ground = Real()
"""That of the test that is on."""


def new_node(*endpoints: str, **settings: Any) -> Any:
    """Return a node of ours, for a `with` block."""
    return here.node(*endpoints, **settings)


def pause(seconds: float) -> None:
    """Have time go by."""
    here.pause(seconds)


def eventually(check: Callable[[], T], within: float = WITHIN_S) -> T:
    """Return what `check` returns, once that is true."""
    return here.eventually(check, within)
