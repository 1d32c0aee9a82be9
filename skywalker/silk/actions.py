"""What a pure part of Silk wants done, and what has become known of members."""

from __future__ import annotations

import dataclasses

from skywalker.silk.info import NodeInfo
from skywalker.wire.silk import Message


@dataclasses.dataclass(frozen=True, slots=True)
class Send:
    """Send a message to whoever is at an endpoint."""

    endpoint: str
    message: Message


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """Send a message back the way on which the one in hand has come: its sender's endpoint is not known."""

    message: Message


@dataclasses.dataclass(frozen=True, slots=True)
class Broadcast:
    """Send a message to all who listen."""

    message: Message


@dataclasses.dataclass(frozen=True, slots=True)
class Listen:
    """Listen to what is broadcast at an endpoint."""

    endpoint: str


@dataclasses.dataclass(frozen=True, slots=True)
class Ignore:
    """Listen there no more."""

    endpoint: str


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """Send no more to an endpoint; what is still on its way there is given up."""

    endpoint: str


@dataclasses.dataclass(frozen=True, slots=True)
class Reached:
    """Somebody has answered at an endpoint that the node was to join at."""

    endpoint: str


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
Action = Send | Answer | Broadcast | Listen | Ignore | Part | Reached | Event
