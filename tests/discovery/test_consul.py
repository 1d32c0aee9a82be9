"""A real Consul: what passes is found at once, and what Consul goes through itself costs no more than news."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from skywalker.address import Address
from skywalker.discovery import consul
from skywalker.discovery.consul import WAIT_S
from skywalker.discovery.registration import Registration, Service
from skywalker.discovery.source import Source
from skywalker.discovery.url import source_of
from skywalker.errors import DiscoveryError
from tests.discovery import consul_agent
from tests.discovery.consul_agent import ConsulAgent
from tests.discovery.health_server import HealthServer
from tests.discovery.watching import Watch
from tests.helpers import eventually

FIRST, SECOND = Address("127.0.0.1", 3443), Address("127.0.0.2", 3443)


@pytest.fixture
def source(consul: ConsulAgent, service: str) -> Iterator[Source]:
    source = source_of(consul.url(service))
    yield source
    source.close()


def register(agent: ConsulAgent, service: str, address: Address, health: HealthServer | None = None) -> None:
    """Have Consul know an instance, which passes for ever if it has no health check."""
    data = {"ID": f"{service}-{address}", "Name": service, "Address": address.host, "Port": address.port}
    if health is not None:
        data["Check"] = {"HTTP": health.url, "Interval": "1s", "Status": "passing"}
    agent.ask("/v1/agent/service/register", data, method="PUT")


def deregister(agent: ConsulAgent, service: str, address: Address) -> None:
    agent.ask(f"/v1/agent/service/deregister/{service}-{address}", method="PUT")


def test_a_service_that_nobody_registered_has_no_addresses_and_is_no_error(source: Source) -> None:
    assert source.look().addresses == source.addresses() == frozenset()


def test_a_watch_hears_of_every_change_as_soon_as_consul_knows_it(
    consul: ConsulAgent, service: str, source: Source
) -> None:
    with Watch(source, lingers=True) as watch:
        watch.wait_for([])
        register(consul, service, FIRST)
        watch.wait_for([FIRST], within=3.0)
        register(consul, service, SECOND)
        watch.wait_for([FIRST, SECOND], within=3.0)
        deregister(consul, service, FIRST)
        watch.wait_for([SECOND], within=3.0)
        assert watch.troubles == []
    assert source_of(consul.url(service)).addresses() == {SECOND}


def test_only_what_passes_its_checks_is_found(
    consul: ConsulAgent, service: str, source: Source, health: HealthServer
) -> None:
    register(consul, service, FIRST)
    register(consul, service, SECOND, health)
    with Watch(source, lingers=True) as watch:
        watch.wait_for([FIRST, SECOND])
        health.well = False
        watch.wait_for([FIRST])
        health.well = True
        watch.wait_for([FIRST, SECOND])


def test_an_instance_without_address_and_port_is_where_its_agent_is_at_the_usual_port(
    consul: ConsulAgent, service: str, source: Source
) -> None:
    consul.ask("/v1/agent/service/register", {"Name": service}, method="PUT")
    eventually(lambda: source.addresses() == {Address("127.0.0.1", 3443)})


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Consul be given up after half a second of silence."""
    monkeypatch.setattr(consul, "ANSWER_S", 0.5)


@pytest.mark.usefixtures("soon")
def test_a_first_look_waits_for_nothing_and_so_finds_out_soon_that_consul_hangs(
    own_consul: ConsulAgent, service: str
) -> None:
    source = source_of(own_consul.url(service))
    with own_consul.frozen():
        began = time.monotonic()
        for ask in (source.look, source.addresses):
            with pytest.raises(DiscoveryError, match="does not answer"):
                ask()
        assert time.monotonic() - began < 3.0


def test_a_look_that_waits_does_not_keep_its_process_from_ending(consul: ConsulAgent, service: str) -> None:
    program = f"""
import threading
from skywalker.discovery.url import source_of
from skywalker.discovery.watch import watch

source = source_of("{consul.url(service)}")
found, stopped = threading.Event(), threading.Event()
arguments = (source, lambda addresses: found.set(), print, stopped)
threading.Thread(target=watch, args=arguments, daemon=True).start()
assert found.wait(20)
threading.Event().wait(0.5)  # by now it waits in its second look
stopped.set()
source.close()
"""
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=WAIT_S / 2)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_while_consul_is_down_the_last_view_holds_and_that_is_said_once(own_consul: ConsulAgent, service: str) -> None:
    with Watch(source_of(own_consul.url(service)), lingers=True) as watch:
        # The index has to be higher than that of a Consul that just started.
        for _ in range(30):
            register(own_consul, service, FIRST)
            deregister(own_consul, service, FIRST)
        register(own_consul, service, FIRST)
        watch.wait_for([FIRST])
        before = len(watch.found)

        own_consul.kill()
        watch.wait_for_trouble(1)
        text = watch.troubles[0]
        assert text is not None
        assert str(own_consul.address) in text
        assert watch.found[before:] == []

        own_consul.start()
        # It has forgotten all, and counts anew; a watch that waited for its old index would not notice for a minute.
        watch.wait_for([], within=8.0)
        assert watch.troubles == [text, None]
        register(own_consul, service, SECOND)
        watch.wait_for([SECOND], within=3.0)
        assert len(watch.troubles) == 2


def test_nothing_in_the_environment_changes_where_consul_is_looked_for(
    consul: ConsulAgent, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(consul, service, FIRST)
    for variable, value in {
        "CONSUL_HTTP_ADDR": "127.0.0.1:1",
        "CONSUL_HTTP_SSL": "true",
        "CONSUL_HTTP_TOKEN": "of somebody else",
        "http_proxy": "http://127.0.0.1:1",
        "HTTP_PROXY": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(variable, value)
    assert source_of(consul.url(service)).addresses() == {FIRST}


ACL = {"acl": {"enabled": True, "default_policy": "deny", "tokens": {"master": "let-me-in", "agent": "let-me-in"}}}


def test_a_token_opens_what_is_closed_without() -> None:
    consul_agent.require()
    node = Service("skywalker", "a", FIRST, "http://127.0.0.1:1/health", interval_s=60.0)
    with ConsulAgent(ACL) as agent:
        allowed = dataclasses.replace(agent.access, token="let-me-in")
        with pytest.raises(DiscoveryError, match="refuses"):
            Registration(agent.access, node).register()
        eventually(lambda: Registration(allowed, node).register() is None)
        # Consul does not refuse the question; it shows nobody's services to nobody.
        assert source_of(agent.url("skywalker")).addresses() == frozenset()
        with_token = source_of(f"{agent.url('skywalker')}?token=let-me-in")
        eventually(lambda: with_token.addresses() == {FIRST})
        with pytest.raises(DiscoveryError, match="refuses") as refused:
            source_of(f"{agent.url('skywalker')}?token=guessed").addresses()
        assert "guessed" not in str(refused.value)
