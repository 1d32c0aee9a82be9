"""The life of a worker, as it lives it: between its first moments and its end, and what all that do calls must know."""

from __future__ import annotations

import enum
from typing import Final

from workers.engine.life import Life

State = enum.IntEnum(
    "State",
    "OPENING SERVING DRAINING_ALONE DRAINING_WITH_NODE REPLACED IDLE LEAVING CLOSING ENDED",
    start=0,
    module=__name__,
)
"""Where a worker is in its life."""

Event = enum.IntEnum(
    "Event", "OPENED TERMINATED DRAINED REPLACED RELEASED STOPPED DECIDED READ", start=0, module=__name__
)
"""What happens to a worker, or what it does."""


def _stays(state: State) -> dict[int, int]:
    """Return what may happen so late and changes nothing of where it is."""
    return dict.fromkeys((Event.OPENED, Event.TERMINATED, Event.DRAINED, Event.REPLACED), state)


LIFE: Final = Life(
    "worker",
    states=[
        ("opening", "It hears no client before all others have said what they subscribe to."),
        ("serving", "It hears its clients, and calls meet here."),
        ("draining alone", "It refuses new calls while its node goes on, and accepts, so that clients go elsewhere."),
        ("draining with node", "It refuses new calls and has closed its doors, as all workers of its node do."),
        ("replaced", "Its successor owns its topics and has its doors; its clients go there."),
        ("idle", "It has said that nobody relies on it any more, and waits to be told to stop."),
        ("leaving", "It lets nobody in, others' calls meet nobody here any more, and what was meeting is decided."),
        ("closing", "All is said; its clients read that, and close."),
        ("ended", "Its process ends with this turn."),
    ],
    events=[
        ("opened", "All others have said what they subscribe to, or had their time: clients are heard."),
        ("terminated", "By SIGTERM, somebody drains this one worker."),
        ("drained", "The supervisor drains the node."),
        ("replaced", "A successor is ready, and owns its topics from now on."),
        ("released", "Nobody relies on it any more, be it for a call or, if it was replaced, for a connection."),
        ("stopped", "The supervisor says so; or it drains alone, and has nobody left or no time left."),
        ("decided", "What was just meeting is known, here and elsewhere, or took too long."),
        ("read", "Its clients have read the last words to them, or had their time."),
    ],
    ways={
        State.OPENING: {
            Event.OPENED: State.SERVING,
            Event.TERMINATED: State.DRAINING_ALONE,
            Event.DRAINED: State.DRAINING_WITH_NODE,
            Event.REPLACED: State.REPLACED,
            Event.STOPPED: State.LEAVING,
        },
        State.SERVING: {
            Event.TERMINATED: State.DRAINING_ALONE,
            Event.DRAINED: State.DRAINING_WITH_NODE,
            Event.REPLACED: State.REPLACED,
            Event.STOPPED: State.LEAVING,
        },
        # From here on it may still be opened: its barrier waits for others, whatever becomes of itself.
        State.DRAINING_ALONE: {
            Event.OPENED: State.DRAINING_ALONE,
            Event.DRAINED: State.DRAINING_WITH_NODE,
            Event.REPLACED: State.REPLACED,
            Event.STOPPED: State.LEAVING,
        },
        State.DRAINING_WITH_NODE: {
            Event.OPENED: State.DRAINING_WITH_NODE,
            Event.RELEASED: State.IDLE,
            Event.STOPPED: State.LEAVING,
        },
        State.REPLACED: {
            Event.OPENED: State.REPLACED,
            Event.DRAINED: State.DRAINING_WITH_NODE,
            Event.RELEASED: State.IDLE,
            Event.STOPPED: State.LEAVING,
        },
        State.IDLE: {
            Event.OPENED: State.IDLE,
            Event.DRAINED: State.DRAINING_WITH_NODE,  # of one that was replaced; it says once more that it is idle
            Event.STOPPED: State.LEAVING,
        },
        State.LEAVING: {**_stays(State.LEAVING), Event.DECIDED: State.CLOSING},
        State.CLOSING: {**_stays(State.CLOSING), Event.READ: State.ENDED},
        State.ENDED: _stays(State.ENDED),  # in the turn in which it ends
    },
)


class Standing:
    """Where one worker is, and what that means for calls. What has become true of it stays so, once it has opened."""

    __slots__ = ("draining", "node_drains", "opening", "replaced", "state")

    def __init__(self) -> None:
        self.state = State.OPENING
        self.opening = True  # clients are not heard yet: see readiness.py in mesh
        self.draining = False  # new calls of our clients are refused
        self.node_drains = False  # and all other workers of this node do the same
        self.replaced = False  # a successor owns what this worker owned

    @property
    def leaving(self) -> bool:
        """Whether others' calls meet nobody here any more."""
        return self.state >= State.LEAVING

    def happened(self, event: Event) -> None:
        """Go on to the state that follows. Raises Unlisted, and changes nothing, if this cannot happen now."""
        self.state = State(LIFE.after(self.state, event))
        self.opening = self.opening and event != Event.OPENED
        self.node_drains = self.node_drains or event == Event.DRAINED
        self.replaced = self.replaced or event == Event.REPLACED
        self.draining = self.draining or self.node_drains or self.replaced or event == Event.TERMINATED
        assert self.opening or self.state != State.OPENING, "nobody is heard by one that opens"
