"""A node that Consul knows while it serves: registered whole, once, again if Consul forgot, and gone when it ends."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from skywalker.address import Address
from skywalker.discovery import registration as registration_module
from skywalker.discovery.consul import ConsulAccess
from skywalker.discovery.registration import Registration, Service
from skywalker.discovery.url import source_of
from skywalker.errors import DiscoveryError
from tests.clients.proxy import Proxy
from tests.discovery.consul_agent import ConsulAgent
from tests.discovery.health_server import HealthServer
from tests.discovery.told_consul import ToldConsul
from tests.helpers import eventually, time_factor

HERE = Address("127.0.0.1", 3443)


@pytest.fixture
def node(service: str, health: HealthServer) -> Service:
    return Service(
        service, "e2c8", HERE, health.url, ("primary", "rack-7"), {"version": "0.1.0", "name": "amber"}, interval_s=1.0
    )


class Keeper:
    """A registration that is kept in a thread, and the troubles that it told."""

    def __init__(self, access: ConsulAccess, node: Service) -> None:
        self.troubles: list[str | None] = []
        self.registration = Registration(access, node)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.registration.keep, args=(self.troubles.append, self.stopped))

    def end(self, within: float = 5.0) -> None:
        self.stopped.set()
        self.thread.join(within * time_factor())
        assert not self.thread.is_alive(), "the registration did not end"


@contextlib.contextmanager
def kept(access: ConsulAccess, node: Service) -> Iterator[Keeper]:
    keeper = Keeper(access, node)
    keeper.thread.start()
    try:
        yield keeper
    finally:
        keeper.end()


def known(agent: ConsulAgent, node: Service) -> dict[str, Any] | None:
    found: dict[str, Any] | None = agent.ask("/v1/agent/services").get(node.id)
    return found


def test_consul_is_told_all_that_there_is_to_say(consul: ConsulAgent, node: Service) -> None:
    Registration(consul.access, node).register()
    told = known(consul, node)
    assert told is not None
    assert (told["Service"], told["Address"], told["Port"]) == (node.name, HERE.host, HERE.port)
    assert (told["Tags"], told["Meta"]) == (["primary", "rack-7"], {"version": "0.1.0", "name": "amber"})
    [check] = [each for each in consul.ask("/v1/agent/checks").values() if each["ServiceID"] == node.id]
    assert (check["Type"], check["Status"]) == ("http", "passing")


def test_a_node_is_found_the_moment_it_is_registered_and_while_its_health_holds(
    consul: ConsulAgent, node: Service, health: HealthServer
) -> None:
    source = source_of(consul.url(node.name))
    registration = Registration(consul.access, node)
    registration.register()
    eventually(lambda: source.addresses() == {HERE})
    eventually(lambda: health.asked >= 2)
    health.well = False
    eventually(lambda: source.addresses() == frozenset())
    health.well = True
    eventually(lambda: source.addresses() == {HERE})
    registration.deregister()
    eventually(lambda: source.addresses() == frozenset())


def test_registering_again_changes_nothing_and_does_not_hide_that_it_fails(
    consul: ConsulAgent, node: Service, health: HealthServer
) -> None:
    health.well = False
    source = source_of(consul.url(node.name))
    registration = Registration(consul.access, node)
    registration.register()
    told = consul.log.count("PUT url=/v1/agent/service/register")
    for _ in range(3):
        registration.register()
    eventually(lambda: source.addresses() == frozenset())
    registration.register()
    assert source.addresses() == frozenset()
    assert consul.log.count("PUT url=/v1/agent/service/register") == told > 0


def test_a_node_that_was_killed_and_is_back_has_its_health_asked_for_where_it_answers_now(
    consul: ConsulAgent, node: Service, health: HealthServer
) -> None:
    source = source_of(consul.url(node.name))
    Registration(consul.access, dataclasses.replace(node, health_url="http://127.0.0.1:1/health")).register()
    eventually(lambda: source.addresses() == frozenset())
    Registration(consul.access, node).register()
    eventually(lambda: source.addresses() == {HERE})
    eventually(lambda: health.asked >= 2)
    assert source.addresses() == {HERE}


@pytest.mark.parametrize(
    "change",
    [
        {"address": Address("127.0.0.9", 3443)},
        {"tags": ("rack-7", "secondary")},
        {"metadata": {"version": "0.2.0"}},
    ],
)
def test_a_node_that_is_another_now_is_registered_as_what_it_is(
    consul: ConsulAgent, node: Service, change: dict[str, Any]
) -> None:
    Registration(consul.access, node).register()
    now = dataclasses.replace(node, **change)
    Registration(consul.access, now).register()
    told = known(consul, now)
    assert told is not None
    assert Address(told["Address"], told["Port"]) == now.address
    assert (told["Tags"], told["Meta"]) == (list(now.tags), now.metadata)


def test_what_is_not_there_can_be_taken_out(consul: ConsulAgent, node: Service) -> None:
    registration = Registration(consul.access, node)
    registration.deregister()
    registration.register()
    registration.deregister()
    registration.deregister()
    assert known(consul, node) is None


def test_a_consul_that_forgot_is_told_again_and_all_is_taken_out_at_the_end(
    consul: ConsulAgent, node: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration_module, "VERIFY_S", 0.1)
    with kept(consul.access, node) as keeper:
        eventually(lambda: known(consul, node))
        consul.ask(f"/v1/agent/service/deregister/{node.id}", method="PUT")
        eventually(lambda: known(consul, node))
        keeper.end()
        assert known(consul, node) is None
        assert keeper.troubles == []


def test_a_consul_that_was_away_is_told_again_once_it_is_back(
    own_consul: ConsulAgent, node: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration_module, "VERIFY_S", 0.1)
    with kept(own_consul.access, node) as keeper:
        eventually(lambda: known(own_consul, node))
        own_consul.kill()
        eventually(lambda: keeper.troubles)
        own_consul.start()
        eventually(lambda: known(own_consul, node), within=8.0)
        eventually(lambda: len(keeper.troubles) == 2)
        assert keeper.troubles[0] is not None
        assert str(own_consul.address) in keeper.troubles[0]
        assert keeper.troubles[1] is None


def test_a_node_that_ends_while_consul_is_away_says_that_it_stays_registered(
    own_consul: ConsulAgent, node: Service
) -> None:
    with kept(own_consul.access, node) as keeper:
        eventually(lambda: known(own_consul, node))
        own_consul.kill()
        keeper.end()
        assert len(keeper.troubles) == 1
        assert "stays registered" in str(keeper.troubles[0])


def test_a_consul_that_hangs_holds_up_the_end_for_as_long_as_an_answer_may_take(
    consul: ConsulAgent, node: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skywalker.discovery.consul.ANSWER_S", 1.0)
    with (
        Proxy(consul.address.host, consul.address.port) as proxy,
        kept(ConsulAccess(Address.parse(proxy.address)), node) as keeper,
    ):
        eventually(lambda: known(consul, node))
        proxy.stall()
        keeper.stopped.set()
        keeper.thread.join(0.2)
        assert keeper.thread.is_alive()
        keeper.end(within=2.0)
        assert "does not answer" in str(keeper.troubles[-1])
    Registration(consul.access, node).deregister()


@pytest.mark.parametrize("status", [301, 403, 500])
def test_an_answer_that_is_not_yes_is_an_error_in_one_line(node: Service, status: int) -> None:
    with ToldConsul() as told:
        told.answer(status, b"<html>\n" * 1000)
        with pytest.raises(DiscoveryError, match=str(told.access)) as error:
            Registration(told.access, node).register()
        assert len(str(error.value)) < 300
        assert "\n" not in str(error.value)
