"""Whether a client that waits for replies, and says nothing, still lives: it is asked, and closed without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skywalker.wire import junction as wire
from workers.alarm import Alarm
from workers.closes import Close
from workers.will import Will

if TYPE_CHECKING:
    from workers.session import Session


class Silence:
    """That of one client, which knows :ping."""

    __slots__ = ("_alarm", "_period", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._period = session.router.limits.idle_probe_s
        self._alarm = Alarm()
        self._alarm.set(session.turn, session.turn.now + self._period, self._probe)

    def end(self) -> None:
        """Look no more."""
        self._alarm.off(self._session.turn)

    def _probe(self) -> None:
        session, period = self._session, self._period
        now, heard_at = session.turn.now, session.heard_at
        silence = now - heard_at
        if silence < period:
            next_at = heard_at + period
        elif all(isinstance(call, Will) for call in session.waiting()):  # it waits for nothing by these
            next_at = now + period
        elif silence < 2 * period:
            session.push(wire.frame(wire.PING, wire.NIL))
            next_at = heard_at + 2 * period
        else:
            session.router.log.info("connection-closed", peer=session.peer, reason="it does not answer a ping")
            session.tally.limited("idle_probe_s")
            session.close(Close.SILENT, "it does not answer a ping")
            return
        self._alarm.set(session.turn, next_at, self._probe)
