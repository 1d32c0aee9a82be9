"""One address where a node of the cluster may be, and how far we got with it."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from skywalker.address import Address
from skywalker.members import Member


@dataclasses.dataclass(frozen=True, slots=True)
class Greeting:
    """What a node says of itself when it is greeted, as far as a cluster needs it."""

    member: Member
    stated: bool  # whether the node knows its own address; else it is the one at which it was reached
    version: str  # of the ring that the node uses; empty if it does not say

    @classmethod
    def parse(cls, answer: Any, reached: Address) -> Greeting | None:
        """Read the answer of a node that was reached at this numeric address; None if it is nothing of the kind."""
        match answer:
            case {"node": id, "tokens": dict(by_worker)} if all(isinstance(part, list) for part in by_worker.values()):
                stated = "address" in answer and "port" in answer
                told = {
                    "id": id,
                    "name": answer.get("name"),
                    "address": answer["address"] if stated else reached.host,
                    "port": answer["port"] if stated else reached.port,
                    "workers": answer.get("workers"),
                    "steering": answer.get("steering", False),
                    "tokens": [token for part in by_worker.values() for token in part],
                    "slicing": answer.get("slicing", 0),
                }
                version = answer.get("ring", "")
                member = Member.parse(told)
                if member is not None and isinstance(version, str):
                    return cls(member, stated, version)
        return None


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
