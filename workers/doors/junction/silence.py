"""Whether a client that waits for replies, and says nothing, still lives: it is asked, and closed without an answer."""

from __future__ import annotations

from skywalker.wire import junction as wire
from workers.calls.will import Will
from workers.doors.connection import Connection
from workers.engine.alarm import Alarm
from workers.stats.closes import Close


class Silence:
    """That of one client, which knows :ping."""

    __slots__ = ("_alarm", "_connection", "_period")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._period = connection.commons.limits.idle_probe_s
        self._alarm = Alarm()
        self._alarm.set(connection.turn, connection.turn.now + self._period, self._probe)

    def end(self) -> None:
        """Look no more."""
        self._alarm.off(self._connection.turn)

    def _probe(self) -> None:
        connection, period = self._connection, self._period
        now, heard_at = connection.turn.now, connection.heard_at
        silence = now - heard_at
        if silence < period:
            next_at = heard_at + period
        elif all(isinstance(call, Will) for call in connection.waiting()):  # it waits for nothing by these
            next_at = now + period
        elif silence < 2 * period:
            connection.push(wire.frame(wire.PING, wire.NIL))
            next_at = heard_at + 2 * period
        else:
            connection.commons.log.info("connection-closed", peer=connection.peer, reason="it does not answer a ping")
            connection.counters.limited("idle_probe_s")
            connection.close(Close.SILENT, "it does not answer a ping")
            return
        self._alarm.set(connection.turn, next_at, self._probe)
