"""What the two sides of a link hold of each other: calls that wait at their owner, values on offer to a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skywalker.junction import Call
from workers.calls import NodeCall
from workers.packets import Kind

if TYPE_CHECKING:
    from workers.mesh import Link


class HeldCall(NodeCall):
    """A call of a sibling's client, held here because this worker owns its topic. The sibling runs its clock."""

    __slots__ = ("link", "number", "withdrawing")

    def __init__(
        self, link: Link, number: int, topic: bytes, since: float, value: bytes | None, group: bytes | None
    ) -> None:
        self.begin(topic, since, value, group)
        self.link = link
        self.number = number
        self.withdrawing = False  # of a send: its caller's time is over, so if it meets nobody now, it ends

    def give(self, send: Call) -> bool:
        assert isinstance(send, NodeCall)
        return self.link.give(self, send)

    def met(self) -> None:
        self.link.let_go(self)
        self.value = b""
        self.link.tell(Kind.MET, self.number)

    def missed(self) -> None:
        if self.withdrawing:
            self.answered = True
            self.link.let_go(self)
            self.link.tell(Kind.WITHDRAWN, self.number)
        else:
            self.link.router.junction.resume(self)


class Offer(NodeCall):
    """A value that the owner of its topic offers to a listening client of ours."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link, number: int, topic: bytes, since: float, value: bytes) -> None:
        self.begin(topic, since, value, None)
        self.link = link
        self.number = number

    def met(self) -> None:
        self.link.decided(self.number, Kind.TOOK)

    def missed(self) -> None:
        self.answered = True
        self.link.decided(self.number, Kind.LOST)
