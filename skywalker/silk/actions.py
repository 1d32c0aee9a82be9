"""What the pure parts of Silk want done."""

from __future__ import annotations

import dataclasses

from skywalker.silk.events import Event
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
class Refused:
    """Whoever is at an endpoint that the node was to join at does not let it in."""

    endpoint: str
    reason: str


Action = Send | Answer | Broadcast | Listen | Ignore | Part | Reached | Refused | Event
