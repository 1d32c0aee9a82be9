"""What a byte costs that somebody sends, and how long others wait for those who send dear ones."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from bench.price import KINDS, PIECE, Kind, Market, market
from skywalker.wire import values
from tests.helpers import time_factor
from tests.workers.one_worker import OneWorker
from workers.doors.client import Client
from workers.doors.junction.client import JunctionClient
from workers.doors.pubsub_client import PubSubClient

STRANGERS_US = 0.2
"""Microseconds that a byte may cost of one whom the node does not know: they are cut off before they have a share."""

CALLS_US = 0.4
"""And of one whom it knows, if they are calls that their sender has a use for. The dearest is :hello, with 0.27."""

CALLS = [
    "a send! to nobody",
    "a recv! and a send! that meet",
    ":ping",
    ":tokens",
    ":nodes",
    ":hello",
    "a topic of numbers",
    "a topic of strings",
    "a topic of long headers",
    "publish",
]

STRANGERS = [name for name, kind in KINDS.items() if not kind.known]

SHARED = [name for name, kind in KINDS.items() if kind.known]

ATTACKERS = 4

LONGEST_TURN_S = 0.005
"""Of the processor's time. On a quiet machine none takes 2 ms; what has no bound takes 10 ms to half a second."""


@pytest.fixture(scope="module")
def node() -> Iterator[Market]:
    with market() as node:
        yield node


LOOKS = 5
"""One that finds less than the bound will do: what is above it is what else the machine does."""

WORK_S = 0.003
"""Seconds for work() of the processor for which the bounds are."""


def work() -> None:
    """Do something of the kind that a worker does."""
    for number in range(500):
        call = [":hello", number, {f"key{each}": [each, str(each)] for each in range(10)}]
        values.unpack(values.pack(call))


def slowness() -> float:
    """Return how many times slower this processor is just now, or 1 if it is not."""
    began = time.thread_time()
    work()
    return max(1.0, (time.thread_time() - began) / WORK_S)


@pytest.mark.parametrize("name", STRANGERS)
def test_a_byte_of_one_who_is_not_known_costs_little(node: Market, name: str) -> None:
    assert any(node.price(KINDS[name], 0.05) < STRANGERS_US * slowness() for _ in range(LOOKS))


@pytest.mark.parametrize("name", CALLS)
def test_a_byte_of_a_good_call_costs_little(node: Market, name: str) -> None:
    assert any(node.price(KINDS[name], 0.05) < CALLS_US * slowness() for _ in range(LOOKS))


@contextlib.contextmanager
def connected(worker: OneWorker, kind: Kind) -> Iterator[socket.socket]:
    """Connect to a worker, in the dialect of a kind."""
    dialect: type[Client] = PubSubClient if kind.is_published else JunctionClient
    ours, _ = worker.connected(dialect)
    with ours:
        ours.setblocking(False)
        yield ours


def heard(sock: socket.socket) -> None:
    """Read what there is."""
    with contextlib.suppress(BlockingIOError, ConnectionError):
        while sock.recv(1 << 20):
            pass


@pytest.mark.parametrize("name", SHARED)
def test_others_wait_no_longer_for_those_who_send_dear_ones(name: str) -> None:
    kind = KINDS[name]
    piece = kind.said * max(1, PIECE // len(kind.said))
    with contextlib.closing(OneWorker()) as worker, contextlib.ExitStack() as stack:
        other = stack.enter_context(worker.connect())
        for start in range(0, len(kind.before), PIECE):
            other.write(kind.before[start : start + PIECE])
            worker.turn()
        socks = [stack.enter_context(connected(worker, kind)) for _ in range(ATTACKERS)]
        bound_s = LONGEST_TURN_S * time_factor()
        assert any(longest_turn_s(worker, socks, piece) < bound_s * slowness() for _ in range(LOOKS))


def longest_turn_s(worker: OneWorker, socks: list[socket.socket], piece: bytes) -> float:
    """Have each of them send as much as is read at once, and return how long the longest turn takes."""
    for sock in socks:
        with contextlib.suppress(ConnectionError):
            sock.sendall(piece)
    longest_s = 0.0
    has_more = True
    while has_more:
        began = time.thread_time()
        has_more = bool(worker.loop.turn(patient=False)) or worker.hub.core.has_more
        longest_s = max(longest_s, time.thread_time() - began)
        for sock in socks:
            heard(sock)
    return longest_s
