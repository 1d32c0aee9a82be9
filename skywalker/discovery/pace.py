"""How long the roster waits for what.

With these a killed node is out within 0.2 s of the loss of its connection, and one that falls silent within 5 s.
"""

from __future__ import annotations

from typing import Final

GREETED_WITHIN_S: Final = 1.0
"""Seconds from dialling to the greeting, or the attempt has failed."""

RETRY_S: Final = 0.2
"""Seconds from the first failure to the second attempt, and between connections that do not last."""

FAILURES: Final = 2
"""Failed attempts in a row that make a node dead: one may be a worker that just died, or a lost packet."""

_REDIAL_S: Final = 1.0
_DIALS_PER_S: Final = 100

LASTING_S: Final = 1.0
"""Seconds that a connection must have lasted to be made anew at once when it is lost."""

_PING_S: Final = 0.5
_PINGS_PER_S: Final = 200

ANSWER_S: Final = 2.0
"""Seconds for the answer to a ping."""

LOOK_AGAIN_S: Final = 30.0
"""Seconds until an address where no node of use was found is looked at again: another one may live there by then."""

STRANGER_S: Final = 5.0
"""Seconds until whoever did not prove to be a node, or did not take us for one, is asked again."""

NAMED_WITHIN_S: Final = 1.0
"""Seconds within which those are named who did not: whoever names addresses could have that change all the time."""

DROPPED_S: Final = 30.0
"""Seconds that a node counts on which its source lists no more, while it answers: a Consul that was restarted lists
nobody until all have registered again, and checked."""

ASK_AGAIN_S: Final = 5.0
"""Seconds until a node that has not said all of its ring is asked again."""

FORGET_S: Final = 600.0
"""Seconds after which an address learned from others, where nobody lives, is forgotten."""

TOGETHER_S: Final = 0.05
"""Seconds within which several that come make one snapshot. One that goes is worth a snapshot at once."""

_MEMBERS_PER_S: Final = 2000


def redial_s(luck: float, dead: int) -> float:
    """Return the seconds between attempts at a dead node: up to a second, and never in step with the whole cluster.

    It is longer if very many are `dead`: then somebody names addresses at which we are not wanted.
    """
    return max(_REDIAL_S, dead / _DIALS_PER_S) * (1 + luck) / 2


def ping_s(nodes: int) -> float:
    """Return the seconds from an answer to the next ping: in a big cluster longer, or all would be busy with it."""
    return max(_PING_S, nodes / _PINGS_PER_S)


def apart_s(nodes: int) -> float:
    """Return the seconds between two snapshots: each costs every worker of the cluster time that grows with its size.

    So several that go at once make two, of which the first is of the first one.
    """
    return max(TOGETHER_S, nodes / _MEMBERS_PER_S)
