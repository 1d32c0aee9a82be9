"""What Silk asks of the machine that it runs on, besides what an event loop of asyncio does: luck, ids, ZeroMQ.

A node asks the one that it is made with, and a test makes it with one whose ZeroMQ has a network of its own.
"""

from __future__ import annotations

import random
import resource
from collections.abc import Callable
from typing import Any, Final

import zmq
import zmq.asyncio

from skywalker.wire import silk as wire


class Machine:
    """The real one."""

    def __init__(self) -> None:
        self.random: Callable[[], float] = random.random
        """From 0 to below 1."""
        self.new_id: Callable[[], str] = wire.new_id
        """An id that nobody else has or can guess."""

    def context(self) -> zmq.Context[zmq.Socket[bytes]]:
        """Return a context for sockets that do not wait."""
        return zmq.Context()

    def waiting(self, context: zmq.Context[Any]) -> zmq.Context[zmq.asyncio.Socket]:
        """Return the same for sockets that the running event loop waits for."""
        return zmq.asyncio.Context.shadow(context)

    def most_files(self) -> int:
        """Return how many files this process may have open."""
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


MACHINE: Final = Machine()
