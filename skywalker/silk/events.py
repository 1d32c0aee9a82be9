"""What becomes known of the members of a cluster."""

from __future__ import annotations

import dataclasses

from skywalker.silk.info import NodeInfo


@dataclasses.dataclass(frozen=True, slots=True)
class Joined:
    """A node is a member."""

    node: NodeInfo


@dataclasses.dataclass(frozen=True, slots=True)
class Changed:
    """A member says something else of itself than before."""

    node: NodeInfo


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """A member went in the orderly way."""

    node: NodeInfo


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """A member is one no more: it has answered nothing."""

    node: NodeInfo


@dataclasses.dataclass(frozen=True, slots=True)
class Suspected:
    """A member has been silent for long, or another says that it failed: it is being asked."""

    node: NodeInfo


@dataclasses.dataclass(frozen=True, slots=True)
class Recovered:
    """A member that was suspected has answered."""

    node: NodeInfo


Event = Joined | Changed | Left | Failed | Suspected | Recovered
