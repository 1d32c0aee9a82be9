"""One client of the MessagePack door: who it is, and the words for what becomes of what it asked.

What it says, and what is done about that, client.py and methods.py have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skywalker import errors
from skywalker.access.proof import Response
from skywalker.address import Address
from skywalker.journal import record
from skywalker.limits import MAX_FRAME
from skywalker.wire import junction as wire
from workers.access.admission import Impostor, speaks_tls
from workers.calls import doubt
from workers.core.numbers import Refusal
from workers.doors.client import Client, Register
from workers.doors.subscriber import Subscriber, Unsubscribing
from workers.engine.sockets import end_unacknowledged
from workers.engine.transport import Transport
from workers.stats.close_reasons import GOODBYE, Close
from workers.stats.log import MAX_NAME

DOUBTS: Final[Mapping[int, str]] = {
    Refusal.SILENT_LISTENER: doubt.SILENT_LISTENER,
    Refusal.LOST_LISTENER: doubt.LOST_LISTENER,
    Refusal.SILENT_OWNER: doubt.SILENT_OWNER,
    Refusal.LOST_OWNER: doubt.LOST_OWNER,
}

FAILED: Final = (wire.SEND, wire.RECV, wire.TAKE, wire.CANCEL, wire.MESSAGE, wire.WILL)
"""Methods by the numbers that the core has for them."""

PUBLISHED: Final = (wire.SEND, wire.RECV, wire.TOKENS)
"""The methods of the published dialects, whose clients take an error for a value."""

KNOWN: Final = (errors.BadArity, errors.BadTimeout, errors.Cancelled)
"""Errors that such a client may hear: of calls that the server of these dialects, too, answered with a mistake, and of
one that its client has cancelled, as none of them can."""

GOES_AWAY: Final = "this worker is going away: make the call again over a new connection"


class Session(Client):
    """It may say :hello, and then knows errors."""

    __slots__ = ("acks", "follows_ring", "knows_errors", "name", "response")

    door = record.JUNCTION
    knows_tokens = True
    tls_wanted = wire.error_frame(wire.ERROR, wire.NIL, speaks_tls())

    def __init__(self, clients: Register, handle: int, peer: str, transport: Transport | None) -> None:
        super().__init__(clients, handle, peer, transport)
        self.knows_errors = False  # before its first :hello: in the published dialects there is no word for an error
        self.acks = False
        self.follows_ring = False
        self.name = ""
        self.response: Response | None = None  # to the challenge of another node

    # What it is told.

    def failed(self, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int) -> None:
        """Tell it that a call ends with an error, or that a value is too long for a subscription of it."""
        error = self._error(why, size, limit)
        self.push(self.refusal(FAILED[method], id, error, wire.TIMED_OUT if timed_out is None else timed_out))

    def _error(self, why: int, size: int, limit: int) -> errors.RequestError:
        details = {"size": size, "limit": limit}
        match why:
            case Refusal.WAS_CANCELLED:
                return errors.Cancelled("the call was cancelled by its client")
            case Refusal.VALUE_TOO_LARGE:
                return errors.TooLarge(f"value of {size} bytes, whoever listens takes {limit} at most", details)
            case Refusal.REPLY_TOO_LARGE:
                return errors.TooLarge(f"reply of {size} bytes, limit is {limit}", details)
            case Refusal.DRAINS:
                return errors.Draining(GOES_AWAY)
        return doubt.unknown(DOUBTS[why]) if why in DOUBTS else self.too_much(why)

    def reply(self, method: bytes, id: bytes, result: bytes) -> None:
        """Answer a call that waits for nobody."""
        if self.is_gone:
            return
        try:
            self.push(wire.frame(method, id, result))
        except errors.TooLarge as error:
            self.reply_error(method, id, error)

    def reply_error(
        self, method: bytes, id: bytes, error: errors.RequestError, timed_out: bytes = wire.TIMED_OUT
    ) -> None:
        """Answer it with an error, or as if its time were over, by `timed_out`."""
        if not self.is_gone:
            self.push(self.refusal(method, id, error, timed_out))

    def refusal(self, method: bytes, id: bytes, error: errors.RequestError, timed_out: bytes) -> bytes:
        """Return the reply that says why a call is refused, and count it.

        A client that may take an error for a value is told nothing of a worker that goes away: it is closed instead.
        Of what the server of the published dialects never refused it is told that its time is over.
        """
        if not self.knows_errors and isinstance(error, errors.Draining) and method != wire.WILL:
            return b""  # who leaves a will knows errors
        self.commons.turn.counters.refused(error)
        is_heard = self.knows_errors or may_hear(method, error)
        self.note(method, error, is_heard)
        return wire.error_frame(method, id, error) if is_heard else wire.frame(method, id, timed_out)

    def note(self, method: bytes, error: errors.RequestError, is_heard: bool) -> None:
        """Tell of a refusal in the log: that of a right, and any that its client does not hear.

        That of a greeting which says nothing is none: some only see whether we live.
        """
        is_about_rights = isinstance(error, errors.Unauthorized | errors.Forbidden)
        if not is_heard or (
            is_about_rights and (isinstance(error, Impostor | errors.Forbidden) or method != wire.HELLO)
        ):
            self.commons.admission.refusals.note(self.peer, error)

    def subscribed(self, subscriber: Subscriber) -> None:
        self.reply(wire.SUBSCRIBE, subscriber.key, wire.TRUE)

    def unsubscribed(self, by: Unsubscribing) -> None:
        self.reply(wire.UNSUBSCRIBE, by.key, wire.TRUE if by.was_there else wire.FALSE)

    def ring_changed(self) -> None:
        if self.follows_ring and not self.is_gone:
            ring = self.commons.node.packed_ring(self.standing.node_drains)
            self.push(wire.frame(wire.RING, wire.NIL, ring))

    # Its end.

    def fail_all(self) -> None:
        self.core.fail_all(self.handle)

    @property
    def is_plain(self) -> bool:
        """Whether it has called something, and never said :hello: a client of the published dialects does so."""
        return self.core.has_called(self.handle) and not self.knows_errors

    def turn_away(self, error: errors.RequestError, reason: Close, text: str) -> None:
        self.commons.turn.counters.refused(error)
        self.last_words(b"" if self.is_plain else wire.error_frame(wire.ERROR, wire.NIL, error), reason, text)

    def is_through(self) -> None:
        # What it calls from now on it calls elsewhere. A node that proves itself has more to say.
        if self.response is None:
            self.finish(b"", *GOODBYE)

    # What a method of methods.py asks of who calls it.

    def learns_errors(self) -> None:
        """It says :hello."""
        if not self.knows_errors:
            self.knows_errors = True
            self.core.greeted(self.handle, self.acks, MAX_FRAME)

    def greeted(self, name: str, acks: bool, follows_ring: bool) -> None:
        """The client said who it is, and what it wants. It knows :ping, so it can be probed."""
        if name != self.name:
            self.name = name
            self.peer = f"{self.peer.split()[0]} ({name[:MAX_NAME]})"
        if acks and not self.acks and self.reached() is not None:
            # A value that its client never gets, since its machine is gone, is another's as soon as one that is unread.
            with self.borrowed() as transport:
                end_unacknowledged(transport, self.commons.limits.unread_output_s)
        if acks != self.acks:
            self.acks = acks
            self.core.greeted(self.handle, acks, MAX_FRAME)
        self.follows_ring = follows_ring
        if self.standing.node_drains:
            self.ring_changed()
        self.core.probe(self.handle)

    def reached(self) -> Address | None:
        """Return to which address of this machine it was made, None by a Unix socket."""
        with self.borrowed() as transport:
            name = transport.getsockname()
        return Address(*name[:2]) if isinstance(name, tuple) else None

    @property
    def may_answer_for_a_node(self) -> bool:
        """Whether it may be asked what is that node's: of several who show certificates, only one that is a node's."""
        return self.proved or self._transport is None

    def is_idle(self) -> bool:
        """Whether no call is under way, and nothing is half read or half written."""
        return self.core.is_idle(self.handle)

    def subscribe(self, id: bytes, topic: bytes) -> None:
        """Have values of a topic pushed under this id. Raises BadId if one of that id is on, Busy for too many."""
        if id in self.subscriptions:
            raise errors.BadId("this connection has a subscription of that id")
        self.subscribe_as(id, topic).ask()

    def unsubscribe(self, id: bytes, subscription_id: bytes) -> None:
        """Have no more of them pushed."""
        self.unsubscribe_as(subscription_id, id).ask()


def may_hear(method: bytes, error: errors.RequestError) -> bool:
    """Whether even a client that knows no errors is told of this one: of calls that only others make it is."""
    return method not in PUBLISHED or isinstance(error, KNOWN)


def is_beyond_time(method: bytes, error: errors.RequestError) -> bool:
    """Whether it would be no answer that the time is over: there is none, or nobody can tell whose."""
    return method == wire.TOKENS or isinstance(error, errors.BadFrame | errors.BadId)
