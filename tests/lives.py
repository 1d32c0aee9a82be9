"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.calls import worker_states
from workers.engine.life import Life
from workers.nodes import attempt
from workers.process import slot, supervisor

ARRIVED: Final = 0
HERE: Final = 1
FORWARDED: Final = 2
PARKED: Final = 3
ENDING: Final = 4
GIVEN: Final = 5
ANSWERED: Final = 6

KEPT: Final = 0
SENT_ON: Final = 1
RETURNED: Final = 2
NO_ROOM: Final = 3
GIVEN_UP: Final = 4
GAVE: Final = 5
CLOSED: Final = 6

CALL: Final = Life(
    "call",
    states=[
        ("arrived", "Its turn is on: it may meet somebody at once, and nothing is kept of it yet."),
        ("here", "Its topic is owned here: it waits in its line, or its value is offered. Its clock runs."),
        ("forwarded", "It waits at the worker that owns its topic, or for that one to be there. Its clock runs."),
        ("parked", "A value came for it when its client had no room. It listens again once there is some."),
        ("ending", "Its time is over, or it is cancelled, but it may just have met somebody: a last word is awaited."),
        ("given", "A listener that has a value, which is not surely its client's yet."),
        ("answered", "Its client was told what became of it, or is gone."),
    ],
    events=[
        ("kept", "It has to wait, or listens again."),
        ("sent on", "Another worker owns its topic."),
        ("returned", "It met nobody where it waited, and waits there no more."),
        ("parked", "A value came for it, and there is no room."),
        ("given up", "Its time is over, or its client cancels it, and somebody else must say whether it met anybody."),
        ("given a value", "It listened, and somebody came."),
        ("closed", "What becomes of it is known; or of a send, that nobody will say so in time."),
    ],
    ways={
        ARRIVED: {KEPT: HERE, GAVE: GIVEN, CLOSED: ANSWERED},
        HERE: {SENT_ON: FORWARDED, NO_ROOM: PARKED, GIVEN_UP: ENDING, GAVE: GIVEN, CLOSED: ANSWERED},
        FORWARDED: {
            SENT_ON: FORWARDED, RETURNED: HERE, NO_ROOM: PARKED, GIVEN_UP: ENDING, GAVE: GIVEN, CLOSED: ANSWERED,
        },
        PARKED: {KEPT: HERE, CLOSED: ANSWERED},
        ENDING: {SENT_ON: ENDING, RETURNED: ENDING, NO_ROOM: PARKED, GAVE: GIVEN, CLOSED: ANSWERED},
        GIVEN: {KEPT: HERE, CLOSED: ANSWERED},
    },
)  # fmt: skip
"""Of a client of ours, at the worker that has its connection: LIFE in workers/core/calls.c says so without words."""

LIVES: Final[tuple[Life, ...]] = (
    CALL,
    attempt.ATTEMPT,
    worker_states.LIFE,
    slot.LIFE,
    supervisor.LIFE,
)
"""In the order in which docs/architecture.md shows them."""
