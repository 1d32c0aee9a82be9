"""Micro benchmarks of a worker's core: what clients say over real sockets is read, meets and is answered."""

from __future__ import annotations

import contextlib
import random
import socket
from array import array
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from skywalker.address import Address
from skywalker.limits import Limits
from skywalker.members import Member
from skywalker.wire import junction as wire
from skywalker.wire import pubsub
from skywalker.wire.values import pack
from workers.access.admission import Admission
from workers.calls.own_node import OwnNode
from workers.calls.worker_states import Event
from workers.doors.client import Client
from workers.doors.junction.client import JunctionClient
from workers.doors.pubsub_client import PubSubClient
from workers.engine.loop import Loop, Turn
from workers.engine.machine import Machine
from workers.stats import metrics
from workers.stats.counters import Counters
from workers.stats.log import Log
from workers.worker.hub import Hub

READ_BYTES: Final = 1 << 20
VALUE: Final = pack(bytes(16))
MINUTE: Final = pack(60_000)


class Worker:
    """A worker by itself, in this process; its clients are the other ends of socketpairs."""

    def __init__(self) -> None:
        machine, limits = Machine(), Limits()
        log = Log(machine.monotonic).bind(node="bench")
        counters = Counters(memoryview(array("q", bytes(8 * metrics.WORKER_CELLS))), machine.monotonic, random.random)
        turn = Turn(machine, counters, None, limits)
        self.loop = Loop(turn)
        member = Member("bench", "bench", Address("127.0.0.1", 1), 1, False, (1, 2, 3))
        node = OwnNode(member, "0", 0, None, machine)
        self.hub = Hub(node, limits, self.loop, turn, log, machine, None, Admission(None, limits, turn, log))
        self.hub.happened(Event.OPENED)
        self.hub.clients.hear_all()
        self._clients: list[socket.socket] = []

    def connect(self, dialect: type[Client]) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.hub.clients.let_in(dialect, ours.detach(), "bench", "")
        self._clients.append(theirs)
        return theirs

    def answer(self, client: socket.socket, size: int) -> bytes:
        """Have turns until a client has so many bytes."""
        heard = b""
        while len(heard) < size:
            self.loop.turn(patient=False)
            with contextlib.suppress(BlockingIOError):
                heard += client.recv(READ_BYTES, socket.MSG_DONTWAIT)
        return heard

    def close(self) -> None:
        for client in self._clients:
            client.close()
        while len(self.hub.clients):
            self.loop.turn(patient=False)
        self.hub.core.shut()


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


@pytest.mark.parametrize("calls", [1, 64])
def test_a_turn_of_sends_that_meet_who_waits(worker: Worker, benchmark: BenchmarkFixture, calls: int) -> None:
    sender, taker = worker.connect(JunctionClient), worker.connect(JunctionClient)
    takes = b"".join(wire.frame(wire.TAKE, pack(id), MINUTE, pack("jobs"), pack("all")) for id in range(calls))
    sends = b"".join(wire.frame(wire.SEND, pack(id), MINUTE, pack("jobs"), VALUE) for id in range(calls))
    told = b"".join(wire.frame(wire.SEND, pack(id), wire.TRUE) for id in range(calls))
    given = b"".join(wire.frame(wire.TAKE, pack(id), VALUE) for id in range(calls))

    def meet() -> tuple[bytes, bytes]:
        taker.sendall(takes)
        worker.loop.turn(patient=False)
        sender.sendall(sends)
        return worker.answer(sender, len(told)), worker.answer(taker, len(given))

    assert benchmark(meet) == (told, given)


@pytest.mark.parametrize("subscribers", [1, 100])
def test_a_message_to_subscribers(worker: Worker, benchmark: BenchmarkFixture, subscribers: int) -> None:
    publisher = worker.connect(PubSubClient)
    audience = [worker.connect(PubSubClient) for _ in range(subscribers)]
    for each in audience:
        each.sendall(pubsub.subscribe(b"news"))
        worker.answer(each, len(pubsub.ACKED))
    message = pubsub.publish(b"news", bytes(16))

    def publish() -> Any:
        publisher.sendall(message)
        return worker.answer(publisher, len(pubsub.ACKED)), {each.recv(READ_BYTES) for each in audience}

    assert benchmark(publish) == (pubsub.ACKED, {message})
