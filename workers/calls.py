"""The calls of a node's own clients, from arrival to answer.

Each runs on its caller's clock, and only here, at the worker that has the caller's
connection, whoever owns the topic: so a caller is answered in time even if the owner hangs,
and its calls can be issued again if the owner dies.

A send that may just be meeting somebody cannot end by our word alone, or its value might be
taken although its sender is told that nobody came. It is *ending* then, for at most GRACE_S:
its owner's word decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skywalker.errors import Busy, Cancelled, RequestError, TooLarge
from skywalker.junction import Junction, Listener, Send, Waiter
from skywalker.limits import WAITING_CALL_BYTES
from skywalker.wire import junction as wire

if TYPE_CHECKING:
    from workers.held import HeldListener
    from workers.mesh import Link
    from workers.session import Session

GRACE_S: Final = 0.03
"""Seconds for the owner's last word; with a bucket of deadlines it keeps within the promised 50 ms."""

TIMED_OUT: Final = b""
"""What a call ends with, where it is not the id of the :cancel that asked for it."""


class NodeSend(Send):
    """A send as the connections of a node see it."""

    __slots__ = ("abandoned", "abroad")

    def __init__(self, topic: bytes, since: float, value: bytes) -> None:
        super().__init__(topic, since, value)
        self.abandoned = False  # its caller was told that nobody came: who has not got the value yet must not
        self.abroad: list[HeldListener] = []  # listeners of siblings' clients that it was given to

    def hold(self) -> None:
        """Run the caller's clock from now on, if it does not yet: this turn will not bring the outcome."""

    def recall(self) -> None:
        """Have the siblings take back what their clients have not been written yet."""
        for listener in self.abroad:
            listener.link.recall(listener)


class ClientCall(Waiter):
    """What the two kinds of waiting calls of our clients have in common: a caller, and a clock."""

    if not TYPE_CHECKING:
        __slots__ = ()  # Python takes slots from one base only, so those who derive have them

    session: Session
    method: bytes
    id: bytes
    timed_out: bytes  # the result that says so, in the caller's dialect
    deadline: float
    due: float  # when it is next looked at, while it is held
    held: bool  # whether its session keeps track of it and its clock runs
    link: Link | None  # where it waits, if at another worker, with its number there
    number: int
    ending: bytes | None  # set once it is to end without having met anybody, and why

    def _begin(self, session: Session, id: bytes, timed_out: bytes, deadline: float) -> None:
        self.session = session
        self.id = id
        self.timed_out = timed_out
        self.deadline = self.due = deadline
        self.held = False
        self.link = None
        self.number = 0
        self.ending = None

    def cost(self) -> int:
        """Return the bytes of memory that are counted for it while it is held."""
        return WAITING_CALL_BYTES + len(self.topic)

    def hold(self) -> None:
        """Keep track of it from now on, if not yet, unless its caller is gone."""
        if not self.held and not self.session.gone:
            self.session.keep(self)

    def abandon(self) -> None:
        """Its caller expects nothing more of it."""

    def over(self) -> None:
        """It met nobody and never will: answer with what it ends with."""
        self.abandon()
        self.session.release(self)
        if self.ending:
            self.session.reply_error(self.method, self.id, Cancelled("the call was cancelled by its client"))
            self.session.reply(wire.CANCEL, self.ending, wire.TRUE)
        else:
            self.session.reply(self.method, self.id, self.timed_out)

    def fail(self, error: RequestError) -> None:
        """Answer with an error."""
        self.abandon()
        self.session.release(self)
        self.session.reply_error(self.method, self.id, error)
        if self.ending:
            self.session.reply(wire.CANCEL, self.ending, wire.TRUE)

    def meet(self, junction: Junction) -> bool:
        """Meet whoever is in the junction; return False if nobody is."""
        raise NotImplementedError

    def withdraw(self) -> bool:
        """Leave the place where it waits. Returns False if it may just be meeting somebody."""
        return self.session.router.withdraw(self)

    def expired(self) -> None:
        """Its time, or the time for a last word of its owner, is over."""
        if self.held:
            self.withdraw()
            self.over()

    def end(self, ending: bytes) -> None:
        """End without having met anybody, TIMED_OUT or for a :cancel, unless it just met somebody."""
        raise NotImplementedError

    def _ask_owner(self) -> None:
        """Ask for the owner's last word, and wait GRACE_S for it."""
        if self.link is not None:
            self.link.ask_back(self)
        self.session.postpone(self, self.session.router.now + GRACE_S)


