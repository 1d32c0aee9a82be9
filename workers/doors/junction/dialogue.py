"""What a client of the MessagePack dialect says: its frames, one after another, each done as methods.py has it.

Calls take effect in the order they came. A bad one is answered with an error and costs its
sender nothing else, unless nothing readable comes at all.
"""

from __future__ import annotations

import traceback
from typing import Any, Final

from skywalker import errors
from skywalker.limits import MAX_UNREADABLE
from skywalker.wire import junction as wire
from skywalker.wire.frames import Frame, split
from skywalker.wire.junction import RECV, SEND
from workers.doors.junction.methods import METHODS, recv, send, unusual
from workers.doors.junction.session import Session
from workers.doors.junction.vetting import refuse, vet, vet_tail

FRAMES_PER_TURN: Final = 64
"""Of one connection: others wait for a fraction of a millisecond then, and not for all that it has said."""

MAX_TOO_FAST: Final = 16
"""Calls in a row that are refused for being too many a second before the connection rests."""

REST_S: Final = 0.1
"""Seconds for which it is not read then."""


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
            except errors.RequestError as error:
                refuse(self, frame, error)
            except Exception:
                # A mistake of ours costs the call that met it, not everybody on this worker.
                self.commons.log.error("bug", peer=self.peer, trace=traceback.format_exc())
                refuse(self, frame, errors.Internal("a mistake in the node, see its log"))
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
