"""The lives of what a worker has with others: a call that one of them asks of it, and the link between them."""

from __future__ import annotations

from typing import Final

from workers.engine.life import Life

WAITING: Final = 0
PARKED: Final = 1
GIVEN: Final = 2
WITHDRAWING: Final = 3
GONE: Final = 4

NO_ROOM: Final = 0
RESUMED: Final = 1
GAVE: Final = 2
ASKED_BACK: Final = 3
LET_GO: Final = 4

INBOUND_CALL: Final = Life(
    "call of another worker's client",
    states=[
        ("waiting", "It waits in its line, or its value is offered."),
        ("parked", "A value came for it when so much was queued for its worker that there was no room."),
        ("given", "A listener that has a value: its worker is still to say whether its client got that."),
        ("withdrawing", "Its time is over, or it is cancelled: its value is asked back from those who may have it."),
        ("gone", "What became of it was said to its worker, or is nobody's business any more."),
    ],
    events=[
        ("parked", "A value came for it, and there is no room."),
        ("resumed", "There is room again."),
        ("given a value", "It listened, and somebody came."),
        ("asked back", "Its worker wants it back if it has met nobody."),
        ("let go", "It has met somebody, or never will here."),
    ],
    ways={
        WAITING: {NO_ROOM: PARKED, GAVE: GIVEN, ASKED_BACK: WITHDRAWING, LET_GO: GONE},
        PARKED: {RESUMED: WAITING, LET_GO: GONE},
        GIVEN: {LET_GO: GONE},
        WITHDRAWING: {ASKED_BACK: WITHDRAWING, LET_GO: GONE},
    },
)

OPEN: Final = 0
PAUSED: Final = 1
CLOSED: Final = 2

PAUSE: Final = 0
GO_ON: Final = 1
CLOSE: Final = 2

LINK: Final = Life(
    "link",
    states=[
        ("open", "It is read, and written to."),
        ("paused", "Nothing is read for now: this worker opens, or the predecessor of the other one is heard first."),
        ("closed", "Either end is gone. What it held is given up, and what waited at the other is issued again."),
    ],
    events=[
        ("paused", "Something is to be heard first."),
        ("resumed", "That was heard, or the other end is dead, and the rest of what it said is all that will come."),
        ("closed", "The other end closed it, or said what makes no sense, or this end is done with it."),
    ],
    ways={
        OPEN: {PAUSE: PAUSED, GO_ON: OPEN, CLOSE: CLOSED},
        PAUSED: {PAUSE: PAUSED, GO_ON: OPEN, CLOSE: CLOSED},
        CLOSED: {GO_ON: CLOSED},
    },
)