class ClientSend(ClientCall, NodeSend):
    """A send! of one of our clients."""

    __slots__ = ("deadline", "due", "ending", "held", "id", "link", "number", "session", "timed_out")

    method = wire.SEND

    def __init__(
        self, session: Session, id: bytes, timed_out: bytes, topic: bytes, value: bytes, since: float, deadline: float
    ) -> None:
        NodeSend.__init__(self, topic, since, value)
        self._begin(session, id, timed_out, deadline)

    def cost(self) -> int:
        return WAITING_CALL_BYTES + len(self.topic) + len(self.value)

    def met(self) -> None:
        self.session.release(self)
        self.session.reply(wire.SEND, self.id, wire.TRUE)
        if self.ending:
            self.session.reply(wire.CANCEL, self.ending, wire.FALSE)

    def missed(self) -> None:
        if self.session.gone:
            self.abandon()
        elif self.ending is not None:
            self.over()
        else:
            self.hold()
            self.session.router.junction.resume(self)

    def abandon(self) -> None:
        self.answered = self.abandoned = True
        self.recall()

    def meet(self, junction: Junction) -> bool:
        return junction.send(self)

    def expired(self) -> None:
        if self.held and self.ending is None:
            self.end(TIMED_OUT)
        else:
            super().expired()

    def end(self, ending: bytes) -> None:
        self.ending = ending
        if self.link is None and (self.withdraw() or not self.abroad):
            self.over()
        else:
            self._ask_owner()


class ClientListener(ClientCall, Listener):
    """A recv! or :take! of one of our clients."""

    __slots__ = (
        "chunk", "deadline", "due", "ending", "held", "id", "link", "method", "number", "offered", "session",
        "timed_out",
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        method: bytes,
        id: bytes,
        timed_out: bytes,
        topic: bytes,
        group: bytes | None,
        since: float,
        deadline: float,
    ) -> None:
        Listener.__init__(self, topic, since, group)
        self._begin(session, id, timed_out, deadline)
        self.method = method
        self.offered: NodeSend | None = None  # whose value it was given, until that is confirmed or lost
        self.chunk = b""  # the reply that holds it

    def give(self, send: Send) -> bool:
        assert isinstance(send, NodeSend)
        session = self.session
        if session.gone:
            return False
        if session.congested():
            self.hold()
            session.park(self)
            return False
        try:
            self.chunk = wire.reply(self.method, self.id, send.value)
        except TooLarge as error:
            self.fail(error)
            return False
        self.offered = send
        session.release(self)
        session.push_value(self)
        return True

    def meet(self, junction: Junction) -> bool:
        return junction.listen(self)

    def withdraw(self) -> bool:
        self.session.unpark(self)
        # A value on its way here from another worker finds it gone, and goes to somebody else.
        return super().withdraw()

    def end(self, ending: bytes) -> None:
        self.ending = ending
        # A call with no time at all still gets what its owner has waiting.
        if ending == TIMED_OUT and self.link is not None:
            self._ask_owner()
        else:
            self.expired()


class CensusCall:
    """A :topic about a topic that another worker owns."""

    __slots__ = ("due", "id", "session")

    def __init__(self, session: Session, id: bytes, due: float) -> None:
        self.session = session
        self.id = id
        self.due = due

    def answer(self, info: bytes) -> None:
        """Pass on what the owner counted."""
        self.session.router.deadlines.discard(self, self.due)
        self.session.reply(wire.TOPIC, self.id, info)

    def expired(self) -> None:
        """The owner does not answer."""
        self.session.reply_error(wire.TOPIC, self.id, Busy("the worker that owns the topic does not answer"))
