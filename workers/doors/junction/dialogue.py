"""What a client of the MessagePack dialect says: its frames, one after another, each done as methods.py has it.

Calls take effect in the order they came. A bad one is answered with an error and costs its
sender nothing else, unless nothing readable comes at all. Of a stranger, and of one with a
rate, it is in question whether what they ask may be asked now.
"""

from __future__ import annotations

import math
import traceback
from typing import Any, Final

from skywalker.access.access import ANYONE
from skywalker.errors import BadFrame, Busy, Internal, RequestError, Unauthorized, UnknownMethod
from skywalker.limits import MAX_UNREADABLE
from skywalker.wire import junction as wire
from skywalker.wire.frames import Frame, split
from skywalker.wire.junction import RECV, SEND
from workers.access.admission import Impostor, unknown
from workers.doors.junction.methods import (
    METHODS,
    challenge,
    echo,
    hello,
    peer,
    proof,
    recv,
    send,
    timed_out_of,
    unusual,
)
from workers.doors.junction.session import Session, is_beyond_time, may_hear, note
from workers.stats.close_reasons import Close

FRAMES_PER_TURN: Final = 64
"""Of one connection: others wait for a fraction of a millisecond then, and not for all that it has said."""

MAX_TOO_FAST: Final = 16
"""Calls in a row that are refused for being too many a second before the connection rests."""

REST_S: Final = 0.1
"""Seconds for which it is not read then."""

MAX_GREETING: Final = 4096
"""Bytes of a frame of one who has yet to say who they are."""

CLIENT_HELLO: Final = (b"\x16\x03\x01", b"\x16\x03\x03")
"""What TLS begins with: of frames, none that is good."""

GREETINGS: Final = (hello, challenge, proof, peer)
"""What such a one may say: who they are."""


class Dialogue(Session):
    """That with one client."""

    __slots__ = ()

    def received(self, data: bytes) -> None:
        had_tail = self._tail
        frames, self._tail = split(had_tail + data if had_tail else data, 2, MAX_UNREADABLE)
        fresh = bool(frames)
        if fresh:
            self.has_called = True
        frames.reverse()
        self.take(frames, FRAMES_PER_TURN)
        if self.gone:
            return
        if (self._tail or had_tail) and vet_tail(self, self._tail, is_first=not had_tail and not fresh):
            self.watch_tail(fresh=fresh)

    def may_be_early(self, item: Any) -> bool:
        return item[0] in (wire.CHALLENGE, wire.PROOF, wire.PEER, wire.HELLO)

    def obey(self, todo: list[Frame]) -> None:
        frame: Any  # the name of a BadFrame is no method's
        self.heard_at = self.turn.now
        left = FRAMES_PER_TURN
        while todo:
            frame = todo.pop()
            name = frame[0]
            try:
                if self.paced or self.stranger is not None:
                    vet(self, frame)
                # Nearly all calls are one of these, and compiled it is the quickest to call them by name.
                if name == SEND:
                    send(self, frame)
                elif name == RECV:
                    recv(self, frame)
                else:
                    method = METHODS.get(name) or unusual(frame)
                    method(self, frame)
            except RequestError as error:
                refuse(self, frame, error)
            except Exception:
                # A mistake of ours costs the call that met it, not everybody on this worker.
                self.commons.log.error("bug", peer=self.peer, trace=traceback.format_exc())
                refuse(self, frame, Internal("a mistake in the node, see its log"))
            left -= 1
            # To look at the clock for each send or receive would make them slower.
            if (not left & 7 or (name != SEND and name != RECV)) and self.has_had_its_share():
                left = 0
            if self.turn.later:
                self.turn.attend()
                left = 0  # somebody was given much: that is a turn's work
            if self.gone:
                return
            if self.too_fast >= MAX_TOO_FAST:
                self.too_fast = 0
                self.rest(todo, REST_S)
                return
            if todo and (not left or self._unwritten is not None or self._out_bytes > self._max_out_bytes):
                self.rest(todo)
                return


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
    if session.gone:
        return  # what it asked has ended it
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
