"""One client of the MessagePack door: all that it says but good calls, and the words for what fails.

The core does its good calls. Whatever else it says comes here, as the body of a frame, and so does what a stranger
says, or one with a rate, before it is done; methods.py does what is asked.
"""

from __future__ import annotations

import math
import traceback
from typing import Final

from skywalker import errors
from skywalker.access.access import ANYONE
from skywalker.access.proof import Response
from skywalker.address import Address
from skywalker.journal import record
from skywalker.limits import MAX_FRAME, MAX_UNREADABLE
from skywalker.wire import junction as wire
from skywalker.wire.frames import Frame, split
from workers.access.admission import Impostor, speaks_tls, unknown
from workers.calls import doubt
from workers.doors import client as reasons
from workers.doors.client import Client, Register
from workers.doors.junction import methods
from workers.doors.subscriber import Subscriber, Unsubscribing
from workers.engine.sockets import end_unacknowledged
from workers.engine.transport import Transport
from workers.stats.close_reasons import GOODBYE, Close
from workers.stats.log import MAX_NAME

# What is to become of a frame that was looked at first, as verdicts of core.h.
GOES_ON: Final = 0
IS_DONE: Final = 1
HAS_TO_WAIT: Final = 2

MAX_TOO_FAST: Final = 16
"""Calls in a row that are refused for being too many a second before the connection rests."""

REST_S: Final = 0.1
"""Seconds for which it is not read then."""

MAX_GREETING: Final = 4096
"""Bytes of a frame of one who has yet to say who they are."""

CLIENT_HELLO: Final = (b"\x16\x03\x01", b"\x16\x03\x03")
"""What TLS begins with: of frames, none that is good."""

DOUBTS: Final = {
    reasons.SILENT: doubt.SILENT_LISTENER,
    reasons.LOST: doubt.LOST_LISTENER,
    reasons.SILENT_OWNER: doubt.SILENT_OWNER,
    reasons.LOST_OWNER: doubt.LOST_OWNER,
}

FAILED: Final = (wire.SEND, wire.RECV, wire.TAKE, wire.CANCEL, wire.MESSAGE, wire.WILL)
"""Methods by the numbers that the core has for them."""

PUBLISHED: Final = (wire.SEND, wire.RECV, wire.TOKENS)
"""The methods of the published dialects, whose clients take an error for a value."""

KNOWN: Final = (errors.BadArity, errors.BadTimeout, errors.Cancelled)
"""Errors that such a client may hear: of calls that the server of these dialects, too, answered with a mistake, and of
one that its client has cancelled, as none of them can."""

GREETINGS: Final = (wire.CHALLENGE, wire.PROOF, wire.PEER, wire.HELLO)
"""What a stranger may say: who they are. It is done, too, before the worker hears clients."""


