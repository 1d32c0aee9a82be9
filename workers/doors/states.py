"""What a connection lives through: whether it is written to, and, apart from that, whether it is heard.

Of either there is one state, and the other is whatever it is: one that is choked may be resting, or not.
Whether it is known whose it is, is a third thing: a stranger has a place in access/admission.py, until it is known.
"""

from __future__ import annotations

from typing import Final

from workers.engine.life import Life

OPEN, CHOKED, LEAVING, LEAVING_CHOKED, LINGERING, CLOSED, LINK = range(7)
"""States. Of all from LEAVING on nobody expects more of any call, and from CLOSED on it has no socket."""

CHOKES, WRITTEN_OUT, FINISHED, SHUT, GIVEN_AWAY, CLOSES = range(6)

CONNECTION: Final = Life(
    "connection",
    states=[
        ("open", "All that there was is written, or will be when the turn ends."),
        ("choked", "The peer reads too slowly: the rest is written when it does, and nothing is read before."),
        ("leaving", "It has no calls any more, and its last words are written when the turn ends."),
        ("leaving choked", "They are written when the peer reads."),
        ("lingering", "They are written, and nothing follows: the peer has a while to read them, and to close."),
        ("closed", "Its socket is closed."),
        ("link", "Its socket is another's, the link to a worker of another node."),
    ],
    events=[
        ("choked", "The kernel did not take all that was written."),
        ("written out", "The kernel has taken the rest."),
        ("finished", "It is to end once it has had its last words: its calls are given up."),
        ("shut down", "The end of what is said to it is said."),
        ("given away", "It has said that it is a worker of another node."),
        ("closed", "By its peer, by us, or because it is broken or took too long."),
    ],
    ways={
        OPEN: {CHOKES: CHOKED, FINISHED: LEAVING, GIVEN_AWAY: LINK, CLOSES: CLOSED},
        CHOKED: {WRITTEN_OUT: OPEN, FINISHED: LEAVING_CHOKED, CLOSES: CLOSED},
        LEAVING: {CHOKES: LEAVING_CHOKED, SHUT: LINGERING, CLOSES: CLOSED},
        LEAVING_CHOKED: {WRITTEN_OUT: LEAVING, CLOSES: CLOSED},
        LINGERING: {CLOSES: CLOSED},
    },
)

HEARD, PUT_OFF, RESTING, UNHEARD = range(4)

DELAYED, PACED, DUE, TAKEN_UP, ENDED = range(5)

INPUT: Final = Life(
    "connection's input",
    states=[
        ("heard", "What comes is read, while it is not choked, and done; of one that leaves it is read and dropped."),
        ("put off", "What it asked is done as soon as nothing holds it up: acks, or that it is choked."),
        ("resting", "It waits for its time: the next turn, or so many seconds, or that the worker hears clients."),
        ("unheard", "Nothing more is read: the peer has ended its half, or the connection has."),
    ],
    events=[
        ("delayed", "It asks for what cannot be done yet."),
        ("paced", "It has had its share, or asks too fast, or too early."),
        ("due", "Its time has come."),
        ("taken up", "What it asked is done now, or put off anew."),
        ("ended", "No more of it is to come, or to be heard."),
    ],
    ways={
        HEARD: {DELAYED: PUT_OFF, PACED: RESTING, ENDED: UNHEARD},
        PUT_OFF: {TAKEN_UP: HEARD, ENDED: UNHEARD},
        # What comes too early may come too fast as well. Before the worker ends, all is done, whosever time has come.
        RESTING: {PACED: RESTING, DUE: PUT_OFF, TAKEN_UP: HEARD, ENDED: UNHEARD},
        UNHEARD: {ENDED: UNHEARD},
    },
)
