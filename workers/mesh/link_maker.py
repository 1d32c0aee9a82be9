"""What every link of a worker is made with, whoever is at its other end."""

from __future__ import annotations

import socket
from collections.abc import Callable

from skywalker.junction import Junction
from skywalker.members import Place
from workers.calls.interests import Interests
from workers.calls.ledger import Ledger
from workers.calls.worker_states import Standing
from workers.engine.loop import Loop, Turn
from workers.engine.transport import Transport
from workers.mesh.inbound import Inbound
from workers.mesh.kin import Kin
from workers.mesh.link import Link
from workers.mesh.messages import Messages, Packets
from workers.mesh.outbound import Numbers, Outbound
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.stream import Stream
from workers.stats.log import Log


class LinkMaker:
    """Makes the links of one worker."""

    def __init__(
        self,
        loop: Loop,
        turn: Turn,
        junction: Junction,
        ledger: Ledger,
        standing: Standing,
        interests: Interests,
        barrier: ReadinessBarrier,
        log: Log,
        mesh_bytes: int,
    ) -> None:
        """Of `mesh_bytes` that wait to be written to one worker, that one is taken to be behind."""
        self._loop = loop
        self._turn = turn
        self._junction = junction
        self._ledger = ledger
        self._standing = standing
        self._interests = interests
        self._barrier = barrier
        self._log = log
        self._mesh_bytes = mesh_bytes
        self._numbers = Numbers()
        self.kin = Kin(turn)

    def within(
        self,
        sock: socket.socket,
        life: bytes,
        place: Place | None,
        ended: Callable[[Link, str], None],
        settled: Callable[[Link], None],
        visit: Callable[[bytes, Callable[[], None]], None],
    ) -> Link:
        """Return a link to the worker of this node that has this life, as abroad() does to one of another."""
        messages = Packets(sock, self._mesh_bytes, self._turn, life)
        link = self._link(messages, place, ended, settled, visit, self.kin)
        self.kin.add(life, link)
        return link

    def abroad(
        self,
        sock: Transport,
        place: Place | None,
        ended: Callable[[Link, str], None],
        settled: Callable[[Link], None] | None = None,
        *,
        unwritten: bytes | None = None,
        heard: bytes = b"",
    ) -> Link:
        """Return a link to a worker of another node, which has said `heard` already.

        One that asks us is still to be told what is `unwritten`, be it nothing.
        """
        return self._link(Stream(sock, self._mesh_bytes, self._turn, unwritten, heard), place, ended, settled)

    def _link(
        self,
        messages: Messages,
        place: Place | None,
        ended: Callable[[Link, str], None],
        settled: Callable[[Link], None] | None,
        visit: Callable[[bytes, Callable[[], None]], None] | None = None,
        kin: Kin | None = None,
    ) -> Link:
        """Return one to an owner in that place; without one, the other end only asks us."""
        turn, junction = self._turn, self._junction
        outbound = Outbound(messages, turn, junction, self._numbers, place, kin)
        inbound = Inbound(messages, turn, junction, self._ledger, self._standing, self._interests, self._log)
        return Link(messages, self._loop, turn, self._barrier, outbound, inbound, ended, settled, visit, kin)
