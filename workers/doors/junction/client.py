"""One client of the MessagePack door, frame after frame: vetted, done or refused; all but its good calls.

Those the core does. Whatever else it says comes here, as the body of a frame, and so does what a stranger says, or one
with a rate, before it is done.
"""

from __future__ import annotations

import math
import traceback
from typing import Any, Final

from skywalker import errors
from skywalker.access.access import ANYONE
from skywalker.limits import MAX_UNREADABLE
from skywalker.wire import junction as wire
from skywalker.wire.frames import Frame, split
from workers.access.admission import Impostor, unknown
from workers.core.numbers import Verdict
from workers.doors.client import Register
from workers.doors.junction import methods
from workers.doors.junction.session import Session, is_beyond_time, may_hear
from workers.engine.transport import Transport
from workers.stats.close_reasons import Close

MAX_TOO_FAST: Final = 16
"""Calls in a row that are refused for being too many a second before the connection rests."""

REST_S: Final = 0.1
"""Seconds for which it is not read then."""

MAX_GREETING: Final = 4096
"""Bytes of a frame of one who has yet to say who they are."""

CLIENT_HELLO: Final = (b"\x16\x03\x01", b"\x16\x03\x03")
"""What TLS begins with: of frames, none that is good."""

GREETINGS: Final = (wire.CHALLENGE, wire.PROOF, wire.PEER, wire.HELLO)
"""What a stranger may say: who they are. It is done, too, before the worker hears clients."""


class JunctionClient(Session):
    """As far as it is not the core's."""

    __slots__ = ("too_fast", "unreadable")

    FACTS = (
        "peer", "opened_at", "name", "knows_errors", "acks", "follows_ring", "allowance", "unreadable", "too_fast",
    )  # fmt: skip

    def __init__(self, clients: Register, handle: int, peer: str, transport: Transport | None) -> None:
        super().__init__(clients, handle, peer, transport)
        self.unreadable = 0
        self.too_fast = 0  # calls in a row that were refused for being so

    def facts(self) -> list[Any] | None:
        if self._transport is not None or self.stranger is not None or self.proved or self.response is not None:
            return None  # TLS has its state in here; and who is a node, or has yet to say who it is, says more of that
        return super().facts()

    def vet(self, body: bytes) -> int:
        frame = _frame(body)
        if self.standing.opening and frame[0] not in GREETINGS:
            self.clients.came_early(self.handle)
            return Verdict.HAS_TO_WAIT
        try:
            self._vet(frame)
        except errors.RequestError as error:
            self._refuse(frame, error)
            if self.too_fast >= MAX_TOO_FAST:
                self.too_fast = 0
                self.core.pause(self.handle, REST_S)
            return Verdict.IS_DONE
        return Verdict.GOES_ON

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
            # Of all that share a rate because they show nothing, one says who they are; but not over and over.
            is_anyone = self.account is not None and self.account.principal.name == ANYONE
            return is_anyone and (not self.knows_errors or methods.says_token(frame))
        if name == wire.CANCEL:
            return len(frame) == 3 and self.core.waits(self.handle, frame[2])
        # The answer to a ping of ours, what confirms a value, and what is no call: of that there are few in any case.
        if name == wire.PING:
            return len(frame) == 3 and frame[1] == wire.NIL
        return not name or (name == wire.ACK and len(frame) == 2)

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
            self.note(method, error, False)
            self.finish(b"", Close.UNREADABLE if isinstance(error, errors.BadFrame) else Close.REFUSED, str(error))
            return
        words = self.refusal(method, id, error, methods.timed_out_of(frame))
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

    def half_begun(self, half: bytes, is_first: bool) -> None:
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


def _frame(body: bytes) -> Frame:
    (frame,), _ = split(len(body).to_bytes(4, "big") + body, 4)
    return frame
