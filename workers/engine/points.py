"""Places where the order of two things matters, named so that a simulation may end or hold up a process in between.

They are reached in assertions, which a release is built without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

POINTS: Final = (
    "a value is written",  # and its sender is told nothing yet
    "an acknowledgement is due",  # what was handed out is written
    "a batch is written",  # to one worker, and perhaps not to others
    "a value is asked back",
    "a connection is offered",  # to the worker of its topics, which does not know yet
    "a connection is adopted",  # by that one: its calls are, its descriptor is not there
    "a connection is handed over",  # its descriptor is sent, and perhaps not read yet
    "a connection has arrived",  # with its descriptor: the worker that it came from has nothing of it any more
    "a link has ended",  # and what waited at its other end is not issued again
    "a predecessor has given all back",  # and its successor is not asked yet
    "a link is adopted",  # its descriptor has been passed on, and nothing is said over it
    "a worker opens",  # it has heard all, and hears no client yet
    "a worker lets clients in",  # and its supervisor does not know
    "a worker is replaced",  # it lets nobody in any more, and owns its topics still
    "a worker is released",  # nobody relies on it, and its supervisor does not know
    "a relayed link goes another way",  # the sibling that it passed is being replaced, or dead
    "a node has come",  # a worker of it has been answered, and has no link yet
)

listener: Callable[[str], None] | None = None
"""Is told which one is reached."""


def reached(name: str) -> bool:
    """Somebody is at that point. Returns True, for an assertion."""
    if listener is not None:
        listener(name)
    return True
