"""What a client says of its connection: to its log, to who asked for it, and as it is shown."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import pytest

import skywalker
import skywalker.pubsub
from tests.clients.driving import AioDriver, Driver, Place
from tests.clients.proxy import Proxy
from tests.helpers import eventually

SOON = 10.0

MakePlace = Callable[..., Place]


class Told:
    """What on_connect and on_disconnect were called with."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.lost: list[tuple[str, str]] = []

    def options(self) -> dict[str, Any]:
        return {"on_connect": self.made.append, "on_disconnect": lambda *what: self.lost.append(what)}


def shown(driver: Driver) -> str:
    return repr(driver.junction if isinstance(driver, AioDriver) else driver)


def answers(driver: Driver) -> bool:
    with contextlib.suppress(skywalker.Unreachable):
        return bool(driver.ping(0.1))
    return False


def test_connections_that_are_made_and_lost_are_told_and_logged(
    make_place: MakePlace, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told()
    with caplog.at_level(logging.INFO, "skywalker"):
        junction = make_place(proxy.address).join(**told.options())
        assert junction.ping()
        assert (told.made, told.lost) == ([proxy.address], [])
        assert f"of {proxy.address}, connected to {proxy.address}>" in shown(junction)
        proxy.refuse()
        proxy.cut()

        eventually(lambda: not answers(junction) and told.lost, within=SOON)
        assert "not connected: " in shown(junction)
        proxy.accept()
        eventually(lambda: answers(junction), within=SOON)
        eventually(lambda: len(told.made) == 2, within=SOON)
        ((address, cause),) = told.lost
        assert address == proxy.address
        assert cause
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert said.count(f"connected to {proxy.address}") == 2
    assert said.count(f"lost the connection to {proxy.address}: {cause}") == 1
    junction.close()
    assert "closed" in shown(junction)
    assert len(told.lost) == 1


def test_one_that_is_told_may_use_the_client(node: Callable[[int], Any], topic: str) -> None:
    answers = []
    made: list[skywalker.Client] = []

    def on_connect(address: str) -> None:
        if made:
            answers.append(made[0].ping())

    with Proxy(node(2).host, node(2).port) as proxy:
        junction = skywalker.connect(proxy.address, on_connect=on_connect)
        with junction:
            made.append(junction)
            proxy.cut()
            assert junction.ping(SOON)
            eventually(lambda: junction.ping(SOON) and answers == [True], within=SOON)


def test_one_that_fails_harms_nothing(make_place: MakePlace, node: Callable[[int], Any]) -> None:
    def fail(address: str) -> None:
        raise ValueError(address)

    assert make_place(node(2).address).join(on_connect=fail).ping()


def test_a_timeout_of_connect_is_called_otherwise(make_place: MakePlace, node: Callable[[int], Any]) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="connect_timeout"):
        make_place(node(2).address).join(timeout=5)
    with pytest.raises(skywalker.LocalProtocolError, match="connect_timeout"):
        skywalker.pubsub.connect(timeout=5)  # type: ignore[arg-type]  # that is the point
