"""Lost connections, through a proxy in front of a real node and at a node that a test scripts; both colours."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

import skywalker
from tests.clients.driving import Driver, Place, background
from tests.clients.proxy import Proxy
from tests.clients.scripted import ScriptedNode
from tests.helpers import time_factor

SOON = 10.0

MakePlace = Callable[[str | None], Place]


@pytest.fixture
def behind(make_place: MakePlace, proxy: Proxy) -> Driver:
    """A client whose connection the test can maltreat."""
    junction = make_place(proxy.address).join()
    assert junction.ping()  # so the proxy knows the connection
    return junction


def test_a_call_times_out_in_its_time_though_its_node_is_gone(behind: Driver, proxy: Proxy, topic: str) -> None:
    began = time.monotonic()
    call = background(lambda: behind.recv(topic, timeout=0.5))
    proxy.refuse()
    proxy.cut()
    with pytest.raises(skywalker.Unreachable, match=proxy.address) as caught:
        call.result(SOON * time_factor())
    assert 0.5 <= time.monotonic() - began < 1.5 * time_factor()
    assert "refused" in str(caught.value)
    assert isinstance(caught.value, ConnectionError)


def test_connecting_to_nobody_tells_the_address_and_the_cause(make_place: MakePlace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(skywalker.Unreachable, match=f"{address}: .*refused"):
        make_place(address).join(connect_timeout=0.2)


def test_connecting_to_a_host_without_an_address_tells_so(make_place: MakePlace) -> None:
    for host in ("no-such-host.invalid", "a..b"):
        with pytest.raises(skywalker.Unreachable, match=host):
            make_place(f"{host}:1").join(connect_timeout=0.2)


def test_a_client_waits_for_the_greeting_no_longer_than_it_may_take_to_connect(
    make_place: MakePlace, scripted: ScriptedNode
) -> None:
    began = time.monotonic()
    with pytest.raises(skywalker.Unreachable):
        make_place(f"{scripted.address},127.0.0.1:1").join(name="me", connect_timeout=0.2)
    assert 0.19 < time.monotonic() - began < 0.5 * time_factor()


def test_a_node_that_comes_up_while_a_client_connects_is_found(make_place: MakePlace, proxy: Proxy) -> None:
    proxy.refuse()
    joining = background(lambda: make_place(proxy.address).join(connect_timeout=SOON))
    with pytest.raises(skywalker.Unreachable):
        make_place(proxy.address).join(connect_timeout=0.1)
    proxy.accept()
    assert joining.result(SOON * time_factor()).ping()


@pytest.mark.parametrize("state", ["connected", "refused"])
def test_closing_is_prompt_whatever_the_connection_does(behind: Driver, proxy: Proxy, topic: str, state: str) -> None:
    call = background(lambda: behind.recv(topic, timeout=60.0))
    if state == "refused":
        proxy.refuse()
        proxy.cut()
    began = time.monotonic()
    behind.close()
    with pytest.raises(skywalker.Closed):
        call.result(SOON * time_factor())
    assert time.monotonic() - began < 1.5 * time_factor()
