"""What a node says of itself when it is greeted, as far as a cluster needs it."""

from __future__ import annotations

import dataclasses
from typing import Any

from skywalker.address import Address
from skywalker.members import Member


@dataclasses.dataclass(frozen=True, slots=True)
class Greeting:
    """The answer to a :hello."""

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
                }
                version = answer.get("ring", "")
                member = Member.parse(told)
                if member is not None and isinstance(version, str):
                    return cls(member, stated, version)
        return None
