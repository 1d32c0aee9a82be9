"""What trouble excuses from which rule, for how long, and why. What is not listed excuses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

FELT_S: Final = 2.0
"""Seconds for which trouble is felt."""

DOUBT_S: Final = 0.5
"""Seconds around a kill or a stop in which what is handed out may be taken by somebody of whom nobody hears."""

TWO_RELOADS: Final = "two reloads"
"""The kind of trouble that there is while two nodes are reloaded at once."""


SETTLED_S: Final = 0.3
"""Seconds after which a ring that all nodes agree on is gone by in all of them. Trouble of the kinds join, leave and
death lasts until they agree."""


class Excuse(NamedTuple):
    """Something is excused from `before_s` seconds before the trouble begins until `after_s` after it ends."""

    before_s: float
    after_s: float
    why: str


EXCUSES: Final[Mapping[str, Mapping[str, Excuse]]] = {
    "connections_last": {
        "kill": Excuse(0.0, FELT_S, "they end with their worker"),
        "reload": Excuse(0.0, FELT_S, "who has not gone when the time to drain is over is sent away"),
        "stop": Excuse(0.0, FELT_S, "a worker that stands still is waited for no longer than others are"),
        "leave": Excuse(0.0, SETTLED_S, "they end with their node, and none are let in while it is away"),
        "death": Excuse(0.0, SETTLED_S, "they end with their node, and none are let in while it is away"),
    },
    "answers_come_in_time": {
        "kill": Excuse(FELT_S, FELT_S, "a new worker has to start and to open"),
        "reload": Excuse(FELT_S, FELT_S, "a new worker has to open"),
        "stop": Excuse(FELT_S, FELT_S, "who stands still answers nobody"),
        "part": Excuse(FELT_S, FELT_S, "another node may have the last word"),
        "death": Excuse(FELT_S, FELT_S, "a node that dies is waited for until its links are known to be broken"),
    },
    "answers_are_true": {
        "kill": Excuse(DOUBT_S, DOUBT_S, "an owner that dies takes along what it knew of who had a value"),
        "death": Excuse(DOUBT_S, DOUBT_S, "an owner that dies takes along what it knew of who had a value"),
    },
    "who_waits_meets": {
        "kill": Excuse(0.0, FELT_S, "what waited at a dead worker has to be issued again"),
        "reload": Excuse(0.0, FELT_S, "what waited moves to a new worker"),
        "stop": Excuse(0.0, FELT_S, "who stands still brings nobody together"),
        "part": Excuse(0.0, FELT_S, "they may be on two sides of it"),
        "join": Excuse(0.0, SETTLED_S, "nodes that do not agree on a ring have two of them meet at two places"),
        "leave": Excuse(0.0, SETTLED_S, "nodes that do not agree on a ring have two of them meet at two places"),
        "death": Excuse(0.0, FELT_S, "what waited at a dead node has to be issued again"),
    },
    "nothing_comes_twice": {
        "kill": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
        "stop": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
        "part": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
        "death": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
    },
    "subscribers_miss_nothing": {
        "stop": Excuse(0.05, FELT_S, "a publisher is not made to wait for a worker that stands still"),
        "part": Excuse(0.05, FELT_S, "a publisher is not made to wait for a node that cannot be reached"),
        TWO_RELOADS: Excuse(0.0, FELT_S, "a new worker may take another new one's word for that of its predecessor"),
        "join": Excuse(0.0, SETTLED_S, "a topic is published to at its new node before all ask for it there"),
        "leave": Excuse(0.0, SETTLED_S, "a topic is published to at its new node before all ask for it there"),
        "death": Excuse(0.0, FELT_S, "a topic is published to at its new node before all ask for it there"),
    },
    "order_holds": {
        "kill": Excuse(0.0, FELT_S, "what a publisher's new worker says may overtake what the dead one said"),
        "stop": Excuse(0.0, FELT_S, "what comes by way of a worker that stands still may be overtaken"),
        "death": Excuse(0.0, FELT_S, "what is published by way of another node may overtake what the dead one said"),
    },
}
"""By rule, then by the kind of trouble."""
