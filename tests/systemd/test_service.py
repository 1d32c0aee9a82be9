"""A node as a service, under a manager that can be asked what it was told, and when."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tests.cli.running import SKYWALKER
from tests.helpers import eventually, time_factor
from tests.systemd.manager import Manager
from tests.workers.processes import connect
from workers.ipc import exits

SETTINGS = ("--drain-timeout=1s", "--no-admin")


def service(*settings: str, listeners: dict[str, int] | None = None, watchdog_s: float | None = None) -> Manager:
    command: Sequence[str] = [SKYWALKER, "serve", "--port=0", *SETTINGS, *settings]
    return Manager(command, listeners=listeners, watchdog_s=watchdog_s)


def test_it_says_that_it_is_ready_once_it_serves_and_that_it_stops_once_it_does() -> None:
    """Also at an abstract address; all others are paths."""
    command = [SKYWALKER, "serve", "--port=0", "--workers=2", *SETTINGS]
    with Manager(command, listeners={"junction": 2}, abstract=True) as manager:
        manager.start()
        manager.until(READY="1")
        with connect(manager.address("junction")[1]) as client:
            client.answer(":ping")
        assert manager.stop() == exits.OK
        (ready,), (stopping,) = manager.times(READY="1"), manager.times(STOPPING="1")
        assert ready < stopping
        assert not manager.strangers()


def test_it_says_that_it_lives_more_often_than_it_is_asked_to() -> None:
    with service("--workers=2", watchdog_s=2.0) as manager:
        manager.start()
        manager.until(READY="1")
        eventually(lambda: len(manager.times(WATCHDOG="1")) >= 3, within=10.0)
        times = manager.times(WATCHDOG="1")
        assert max(after - before for before, after in itertools.pairwise(times)) < 2.0 * time_factor()
        assert not manager.strangers()


def test_who_comes_while_it_is_restarted_waits_at_listeners_that_stay() -> None:
    with service("--workers=2", listeners={"junction": 2, "pubsub": 2}) as manager:
        manager.start()
        manager.until(READY="1")
        assert manager.stop() == exits.OK
        with connect(manager.address("junction")[1]) as client:
            call = client.begin(":ping")
            manager.start()
            client.result(call)
        manager.until(READY="1")
        manager.restart()
        with connect(manager.address("junction")[1]) as client:
            client.answer(":ping")


def test_listeners_that_do_not_fit_keep_it_from_starting_in_one_line() -> None:
    with service("--workers=3", listeners={"junction": 2}) as manager:
        manager.start()
        assert manager.wait() == exits.ADDRESS
        assert manager.log().count("\n") == 1
        assert "2 listeners for junction" in manager.log()
        assert not manager.messages()
