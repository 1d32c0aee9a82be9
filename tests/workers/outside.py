"""One worker, moved by hand, with a door; and what is outside of it, by TLS or without."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from skywalker.access.access import Access
from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.config import Config
from skywalker.limits import Limits
from skywalker.members import Member, Snapshot
from skywalker.tls.contexts import server_context
from tests.authority import Authority
from tests.helpers import time_factor
from tests.workers.far_end import WITHIN_S, FarEnd
from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import WireClient, call
from workers.calls.own_node import VERSION
from workers.doors.door import Door
from workers.doors.junction.dialogue import Dialogue
from workers.engine.credentials import Credentials
from workers.engine.machine import MACHINE
from workers.stats.log import Log

HOST: Final = "127.0.0.1"

RECEIVE_BUFFER: Final = 4096


class Outside:
    """Speaks TLS if there is a directory for certificates."""

    def __init__(
        self, directory: Path | None, limits: Limits | None, access: Access | None, trust: Trust | None = None
    ) -> None:
        credentials: Credentials | None = None
        self._client: ssl.SSLContext | None = None
        self._server: ssl.SSLContext | None = None
        if directory is not None:
            self.authority = Authority(directory)
            cert, key = self.authority.sign(HOST)
            credentials = Credentials(
                Config(tls_cert=cert, tls_key=key, tls_ca=self.authority.ca), Log(MACHINE.monotonic), MACHINE.monotonic
            )
            self._client = self.authority.context(cert, key)
            self._server = server_context(cert, key)
        self.worker = OneWorker(limits, access=access, trust=trust, credentials=credentials)
        self.core = self.worker.core
        self._dialled: socket.socket | None = None
        self._listener = socket.create_server((HOST, 0))
        self._listener.setblocking(False)
        self._door = Door(self._listener, 128, Dialogue, self.core.commons)
        self._door.open()

    def close(self) -> None:
        """End it all."""
        self.refuse()
        self._door.close()
        self.worker.close()

    def turn(self, later: float = 0.0) -> None:
        """Have the worker do what there is to do, as if it were `later` by so many seconds."""
        self.worker.turn(later)

    def until(self, check: Callable[[], object], later: float = 0.0) -> None:
        """Have it do so until something is true."""
        deadline = time.monotonic() + WITHIN_S * time_factor()
        while not check():
            assert time.monotonic() < deadline, "it was not so in time"
            self.turn(later)

    # Who comes in.

    def raw(self) -> socket.socket:
        """Return a connection on which nothing is said yet."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.connect(self._listener.getsockname())
        return sock

    def client(self) -> FarEnd:
        """Return a connection that is let in."""
        known = {*self.core.connections}
        far = FarEnd(self.raw(), self.turn, self._client, server_hostname=HOST)
        far.shake_hands()
        self.until(lambda: {*self.core.connections} - known)
        return far

    @contextlib.contextmanager
    def inside(self) -> Iterator[WireClient]:
        """Yield a client that stays."""
        with self.worker.connect() as client:
            yield client

    def guest(self, life: str = "") -> FarEnd:
        """Return the worker of another node, which asks over this connection from now on."""
        far = self.client()
        whom = {"node": self.worker.member.id, "worker": 0}
        far.say(call(":peer", 0, {"from": "guest", "by": 0, "version": VERSION, "life": life, **whom}))
        assert far.reply()[2].items() >= whom.items()
        return far

    # Who is dialled.

    def dial(self) -> None:
        """Have another node own all topics."""
        self._dialled = socket.create_server((HOST, 0))
        self._dialled.setblocking(False)
        member = Member("dialled", "dialled", Address(*self._dialled.getsockname()), 1, False, (1,))
        self.core.follow(Snapshot([member]))

    def accepted(self, later: float = 0.0) -> socket.socket:
        """Return the connection that the worker makes there, now or `later`."""
        self.until(self.is_dialled, later)
        assert self._dialled is not None, "it is there to be dialled"
        return self._dialled.accept()[0]

    def is_dialled(self) -> bool:
        """Return whether the worker has made another connection there."""
        return bool(select.select([self._dialled], [], [], 0)[0])

    def dialled(self, later: float = 0.0, context: ssl.SSLContext | None = None) -> FarEnd:
        """Return who is dialled, once hands are shaken, by another context than that of a node if there is one."""
        far = FarEnd(self.accepted(later), self.turn, context or self._server, server_side=True)
        try:
            far.shake_hands()
        except ssl.SSLError:
            far.close()
            raise
        return far

    def owner(self, later: float = 0.0, **answer: Any) -> FarEnd:
        """Return the worker of another node that is dialled, and answers that it is what is wanted, or not."""
        far = self.dialled(later)
        assert far.reply()[0] == ":peer"
        far.say(call(":peer", 0, {"node": "dialled", "worker": 0, **answer}))
        return far

    def refuse(self) -> None:
        """Have it be dialled in vain."""
        if self._dialled is not None:
            self._dialled.close()
            self._dialled = None

    def alone(self) -> None:
        """Have the worker own all topics."""
        self.core.follow(Snapshot([self.worker.member]))


@contextlib.contextmanager
def outside(
    directory: Path | None, limits: Limits | None = None, access: Access | None = None, trust: Trust | None = None
) -> Iterator[Outside]:
    """Yield what is outside of a worker that takes in only those who may come in."""
    found = Outside(directory, limits, access, trust)
    try:
        yield found
    finally:
        found.close()
