"""One address where a node of the cluster may be, and how far we got with it."""

from __future__ import annotations

import dataclasses
import enum

from skywalker.address import Address
from skywalker.discovery.greeting import Greeting


class State(enum.Enum):
    """What is under way at an address, and so what its time `at` means."""

    RESTING = "resting"  # not connected; dialled then
    DIALLING = "dialling"  # dialled and not greeted; given up then
    UP = "up"  # greeted; pinged then
    PINGED = "pinged"  # greeted and pinged; taken for dead then


CONNECTED = frozenset((State.UP, State.PINGED))


@dataclasses.dataclass(eq=False, slots=True)
class Contact:
    """An address. Its greeting is that of the node which lives there, kept while a lost connection is made anew."""

    address: Address
    listed: bool  # by the source, and not merely learned from others
    alive_at: float  # when it last was of use; for a new one, when it was learned
    state: State = State.RESTING
    at: float | None = None
    failures: int = 0  # attempts in a row that came to nothing
    greeting: Greeting | None = None
    greeted_at: float = 0.0
    dropped_at: float | None = None  # when the source listed it no more, although the node lives
    leaving: bool = False  # the node said so, and is still connected
    shadowed: str = ""  # the id of the node that is here too, while it is reached at another address
    noticed: str = ""  # the trouble that was told last, so as not to tell it again before it is over

    @property
    def connected(self) -> bool:
        """Whether a greeted connection is open."""
        return self.state in CONNECTED
