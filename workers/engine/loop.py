"""What a worker waits for: descriptors, each with a handler that is called when it is ready."""

from __future__ import annotations

import select
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

from workers.stats import metrics

if TYPE_CHECKING:
    from workers.engine.turn import Turn

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLERR | select.EPOLLHUP

TURN: Final = metrics.TURN.at


class Handler(Protocol):
    """Is told that its descriptor is ready. Events may be stale: a read or write may still find nothing to do."""

    def ready(self, events: int) -> None:
        """Deal with the events, a mask of READ, WRITE and the kernel's error bits."""


class Loop:
    """An epoll and its handlers. Made after the fork: an inherited epoll would be the parent's too."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}

    def add(self, fd: int, handler: Handler, events: int = READ) -> None:
        """Call handler.ready() whenever one of `events` holds."""
        self._epoll.register(fd, events)
        self._handlers[fd] = handler

    def change(self, fd: int, events: int) -> None:
        """Wait for other events on a descriptor that was added."""
        self._epoll.modify(fd, events)

    def remove(self, fd: int) -> None:
        """Forget a descriptor, before it is closed."""
        self._epoll.unregister(fd)
        del self._handlers[fd]

    def turn(self, turn: Turn, patient: bool = True) -> int:
        """Wait until something is ready or due, deal with it, and write what came of it; return how many were ready.

        Without patience there is no waiting, nor while somebody has more to do.
        """
        has_more = turn.has_more()
        events = self._epoll.poll(turn.deadlines.wait(monotonic()) if patient and not has_more else 0.0)
        began = monotonic()
        turn.begin(began)
        if has_more:
            turn.go_on()
        for fd, mask in events:
            # One that was handled before may have removed it.
            handler = self._handlers.get(fd)
            if handler is not None:
                handler.ready(mask)
                if turn.later:
                    turn.attend()
        turn.end()
        turn.counters.took(TURN, monotonic() - began)
        return len(events)
