"""Calls of a sibling's clients, held here because this worker owns their topic. The sibling runs their clocks."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from skywalker.junction import Listener, Send
from skywalker.limits import WAITING_CALL_BYTES
from workers.calls import NodeSend

if TYPE_CHECKING:
    from workers.mesh import Link


class Kind(enum.IntEnum):
    """What a message says."""

    SEND = 1
    LISTEN = 2
    WITHDRAW = 3
    TOOK = 4
    LOST = 5
    CENSUS = 6
    GIVE = 7
    MET = 8
    WITHDRAWN = 9
    BUSY = 10
    COUNTED = 11
    RECALL = 12


class HeldSend(NodeSend):
    """A send of a sibling's client that waits here, where its topic is owned. The sibling runs its clock."""

    __slots__ = ("link", "number", "withdrawing")

    def __init__(self, link: Link, number: int, topic: bytes, since: float, value: bytes) -> None:
        super().__init__(topic, since, value)
        self.link = link
        self.number = number
        self.withdrawing = False  # its caller's time is over: if it meets nobody now, it ends

    def cost(self) -> int:
        """Return the bytes of memory that are counted for it."""
        return WAITING_CALL_BYTES + len(self.topic) + len(self.value)

    def met(self) -> None:
        self.link.let_go(self)
        self.link.tell(Kind.MET, self.number)

    def missed(self) -> None:
        if self.withdrawing:
            self.answered = self.abandoned = True
            self.link.let_go(self)
            self.link.tell(Kind.WITHDRAWN, self.number)
        else:
            self.link.router.junction.resume(self)


class HeldListener(Listener):
    """A listening call of a sibling's client that waits here."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link, number: int, topic: bytes, since: float, group: bytes | None) -> None:
        super().__init__(topic, since, group)
        self.link = link
        self.number = number

    def cost(self) -> int:
        """Return the bytes of memory that are counted for it."""
        return WAITING_CALL_BYTES + len(self.topic)

    def give(self, send: Send) -> bool:
        assert isinstance(send, NodeSend)
        return self.link.give(self, send)


class Offer(NodeSend):
    """A value that the owner of its topic offers to a listening client of ours."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link, number: int, topic: bytes, since: float, value: bytes) -> None:
        super().__init__(topic, since, value)
        self.link = link
        self.number = number

    def met(self) -> None:
        self.link.decided(self, Kind.TOOK)

    def missed(self) -> None:
        self.answered = True
        self.link.decided(self, Kind.LOST)
