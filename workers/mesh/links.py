"""All links of one worker, by their handles: how they are made, and what the core asks of who has them."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Iterable
from typing import Final

from skywalker.members import Place
from workers.calls.interests import Interests
from workers.calls.owner import GRACE_S
from workers.calls.owners import Owners
from workers.calls.worker_states import Standing
from workers.engine.loop import Turn
from workers.engine.transport import Transport, transmit
from workers.mesh.link import Link
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.remote_interests import RemoteInterest, RemoteInterests
from workers.stats.log import Log

NOBODY: Final = 0
"""The life of one that is no sibling."""


class Links:
    """Those of one worker."""

    def __init__(
        self,
        turn: Turn,
        owners: Owners,
        standing: Standing,
        interests: Interests,
        barrier: ReadinessBarrier,
        log: Log,
        mesh_bytes: int,
    ) -> None:
        """Of `mesh_bytes` that wait to be written to one worker, that one is taken to be behind."""
        self._turn = turn
        self._core = turn.core
        self._owners = owners
        self._standing = standing
        self._interests = interests
        self._barrier = barrier
        self._log = log
        self._mesh_bytes = mesh_bytes
        self._all: dict[int, Link] = {}  # those that are not over
        self._rows: dict[int, RemoteInterest] = {}
        self._answers: dict[int, Callable[[], None]] = {}  # who is told once what we ask ourselves is known
        self._asked = 0
        self._ask_all: Callable[[Place | None, int, Callable[[bool], None]], None]
        self._relay: Callable[[Link, int, bytes], None]
        self._core.linking = self

    def begin(self, ask_all: Callable[[Place | None, int, Callable[[bool], None]], None]) -> None:
        """Set what has all siblings say what they know of a dead one, before there are any."""
        self._ask_all = ask_all

    def begin_to_relay(self, relay: Callable[[Link, int, bytes], None]) -> None:
        """Set what is called when the other end of a link opens a stream, with its number and first word."""
        self._relay = relay

    # How they are made.

    def within(
        self,
        fd: int,
        life: int,
        place: Place | None,
        ended: Callable[[Link, str], None],
        settled: Callable[[Link], None],
        visit: Callable[[bytes, Callable[[], None]], None],
    ) -> Link:
        """Return a link to the worker of this node that has this life, as abroad() does to one of another."""
        link = Link(self._turn, self._mesh_bytes, life, place, ended, settled, visit)
        self._opened(link, self._core.link(fd, life, False, False, GRACE_S), None, True)
        return link

    def abroad(
        self,
        transport: Transport,
        place: Place | None,
        ended: Callable[[Link, str], None],
        settled: Callable[[Link], None] | None = None,
        retired: Callable[[], None] | None = None,
        *,
        both_ways: bool = False,
        grace_s: float = GRACE_S,
        unwritten: bytes = b"",
        heard: bytes = b"",
    ) -> Link:
        """Return a link to a worker of another node, which has said `heard` already.

        It asks us if it has no `place`, or if what both ask goes `both_ways`, and is still to be told what is
        `unwritten`. The last word on a call comes within `grace_s`.
        """
        link = Link(self._turn, self._mesh_bytes, NOBODY, place, ended, settled, retired=retired)
        fd = transport.detach()
        secure = fd is None
        handle = self._core.link(
            transport.fileno() if fd is None else fd,
            NOBODY,
            True,
            place is None or both_ways,
            grace_s,
            both_ways=both_ways,
            secure=secure,
            unwritten=unwritten,
            heard=heard,
        )
        self._opened(link, handle, transport if secure else None, both_ways)
        return link

    def _opened(self, link: Link, handle: int, transport: Transport | None, both_ways: bool) -> None:
        remote_interests = RemoteInterests(
            self._core, handle, not link.life, both_ways, self._standing, self._interests, self._log, self._rows
        )
        link.opened(handle, remote_interests, transport, self._relay)
        self._all[handle] = link

    def answer(self, life: int, then: Callable[[], None]) -> None:
        """Hear the last of a dead sibling, settle what it offered, and call `then` once all of that is told."""
        self._asked += 1
        self._answers[self._asked] = then
        self._core.answer(life, self._asked)

    # What the core asks.

    def said(
        self, link: int, kind: int, number: int, topic: bytes | None, value: bytes | None, form: bytes | None, life: int
    ) -> None:
        it = self._all[link]
        try:
            it.hear(kind, number, topic, value, form, life)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            if it.life:
                raise
            # Where, because it might be a mistake of ours.
            where = traceback.extract_tb(error.__traceback__)[-1]
            it.close(f"the other end sent what makes no sense: {error!r} at {where.name}, line {where.lineno}")

    def early(self, link: int) -> None:
        self._barrier.hold(self._all[link])

    def link_receive(self, link: int, most: int) -> tuple[bytes, bool]:
        transport = self._secure(link)
        return transport.recv(most), transport.ended

    def link_transmit(self, link: int, data: bytes) -> tuple[int, int]:
        return transmit(self._secure(link), data)

    def link_shut(self, link: int) -> None:
        self._secure(link).shutdown(socket.SHUT_WR)

    def _secure(self, link: int) -> Transport:
        transport = self._all[link].transport
        assert transport is not None, "it speaks TLS, or passes over others"
        return transport

    def stuck(self, link: int) -> None:
        self._all[link].remote_interests.is_stuck()

    def link_ended(self, link: int, why: str) -> None:
        self._all[link].has_ended(why)

    def link_over(self, link: int) -> None:
        self._all.pop(link).is_over()

    def ask_all(self, link: int) -> None:
        it = self._all[link]
        self._ask_all(it.place, it.life, lambda is_sure: self._core.release(link, is_sure))

    def handed(self, life: int) -> Iterable[int] | None:
        return self._turn.hand.of(life)

    def wanted(self, owner: int) -> None:
        it = self._owners.at(owner)
        if it is not None:
            it.wanted()

    def lagged(self, interest: int) -> None:
        self._rows[interest].cut_off()

    def answered(self, token: int) -> None:
        self._answers.pop(token)()
