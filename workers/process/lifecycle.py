"""The life of one worker as the supervisor sees it: it begins STARTING, and every change after that is in one table."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class State(enum.Enum):
    """Where a worker is in its life."""

    STARTING = "starting"  # forked, has not said Ready
    SERVING = "serving"
    DRAINING = "draining"  # accepts nothing new, finishes what it holds
    IDLE = "idle"  # drains, and holds nothing any more
    STOPPING = "stopping"  # told to end
    GONE = "gone"  # reaped; its slot may be forked again


class Event(enum.Enum):
    """What happens to a worker."""

    READY = "ready"  # it said so
    DRAIN = "drain"  # it was asked to
    IDLE = "idle"  # it said so
    STOP = "stop"  # it was asked to
    EXIT = "exit"  # it was reaped


NEXT: Final[Mapping[tuple[State, Event], State]] = {
    (State.STARTING, Event.READY): State.SERVING,
    (State.STARTING, Event.DRAIN): State.DRAINING,
    (State.STARTING, Event.STOP): State.STOPPING,
    (State.STARTING, Event.EXIT): State.GONE,
    (State.SERVING, Event.DRAIN): State.DRAINING,
    (State.SERVING, Event.STOP): State.STOPPING,
    (State.SERVING, Event.EXIT): State.GONE,
    # Ready was already on its way when the worker was asked.
    (State.DRAINING, Event.READY): State.DRAINING,
    (State.DRAINING, Event.IDLE): State.IDLE,
    (State.DRAINING, Event.STOP): State.STOPPING,
    (State.DRAINING, Event.EXIT): State.GONE,
    # One that is forked into a node that drains may hold nothing before it is done with its start.
    (State.IDLE, Event.READY): State.IDLE,
    (State.IDLE, Event.STOP): State.STOPPING,
    (State.IDLE, Event.EXIT): State.GONE,
    (State.STOPPING, Event.READY): State.STOPPING,
    (State.STOPPING, Event.IDLE): State.STOPPING,
    (State.STOPPING, Event.EXIT): State.GONE,
}


class ImpossibleEvent(Exception):
    """An event that cannot happen in this state: a bug in the supervisor."""


def after(state: State, event: Event) -> State:
    """Return the state that follows. Raises ImpossibleEvent for a pair that the table does not list."""
    try:
        return NEXT[state, event]
    except KeyError:
        raise ImpossibleEvent(f"a worker that is {state.value} cannot {event.value}") from None