class JunctionClient(Client):
    """One client of this door, as far as it is not the core's."""

    __slots__ = ("acks", "follows_ring", "knows_errors", "name", "response", "too_fast", "unreadable")

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
        self.unreadable = 0
        self.too_fast = 0  # calls in a row that were refused for being so

    # What it says.

    def vet(self, body: bytes) -> int:
        frame = _frame(body)
        if self.standing.opening and frame[0] not in GREETINGS:
            self.clients.came_early(self.handle)
            return HAS_TO_WAIT
        try:
            self._vet(frame)
        except errors.RequestError as error:
            self._refuse(frame, error)
            if self.too_fast >= MAX_TOO_FAST:
                self.too_fast = 0
                self.core.pause(self.handle, REST_S)
            return IS_DONE
        return GOES_ON

    def _vet(self, frame: Frame) -> None:
        """Raise Unauthorized for what a stranger may not ask, Busy for what is asked too fast."""
        if self.stranger is not None:
            try:
                name = methods.name_of(frame)
            except errors.UnknownMethod:
                raise unknown() from None
            if name not in GREETINGS:
                raise unknown()
        elif self.paced and not self._is_unpaced(frame):
            seconds, limit = self.delay()
            if seconds:
                self.too_fast += 1
                details = {"limit": limit, "retry_ms": math.ceil(1000 * seconds)}
                raise errors.Busy("more calls a second than are allowed", details)
            self.too_fast = 0

    def _is_unpaced(self, frame: Frame) -> bool:
        """Whether it is not counted by the second: it would cost more to refuse it, or is not for others to do."""
        name = frame[0]
        if name == wire.HELLO:
            # Of all that share a rate because they show nothing, one says who they are.
            return self.account is not None and self.account.principal.name == ANYONE
        if name == wire.CANCEL:
            return len(frame) == 3 and self.core.waits(self.handle, frame[2])
        # The answer to a ping of ours, what confirms a value, and what is no call: of that there are few in any case.
        return not name or name == wire.ACK or (name == wire.PING and len(frame) == 3)

    def unusual(self, body: bytes) -> None:
        frame = _frame(body)
        try:
            methods.METHODS[methods.name_of(frame)](self, frame)  # type: ignore[arg-type]  # of a BadFrame there is no method
        except errors.RequestError as error:
            self._refuse(frame, error)
        except Exception:
            # A mistake of ours costs the call that met it, not everybody on this worker.
            self.commons.log.error("bug", peer=self.peer, trace=traceback.format_exc())
            self._refuse(frame, errors.Internal("a mistake in the node, see its log"))

    def _refuse(self, frame: Frame, error: errors.RequestError) -> None:
        """Answer with an error; close, too, if nothing better is to be expected of its client."""
        if self.is_gone:
            return  # what it asked has ended it
        method, id = methods.echo(frame)
        if not self.knows_errors and not may_hear(method, error) and is_beyond_time(method, error):
            self.commons.turn.counters.refused(error)
            self._note(method, error, False)
            self.finish(b"", Close.UNREADABLE if isinstance(error, errors.BadFrame) else Close.REFUSED, str(error))
            return
        words = self._refusal(method, id, error, methods.timed_out_of(frame))
        if isinstance(error, Impostor):
            self.last_words(words, Close.UNAUTHORIZED, str(error))
            return
        if isinstance(error, errors.BadFrame) or self.stranger is not None:
            self.unreadable += 1
            if self.unreadable == MAX_UNREADABLE:
                if isinstance(error, errors.BadFrame):
                    self.last_words(words, Close.UNREADABLE, f"{MAX_UNREADABLE} unreadable frames")
                else:
                    self.last_words(words, Close.UNAUTHORIZED, f"{MAX_UNREADABLE} calls of one who is not known")
                return
        self.push(words)

    def begun(self, half: bytes, is_first: bool) -> None:
        if is_first and half.startswith(CLIENT_HELLO):
            plain = errors.BadFrame("this node speaks no TLS here: connect without, or give it a certificate")
            self.turn_away(plain, Close.UNREADABLE, "it speaks TLS")
        elif self.stranger is not None and len(half) > MAX_GREETING:
            long = errors.Unauthorized(f"more than {MAX_GREETING} bytes of one who has not said who they are")
            self.turn_away(long, Close.UNAUTHORIZED, "it says much, and not who it is")

    def half_is_old(self) -> None:
        seconds = self.commons.limits.half_frame_s
        error = errors.BadFrame(f"the rest of a frame did not come within {seconds:g} s")
        self.turn_away(error, Close.HALF_FRAME, "half a frame")

    # What it is told.

    def failed(self, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int) -> None:
        """Tell it that a call ends with an error, or that a value is too long for a subscription of it."""
        error = self._error(why, size, limit)
        self.push(self._refusal(FAILED[method], id, error, wire.TIMED_OUT if timed_out is None else timed_out))

    def _error(self, why: int, size: int, limit: int) -> errors.RequestError:
        details = {"size": size, "limit": limit}
        match why:
            case reasons.WAS_CANCELLED:
                return errors.Cancelled("the call was cancelled by its client")
            case reasons.VALUE_TOO_LARGE:
                return errors.TooLarge(f"value of {size} bytes, whoever listens takes {limit} at most", details)
            case reasons.REPLY_TOO_LARGE:
                return errors.TooLarge(f"reply of {size} bytes, limit is {limit}", details)
            case reasons.DRAINS:
                return errors.Draining("this worker is going away")
            case reasons.SILENT | reasons.LOST | reasons.SILENT_OWNER | reasons.LOST_OWNER:
                return doubt.unknown(DOUBTS[why])
        return self.too_much(why)

    def reply(self, method: bytes, id: bytes, result: bytes) -> None:
        """Answer a call that waits for nobody."""
        if self.is_gone:
            return
        try:
            self.push(wire.reply(method, id, result))
        except errors.TooLarge as error:
            self.reply_error(method, id, error)

    def reply_error(
        self, method: bytes, id: bytes, error: errors.RequestError, timed_out: bytes = wire.TIMED_OUT
    ) -> None:
        """Answer it with an error, or as if its time were over, by `timed_out`."""
        if not self.is_gone:
            self.push(self._refusal(method, id, error, timed_out))

    def _refusal(self, method: bytes, id: bytes, error: errors.RequestError, timed_out: bytes) -> bytes:
        """Return the reply that says why a call is refused, and count it.

        A client that may take an error for a value is told nothing of a worker that goes away: it is closed instead.
        Of what the server of the published dialects never refused it is told that its time is over.
        """
        if not self.knows_errors and isinstance(error, errors.Draining) and method != wire.WILL:
            return b""  # who leaves a will knows errors
        self.commons.turn.counters.refused(error)
        is_heard = self.knows_errors or may_hear(method, error)
        self._note(method, error, is_heard)
        return wire.error_frame(method, id, error) if is_heard else wire.reply(method, id, timed_out)

    def _note(self, method: bytes, error: errors.RequestError, is_heard: bool) -> None:
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
        self.knows_errors = True
        self.core.greeted(self.handle, self.acks, MAX_FRAME)
        self.clients.count_in_flight()  # who says a token may be somebody who has too much in flight

    def greeted(self, name: str, acks: bool, follows_ring: bool) -> None:
        """The client said who it is, and what it wants. It knows :ping, so it can be probed."""
        if name != self.name:
            self.name = name
            self.peer = f"{self.peer.split()[0]} ({name[:MAX_NAME]})"
        if acks and not self.acks and self.reached() is not None:
            # A value that its client never gets, since its machine is gone, is another's as soon as one that is unread.
            with self.borrowed() as transport:
                end_unacknowledged(transport, self.commons.limits.unread_output_s)
        self.acks = acks
        self.follows_ring = follows_ring
        self.core.greeted(self.handle, acks, MAX_FRAME)
        if self.standing.node_drains:
            self.ring_changed()
        self.core.probe(self.handle)

    def reached(self) -> Address | None:
        """Return to which address of this machine it was made, None by a Unix socket."""
        with self.borrowed() as transport:
            name = transport.getsockname()
        return Address(*name[:2]) if isinstance(name, tuple) else None

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


def _frame(body: bytes) -> Frame:
    (frame,), _ = split(len(body).to_bytes(4, "big") + body, 4)
    return frame
