"""Real servers to ask: a Consul for all tests that use it as it is, and one for each that does more to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.discovery import consul_agent
from tests.discovery.consul_agent import ConsulAgent
from tests.discovery.health_server import HealthServer

_numbers = itertools.count()


@pytest.fixture(scope="session")
def running_consul() -> Iterator[ConsulAgent]:
    """A Consul that runs all the time."""
    consul_agent.require()
    with ConsulAgent() as agent:
        yield agent


@pytest.fixture
def consul(running_consul: ConsulAgent) -> Iterator[ConsulAgent]:
    """A Consul that knows nothing of any other test."""
    yield running_consul
    running_consul.forget()


@pytest.fixture
def own_consul() -> Iterator[ConsulAgent]:
    """A Consul that no other test sees."""
    consul_agent.require()
    with ConsulAgent() as agent:
        yield agent


@pytest.fixture
def service() -> str:
    """Return the name of a service that no other test uses."""
    return f"skywalker-{next(_numbers)}"


@pytest.fixture
def health() -> Iterator[HealthServer]:
    with HealthServer() as server:
        yield server
