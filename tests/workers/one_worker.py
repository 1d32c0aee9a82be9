"""The parts of a worker without its process, moved by hand: a test says when a turn is, and how late it is."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from typing import TypeVar

from skywalker.access.access import Access
from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.config import Config
from skywalker.limits import Limits
from skywalker.members import Member
from skywalker.ring import random_tokens
from tests.authority import Authority
from tests.workers.turns import turn_of
from tests.workers.wire_client import WireClient
from workers.access.admission import Admission
from workers.calls.own_node import OwnNode
from workers.calls.worker_states import Event
from workers.doors.client import Client
from workers.doors.door import Door
from workers.doors.junction.client import JunctionClient
from workers.engine.credentials import Credentials
from workers.engine.loop import Loop
from workers.engine.machine import MACHINE
from workers.stats.close_reasons import Close
from workers.stats.log import Log
from workers.stats.metrics import BUCKETS, Metric
from workers.worker.hub import Hub

C = TypeVar("C", bound=Client)


def credentials_by(authority: Authority) -> Credentials:
    """Return those of a worker that speaks TLS."""
    cert, key = authority.sign("127.0.0.1")
    config = Config(tls_cert=cert, tls_key=key, tls_ca=authority.ca)
    return Credentials(config, Log(MACHINE.monotonic), MACHINE.monotonic)


class OneWorker:
    """A node with one worker, which owns all topics until it is told to follow a snapshot."""

    def __init__(
        self,
        limits: Limits | None = None,
        name: str = "test",
        tokens: Iterable[int] | None = None,
        *,
        access: Access | None = None,
        trust: Trust | None = None,
        credentials: Credentials | None = None,
        workers: int = 1,
        slot: int = 0,
    ) -> None:
        """With more `workers` it is that in this `slot`, and the others are yet to be linked."""
        # What the kernel accepts waits for a turn, as everything else does.
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        address = Address(*self._listener.getsockname())
        self.member = Member(name, name, address, workers, False, tuple(sorted(tokens or random_tokens())))
        log = Log(MACHINE.monotonic).bind(node=name)
        limits = limits or Limits()
        turn = turn_of(MACHINE, limits=limits)
        self.loop = Loop(turn)
        admission = Admission(access, limits, turn, log, trust)
        node = OwnNode(self.member, "0", slot, None, MACHINE)
        self.hub = Hub(node, limits, self.loop, turn, log, MACHINE, None, admission, credentials)
        self.hub.happened(Event.OPENED)
        self.hub.clients.hear_all()
        self._door = Door(self._listener, 128, JunctionClient, self.hub.clients)
        self._door.open()

    def close(self) -> None:
        """Close all connections, and those of other nodes."""
        self._door.close()
        for client in self.hub.clients:
            client.close(Close.DRAINING, "the test is over")
        self.hub.peers.stop()

    def connect(self, *, send_buffer: int | None = None) -> WireClient:
        """Return a client of the worker, which is taken to have said :hello.

        With a small `send_buffer` (bytes) the kernel takes no more for it, about.
        """
        ours, client = self.connected(JunctionClient, send_buffer)
        client.learns_errors()
        return WireClient(ours)

    def connected(self, dialect: type[C], send_buffer: int | None = None) -> tuple[socket.socket, C]:
        """Return both ends of a new connection."""
        ours, theirs = socket.socketpair()
        if send_buffer is not None:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        theirs.setblocking(False)
        client = self.hub.clients.let_in(dialect, theirs.detach(), "test")
        assert isinstance(client, dialect)
        return ours, client

    def turn(self, later: float = 0.0) -> bool:
        """Do what there is to do, as if it were `later` by so many seconds; return whether something came."""
        turn = self.hub.turn
        turn.begin(time.monotonic() + later)
        turn.end()
        # One whose words were put off is read on only once they are done, which shows in the turn after.
        idle_turns, came = 0, False
        while idle_turns < 2:
            goes_on = self.loop.turn(patient=False) or turn.resting or turn.core.has_more
            came = came or bool(goes_on)
            idle_turns = 0 if goes_on else idle_turns + 1
        return came

    def counted(self, metric: Metric) -> dict[str, int]:
        """Return what is counted of a figure that is no histogram, without what is zero, by its labels."""
        rows = metric.rows(self.hub.turn.counters.memory)
        return {" ".join(labels): cells[0] for labels, cells in rows if cells[0]}

    def times(self, metric: Metric) -> dict[str, int]:
        """Return how many times a histogram counts, without what is zero, by its labels."""
        counts = (
            (" ".join(labels), sum(cells[:BUCKETS])) for labels, cells in metric.rows(self.hub.turn.counters.memory)
        )
        return {labels: count for labels, count in counts if count}

    def holds(self) -> dict[str, int]:
        """Return the size of everything that grows with calls."""
        core = self.hub.core
        calls, held = core.held()
        return {"calls": calls, "bytes": held, "topics": core.topic_count, "alarms": self.hub.turn.alarms}


def choke(worker: OneWorker, slow: WireClient, sender: WireClient) -> None:
    """Have so much be sent to a client that reads nothing that the kernel takes no more for it."""
    for n in range(40):
        slow.call(":take!", n, 60_000, "topic", "pool")
    worker.turn()
    for n in range(40):
        sender.call(":send!", n, 60_000, "topic", b"v" * 60_000)
        worker.turn()
