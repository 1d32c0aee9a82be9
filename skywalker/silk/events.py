"""What becomes known of the members of a cluster."""

from __future__ import annotations

import dataclasses

from skywalker.silk.info import NodeInfo


@dataclasses.dataclass(frozen=True, slots=True)
class _Event:
    """What all of them say."""

    node: NodeInfo


class Joined(_Event):
    """A node is a member."""


class Changed(_Event):
    """A member says something else of itself than before."""


class Left(_Event):
    """A member went in the orderly way."""


class Failed(_Event):
    """A member is one no more: it has answered nothing."""


class Suspected(_Event):
    """A member has been silent for long, or another says that it failed: it is being asked."""


class Recovered(_Event):
    """A member that was suspected has answered."""


Event = Joined | Changed | Left | Failed | Suspected | Recovered
