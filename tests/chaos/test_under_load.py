"""A load on a node that is reloaded, restarted, or loses a worker: only what that one held suffers."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.load.outcome import Outcome
from bench.load.plan import LOST, Load
from bench.load.run import run
from skywalker.embedding import embedded
from tests.bench.histories import history_of
from tests.cli.running import SKYWALKER
from tests.helpers import eventually, time_factor
from tests.history import check
from tests.systemd.manager import Manager
from tests.workers.processes import Client

LOADS = [(1, 0.0, False), (1, 500.0, True), (2, 0.0, True), (2, 500.0, False), (4, 0.0, False), (4, 500.0, True)]


def load_on(port: int, **changes: Any) -> Load:
    fields = {"prefix": "load", "pairs": 8, "in_flight": 4, "patience_s": 10 * time_factor(), **changes}
    return Load(port=port, **fields)


@contextlib.contextmanager
def meanwhile(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Have something done in another thread, until the event is set; what goes wrong there is raised at the end."""
    over = threading.Event()
    troubles: list[BaseException] = []

    def guarded() -> None:
        try:
            act(over)
        except BaseException as error:
            troubles.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if troubles:
        raise troubles[0]


def assert_all_met(outcome: Outcome, journal: Path) -> None:
    """None was refused, lost, doubled, or told otherwise than it was, as their own journal has it."""
    assert outcome.errors == {}
    history = history_of(journal, outcome.load.timeout_s)
    # What was done before the load's window is on record, too.
    assert len(history.calls) >= outcome.total.sent + outcome.total.received > 1000
    assert not check(history)


@pytest.mark.parametrize(
    ("workers", "rate", "direct"),
    LOADS,
    ids=[f"{w}-{'open' if rate else 'closed'}-{'direct' if direct else 'any'}" for w, rate, direct in LOADS],
)
def test_a_reload_costs_no_call_and_no_connection(workers: int, rate: float, direct: bool, tmp_path: Path) -> None:
    with embedded(workers=workers, drain_timeout_s=2.0) as node:

        def reload_again_and_again(over: threading.Event) -> None:
            while not over.wait(1.0):
                os.kill(node.pid, signal.SIGHUP)

        with meanwhile(reload_again_and_again):
            load = load_on(node.port, rate=rate, direct=direct, journal=str(tmp_path))
            outcome = run(load, 3.2, generators=2, server=node.pid, warm_up_s=0.1)
        eventually(lambda: node.log.count("event=reloaded") >= 2)
    assert_all_met(outcome, tmp_path)
    # With several workers one may have been nobody's, but each that was had its clients go.
    assert outcome.total.moved >= 2 * load.pairs
    assert outcome.total.strays == 0


@pytest.mark.parametrize("direct", [False, True], ids=["any", "direct"])
def test_a_worker_that_is_killed_costs_its_own_connections_alone(direct: bool) -> None:
    with embedded(workers=2) as node:
        victim = node.worker_pids()[0]
        with meanwhile(lambda over: None if over.wait(0.7) else os.kill(victim, signal.SIGKILL)):
            load = load_on(node.port, direct=direct, pairs=16)
            outcome = run(load, 2.0, server=node.pid)
        eventually(lambda: victim not in node.worker_pids() and len(node.worker_pids()) == 2)
    # In a closed loop each connection has all its calls in flight.
    assert outcome.errors.keys() == {LOST}
    lost, rest = divmod(outcome.errors[LOST], load.in_flight)
    assert not rest
    assert lost == load.pairs if direct else 0 < lost < 2 * load.pairs
    assert outcome.total.moved == 0
    assert outcome.timeline[-1].errors == 0
    assert outcome.timeline[-1].rate > 0


@pytest.mark.parametrize("rate", [0.0, 500.0], ids=["closed", "open"])
def test_a_restart_whose_listeners_stay_refuses_and_resets_nobody(rate: float, tmp_path: Path) -> None:
    command = [SKYWALKER, "serve", "--port=0", "--workers=2", "--drain-timeout=1s", "--no-admin"]
    came = 0
    with Manager([*command, f"--state-dir={tmp_path}/state"], listeners={"junction": 2}) as manager:
        manager.start()
        manager.until(READY="1")
        port = manager.address("junction")[1]

        def restart_twice(over: threading.Event) -> None:
            for _ in range(2):
                over.wait(0.7)
                manager.restart()
            over.wait()  # the service ends with the thread that started it

        def come_and_go(over: threading.Event) -> None:
            nonlocal came
            while not over.wait(0.01):
                with Client(port) as client:
                    client.call(":ping")
                came += 1

        with meanwhile(restart_twice), meanwhile(come_and_go):
            load = load_on(port, rate=rate, journal=str(tmp_path / "journal"))
            outcome = run(load, 5.0, generators=2, warm_up_s=0.1)
    assert_all_met(outcome, tmp_path / "journal")
    assert outcome.total.moved >= 2 * 2 * load.pairs
    assert came > 50
