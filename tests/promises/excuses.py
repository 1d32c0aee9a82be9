"""What trouble excuses from which rule, for how long, and why. What is not listed excuses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

FELT_S: Final = 2.0
"""Seconds for which trouble is felt."""

IN_A_STEP_S: Final = 0.005
"""Seconds by which what a worker did in its last step may seem to be before its death, which is at the end of that."""

DOUBT_S: Final = 0.5
"""Seconds around a kill or a stop in which what is handed out may be taken by somebody of whom nobody hears."""

TWO_RINGS: Final = "two rings"
"""That while not all workers go by the ring that there is."""

TWO_RELOADS: Final = "two reloads"
"""The kind of trouble that there is while two nodes are reloaded at once."""

STOPPED_IN_A_RELOAD: Final = "stopped in a reload"
"""That while a worker of a node stands still for GIVEN_UP_S or more, or all of it, its workers are being replaced."""

GIVEN_UP_S: Final = 0.3
"""Seconds after which others ask the successor of one that is replaced, and has not said its last."""

RELAY_STOPPED: Final = "relay stopped"
"""The kind of trouble of a node that there is while a worker of another one stands still through which siblings of that
one are linked to it."""

RELAY_STOPPED_IN_A_RELOAD: Final = "relay stopped in a reload"
"""That while there is this for GIVEN_UP_S or more, and the node is being reloaded."""

KILLED_STANDING: Final = "killed while it stood still"
"""That from when a worker stands still until it is killed in that state, or in the step in which it goes on."""

TWO_KILLS: Final = "two kills"
"""That of two workers of a node of which the second died before the first had a successor, and was perhaps linked to
another node through that one."""

HEARD_LATE: Final = "heard late"
"""That from the death of a worker until another one of its node has gone on that stood still then."""

LOST_UNHEARD: Final = "lost unheard"
"""That while a worker stands still, or two nodes are parted, if a link is lost meanwhile, or a node dies."""

DIED_UNHEARD: Final = "died unheard"
"""That while two nodes are parted, of which a worker is killed meanwhile."""

ENDS_UNHEARD: Final = "ends unheard"
"""That while a node leaves and a worker stands still, of whatever node, or two nodes are parted for UNDECIDED_S or more
and one leaves, or is reloaded."""

UNDECIDED_S: Final = 1.0
"""Seconds for which a worker that leaves waits for word of what it has handed out."""

ON_ITS_WAY: Final = "who_moves_arrives"
"""The rule that a connection goes on at another worker, if that lives."""

PASSED_S: Final = 0.05
"""Seconds for what is on its way between two workers."""

DIALLED_S: Final = 1.2
"""Seconds in which a worker that could not dial another one, or accept its connection, is linked to it: a second may
pass until that is tried again."""

LINKED_S: Final = 0.25
"""Seconds in which a connection between two nodes that is lost is made anew: at once, or after 0.1 to 0.2 s if the one
before it did not last, either."""

OVER_S: Final = 0.5
"""Seconds after which all that was held up has been heard, by one another, and by who has a successor: another node may
hear the last of that one for 0.3 s, and then has to make a connection."""

SETTLED_S: Final = 0.3
"""Seconds after which all nodes go by a ring that all have agreed on. Until they have, there is trouble of the kinds
join, leave or death."""

AGREE_S: Final = 0.05
"""Seconds between two looks whether they have."""


class Excuse(NamedTuple):
    """Something is excused from `before_s` seconds before the trouble begins until `after_s` after it ends."""

    before_s: float
    after_s: float
    why: str


EXCUSES: Final[Mapping[str, Mapping[str, Excuse]]] = {
    "connections_last": {
        "kill": Excuse(0.0, FELT_S, "they end with their worker"),
        "reload": Excuse(0.0, FELT_S, "who has not gone when the time to drain is over is sent away"),
        "leave": Excuse(0.0, FELT_S, "they end with their node"),
        "death": Excuse(0.0, FELT_S, "they end with their node"),
        "suspend": Excuse(0.0, FELT_S, "as at a stop, of all workers of the node"),
    },
    ON_ITS_WAY: {
        "kill": Excuse(
            IN_A_STEP_S, PASSED_S, "a worker that dies takes with it what was on its way to it, or from there"
        ),
        HEARD_LATE: Excuse(0.0, PASSED_S, "as at a kill, of which the other one knows only now"),
    },
    "refusals_have_a_reason": {
        "reload": Excuse(0.0, FELT_S, "a worker that is replaced has its clients go elsewhere"),
        "leave": Excuse(0.0, FELT_S, "a node that leaves has its clients go elsewhere"),
    },
    "answers_come_in_time": {
        "kill": Excuse(FELT_S, FELT_S, "a new worker has to start and to open"),
        "stop": Excuse(FELT_S, FELT_S, "who stands still answers nobody"),
        "part": Excuse(0.5, 1.0, "a worker that opens waits for word of other nodes"),
        TWO_RELOADS: Excuse(0.0, FELT_S, "a new worker waits for those that are being replaced elsewhere"),
        "death": Excuse(FELT_S, FELT_S, "another node may have the last word"),
        "suspend": Excuse(FELT_S, 5 + FELT_S, "its clock stands still, too: all that waited then is as much later"),
        "link reset": Excuse(FELT_S, FELT_S, "what was on its way is lost, and asked again over a new connection"),
        "link half open": Excuse(FELT_S, FELT_S, "nobody knows before it is found"),
        "no descriptors": Excuse(FELT_S, FELT_S, "who waits to be accepted has to wait for longer"),
    },
    "who_waits_meets": {
        "kill": Excuse(0.0, FELT_S, "what waited at a dead worker has to be issued again"),
        "stop": Excuse(0.0, FELT_S, "who stands still brings nobody together"),
        "part": Excuse(0.0, FELT_S, "they may be on two sides of it"),
        TWO_RELOADS: Excuse(0.0, FELT_S, "new workers of two nodes that open at once wait for one another"),
        "join": Excuse(0.0, SETTLED_S, "nodes that do not agree on a ring have two of them meet at two places"),
        TWO_RINGS: Excuse(AGREE_S, SETTLED_S, "as at a join"),
        "leave": Excuse(0.0, FELT_S, "what waited moves to another node, and back"),
        "death": Excuse(0.0, FELT_S, "until a dead node is given up, its topics are nobody's"),
        "suspend": Excuse(0.0, 5 + FELT_S, "as at a stop, and what waited has waited for less by its clock"),
        "link half open": Excuse(0.0, FELT_S, "they may be on two sides of it"),
        "no descriptors": Excuse(0.0, DIALLED_S, "who has yet to be connected to an owner of topics cannot ask it"),
    },
    "senders_are_served_in_turn": {
        TWO_KILLS: Excuse(0.0, FELT_S, "a link of the one through the other is awaited for a while"),
        TWO_RELOADS: Excuse(0.0, FELT_S, "a new worker waits for others, and is told of listeners that have ended"),
        "stop": Excuse(0.0, OVER_S, "what one that stands still has, or was given, has to wait for it"),
        "part": Excuse(0.0, OVER_S, "they may be on two sides of it"),
        "join": Excuse(0.0, SETTLED_S, "nodes that do not agree on a ring have one wait at two places"),
        TWO_RINGS: Excuse(AGREE_S, SETTLED_S, "as at a join"),
        "leave": Excuse(0.0, FELT_S, "what waited moves to another node, and back, and others may be there before"),
        "death": Excuse(0.0, FELT_S, "until a dead node is given up, what waits there waits in vain"),
        "suspend": Excuse(0.0, FELT_S, "as at a stop, and what waited has waited for less by its clock"),
        "link reset": Excuse(0.0, LINKED_S, "what waited beyond it stands in no line until it is asked again"),
        "link half open": Excuse(0.0, LINKED_S, "they may be on two sides of it, and then as with one that is reset"),
        "no descriptors": Excuse(0.0, DIALLED_S, "who has yet to be accepted, or connected to an owner, waits in vain"),
    },
    "nothing_comes_twice": {
        "kill": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
        "death": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
        KILLED_STANDING: Excuse(DOUBT_S, DOUBT_S, "what it had handed out has been in doubt since it stood still"),
        ENDS_UNHEARD: Excuse(PASSED_S, DOUBT_S, "a worker that leaves ends before it hears who has a value"),
        STOPPED_IN_A_RELOAD: Excuse(FELT_S, DOUBT_S, "what has waited for a second there is offered to its successor"),
        "suspend": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
        "link reset": Excuse(DOUBT_S, DOUBT_S, "what was on its way is offered again"),
        "link half open": Excuse(DOUBT_S, DOUBT_S, "what is in doubt is offered again"),
        LOST_UNHEARD: Excuse(DOUBT_S, DOUBT_S, "what was on its way since then is offered again"),
        DIED_UNHEARD: Excuse(PASSED_S, DOUBT_S, "what it had said to another node arrives then, and is offered again"),
    },
    "subscribers_miss_nothing": {
        TWO_KILLS: Excuse(
            0.0, FELT_S, "a third one waits for a link through one of them, and is sent nothing meanwhile"
        ),
        "stop": Excuse(0.05, FELT_S, "a publisher is not made to wait for a worker that stands still"),
        "part": Excuse(0.05, FELT_S, "a publisher is not made to wait for a node that cannot be reached"),
        "join": Excuse(0.0, SETTLED_S, "while topics move to another node, not all know who publishes where"),
        TWO_RINGS: Excuse(AGREE_S, SETTLED_S, "as at a join"),
        "leave": Excuse(0.0, FELT_S, "while topics move to another node, and back, not all know who publishes where"),
        "death": Excuse(0.05, FELT_S, "what is on its way to it is lost, and until it is given up, all on its topics"),
        "suspend": Excuse(0.05, FELT_S, "a publisher is not made to wait for a node that stands still"),
        "link reset": Excuse(0.05, FELT_S, "what is on its way is lost, and what comes until it is dialled again"),
        "link half open": Excuse(0.05, FELT_S, "as with one that is reset, once that is known"),
        "no descriptors": Excuse(0.0, DIALLED_S, "an owner that is new cannot be asked for what is published there"),
    },
    "nodes_agree": {
        "stop": Excuse(0.0, FELT_S, "who stands still says nothing of itself, and hears nothing of others"),
        "suspend": Excuse(0.0, FELT_S, "as at a stop"),
        "agent stop": Excuse(0.0, FELT_S, "as at a stop"),
        "supervisor stop": Excuse(0.0, FELT_S, "what an agent comes to know goes through it"),
        "part": Excuse(0.0, FELT_S, "who cannot be reached may be dead"),
        "link half open": Excuse(0.0, FELT_S, "as with a part"),
        "no descriptors": Excuse(0.0, FELT_S, "as with a part"),
        "join": Excuse(0.0, FELT_S, "it takes some time to hear of each other"),
        "leave": Excuse(0.0, FELT_S, "as at a join"),
        "death": Excuse(0.0, FELT_S, "as at a join"),
    },
    "order_holds": {
        DIED_UNHEARD: Excuse(0.0, OVER_S, "what it had said to another node arrives then, behind what is said later"),
        STOPPED_IN_A_RELOAD: Excuse(0.0, FELT_S, "what one that is replaced is slow to give back may be overtaken"),
        RELAY_STOPPED_IN_A_RELOAD: Excuse(
            0.0, FELT_S, "its successor is heard directly, and it once the relay goes on"
        ),
    },
}
"""By rule, then by the kind of trouble."""
