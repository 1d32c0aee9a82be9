"""Whether what a client asks may be asked now, where that is in question: of a stranger, and of one with a rate.

And how it is refused, for whatever reason."""

from __future__ import annotations

import math
from typing import Any, Final

from skywalker.access.access import ANYONE
from skywalker.errors import BadFrame, Busy, RequestError, Unauthorized, UnknownMethod
from skywalker.limits import MAX_UNREADABLE
from skywalker.wire import junction as wire
from skywalker.wire.frames import Frame
from workers.access.admission import Impostor, unknown
from workers.doors.junction.hearing import is_beyond_time, may_hear, note
from workers.doors.junction.methods import METHODS, challenge, echo, hello, peer, proof, timed_out_of, unusual
from workers.doors.junction.session import Session
from workers.stats.closes import Close

MAX_GREETING: Final = 4096
"""Bytes of a frame of one who has yet to say who they are."""

CLIENT_HELLO: Final = (b"\x16\x03\x01", b"\x16\x03\x03")
"""What TLS begins with: of frames, none that is good."""

GREETINGS: Final = (hello, challenge, proof, peer)
"""What such a one may say: who they are."""


def vet(session: Session, frame: Any) -> None:
    """Raise Unauthorized for what a stranger may not ask, Busy for what is asked too fast."""
    if session.stranger is not None:
        try:
            method = METHODS.get(frame[0]) or unusual(frame)
        except UnknownMethod:
            raise unknown() from None
        if method not in GREETINGS:
            raise unknown()
    elif not _is_unpaced(session, frame):
        seconds, limit = session.delay()
        if seconds:
            retry_ms = math.ceil(1000 * seconds)
            session.too_fast += 1
            raise Busy("more calls a second than are allowed", {"limit": limit, "retry_ms": retry_ms})
        session.too_fast = 0


def vet_tail(session: Session, tail: bytes, *, is_first: bool) -> bool:
    """Look at half a frame, which may be the first of all; return whether more of it is to come."""
    if is_first and tail.startswith(CLIENT_HELLO):
        plain = BadFrame("this node speaks no TLS here: connect without, or give it a certificate")
        session.turn_away(plain, Close.UNREADABLE, "it speaks TLS")
        return False
    if session.stranger is not None and len(tail) > MAX_GREETING:
        long = Unauthorized(f"more than {MAX_GREETING} bytes of one who has not said who they are")
        session.turn_away(long, Close.UNAUTHORIZED, "it says much, and not who it is")
        return False
    return True


def _is_unpaced(session: Session, frame: Any) -> bool:
    """Whether it is not counted by the second: it would cost more to refuse it, or is not for others to bring about."""
    name = frame[0]
    if name == wire.HELLO:
        # Of all that share a rate because they show nothing, one says who they are.
        return session.account is not None and session.account.principal.name == ANYONE
    if name == wire.CANCEL:
        return len(frame) == 3 and session.find(frame[2]) is not None
    # The answer to a ping of ours, what confirms a value, and what is no call: of that there are few in any case.
    return not name or name == wire.ACK or (name == wire.PING and len(frame) == 3)


def refuse(session: Session, frame: Frame, error: RequestError) -> None:
    """Answer with an error; close, too, if nothing better is to be expected of its client."""
    method, id = echo(frame)
    if not session.knows_errors and not may_hear(method, error) and is_beyond_time(method, error):
        session.counters.refused(error)
        note(session, method, error, False)
        session.finish(b"", Close.UNREADABLE if isinstance(error, BadFrame) else Close.REFUSED, str(error))
        return
    words = session.refusal(method, id, error, timed_out_of(frame))
    if isinstance(error, Impostor):
        session.last_words(words, Close.UNAUTHORIZED, str(error))
        return
    if isinstance(error, BadFrame) or session.stranger is not None:
        session.unreadable += 1
        if session.unreadable == MAX_UNREADABLE:
            if isinstance(error, BadFrame):
                session.last_words(words, Close.UNREADABLE, f"{MAX_UNREADABLE} unreadable frames")
            else:
                session.last_words(words, Close.UNAUTHORIZED, f"{MAX_UNREADABLE} calls of one who is not known")
            return
    session.push(words)
