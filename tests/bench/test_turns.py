"""The longest turn of a worker, as it is seen from outside, on one whose turns are as long as a test has them."""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import time
from collections.abc import Iterator

import pytest

from bench.errors import BenchError
from bench.load.plan import Load
from bench.load.turns import Turns
from skywalker.embedding import embedded
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.helpers import eventually
from workers.engine.machine import rename

BUSY_S = 0.005
ASLEEP_S = 0.02


def work_for(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def serve(listener: socket.socket) -> None:
    """Be a worker that has a long turn now and then, and sleeps long in another."""
    rename("skywalker-7")
    sock, _ = listener.accept()
    turns, tail = 0, b""
    while data := sock.recv(65536):
        turns += 1
        if turns % 50 == 0:
            work_for(BUSY_S)
        elif turns % 50 == 25:
            time.sleep(ASLEEP_S)
        frames, tail = split(tail + data)
        said = b""
        for method, id, *_ in frames:
            greeting = values.pack({"worker": 7, "tokens": {7: [1]}, "version": "1"})
            said += wire.reply(method, id, greeting if method == wire.HELLO else wire.TRUE)
        sock.sendall(said)


@contextlib.contextmanager
def worker() -> Iterator[tuple[Load, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = multiprocessing.get_context("fork").Process(target=serve, args=(listener,))
        process.start()
        try:
            assert process.pid is not None
            yield Load(*listener.getsockname()), process.pid
        finally:
            process.kill()
            process.join()


def test_the_longest_turn_is_that_of_which_the_worker_computes_most() -> None:
    with worker() as (load, pid), Turns.watched(load, pid) as turns:
        seen: list[float] = []

        def sees_it() -> bool:  # not each time on a busy machine, which lets the one who watches wait
            seen.append(turns.longest_s())
            return seen[-1] >= BUSY_S

        eventually(sees_it, within=20)
        assert max(seen) < 2 * BUSY_S


def test_nothing_is_watched_that_is_no_worker_of_the_node(capfd: pytest.CaptureFixture[str]) -> None:
    with embedded() as node, worker() as (_, other):
        load = Load(node.host, node.port)
        with pytest.raises(BenchError), Turns.watched(load, other):
            pass
    assert "there is no process skywalker-0" in capfd.readouterr().err
