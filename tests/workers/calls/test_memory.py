"""What waiting calls cost, and that nothing is left of them: neither memory nor an entry in any table."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import psutil
import pytest

from skywalker.limits import KIB, MIB, Limits
from tests.helpers import eventually, time_factor
from tests.workers.one_worker import OneWorker
from tests.workers.running_nodes import running
from tests.workers.wire_client import TIMED_OUT, Clients, WireClient, call, clients_of
from workers.worker.heap import COLLECT_S, LOOK_S, Heap

CONNECTIONS = 1000
CALLS_EACH = 100
TOTAL = CONNECTIONS * CALLS_EACH

BYTES_EACH = 2000
"""The most that one waiting call may take, its share of the connection included."""


def fill(connect: Clients, timeout_ms: float) -> list[WireClient]:
    """Have 100,000 receives wait, all on topics of their own."""
    clients = [connect() for _ in range(CONNECTIONS)]
    for number, client in enumerate(clients):
        first = number * CALLS_EACH
        client.write(b"".join(call(":recv!", n, timeout_ms, f"topic-{n}") for n in range(first, first + CALLS_EACH)))
    return clients


def waiting(client: WireClient) -> int:
    """Return on how many of a thousand topics, one of each connection, a receive waits."""
    client.write(b"".join(call(":topic", n, f"topic-{n}") for n in range(0, TOTAL, CALLS_EACH)))
    return sum(info["receivers"] for _, _, info in client.replies(CONNECTIONS, within=20.0))


def test_a_hundred_thousand_waiting_calls_take_little_and_leave_nothing() -> None:
    with running(backlog=4096) as node, clients_of(node.address) as connect:
        watcher = connect()
        empty = node.resident()
        peaks, rests = [], []
        for end in ("expire", "close"):
            clients = fill(connect, 4000 * time_factor() if end == "expire" else 60_000)
            eventually(lambda: waiting(watcher) == CONNECTIONS, within=10.0)
            peaks.append(node.resident() - empty)
            for client in clients:
                if end == "expire":
                    results = [result for _, _, result in client.replies(CALLS_EACH, within=20.0)]
                    assert results == [TIMED_OUT] * CALLS_EACH
                client.close()
            eventually(lambda: node.connections() == 1)
            eventually(lambda: waiting(watcher) == 0)
            # What is garbage is found, and given back, some time later.
            eventually(lambda: node.resident() - empty < 0.7 * peaks[0], within=10.0)
            rests.append(node.resident() - empty)
    each = round(max(peaks) / TOTAL)
    print(f"{each} bytes for a waiting call, {round(max(rests) / TOTAL)} of them kept afterwards")
    assert each < BYTES_EACH
    # What the allocator does not give back, it gives to the next calls: they take no more.
    assert peaks[1] < 1.1 * peaks[0]


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    worker = OneWorker()
    yield worker
    worker.close()


def test_memory_of_large_values_goes_back_to_the_system_when_they_have_gone() -> None:
    worker = OneWorker(Limits(waiting_bytes=256 * MIB))
    heap = Heap(worker.hub.turn, worker.hub.clients)
    process = psutil.Process()
    heap.trim()  # what earlier tests left free would be filled first
    with worker.connect() as sender, worker.connect() as other:
        before = process.memory_info().rss
        for id in range(1_500):
            sender.call(":send!", id, 60_000, "topic", b"v" * 60_000)
            # Small things that stay lie between the large ones.
            other.call(":recv!", id, 60_000, f"elsewhere {id}")
            worker.turn()
        full = process.memory_info().rss
        sender.close()
        worker.turn()
        heap.look()
        after = process.memory_info().rss
    worker.turn()
    worker.close()
    assert full - before > 80 * MIB
    assert after - before < 20 * MIB


CHURN = """
import ctypes, resource, sys
from workers.worker.heap import keep_some
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "keeping":
    keep_some()
for turn in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [ctypes.c_void_p(library.malloc(150_000)) for _ in range(300)]
    for piece in pieces:
        ctypes.memset(piece, 1, 150_000)
    for piece in pieces:
        library.free(piece)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
"""Twice takes 45 MB and gives them back, as turns do that write to many; says how many pages were new then."""


def test_what_one_turn_has_freed_is_there_for_the_next() -> None:
    def new_pages(how: str) -> int:
        return int(subprocess.check_output([sys.executable, "-c", CHURN, how], text=True))

    assert new_pages("by itself") > 10_000
    assert new_pages("keeping") < 500


class Circle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("many", ["", "connections", "calls"])
def test_what_refers_to_itself_is_looked_for_where_that_takes_little(
    worker: OneWorker, monkeypatch: pytest.MonkeyPatch, many: str
) -> None:
    monkeypatch.setattr("workers.worker.heap.MANY_CONNECTIONS", 10)
    monkeypatch.setattr("workers.worker.heap.MANY_BYTES", 10 * KIB)
    heap = Heap(worker.hub.turn, worker.hub.clients)
    heap.look()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(worker.connect()) for _ in range(10 if many == "connections" else 9)]
        if many == "calls":
            clients[0].write(b"".join(call(":recv!", id, 86_400_000, "topic") for id in range(20)))
        worker.turn()
        gc.disable()
        try:
            circle = weakref.ref(Circle())
            worker.turn(later=COLLECT_S - 1)
            assert circle() is not None, "it is not looked for all the time"
            worker.turn(later=COLLECT_S + 2 * LOOK_S)
            assert (circle() is None) is (not many)
            for client in clients:
                client.close()
            worker.turn()
            worker.turn(later=COLLECT_S + 4 * LOOK_S)
            assert circle() is None, "as soon as there is little"
        finally:
            gc.enable()
