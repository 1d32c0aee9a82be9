"""A node for all tests of the command line, and a client beside the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from skywalker.clients.blocking.client import Client
from skywalker.embedding import Node, embedded
from tests.helpers import eventually


@pytest.fixture(scope="package")
def node() -> Iterator[Node]:
    """A node with two workers."""
    with embedded(workers=2) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture
def junction(node: Node) -> Iterator[Client]:
    """A client of the node."""
    with node.connect() as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses; a bare word on a command line."""
    return request.node.nodeid


@pytest.fixture
def someone_waits(junction: Client, topic: str) -> Callable[..., None]:
    """Return once as many receivers and senders as said wait on the test's topic."""

    def wait(receivers: int = 0, senders: int = 0) -> None:
        def check() -> bool:
            now = junction.topic(topic)
            return (now["receivers"], now["senders"]) == (receivers, senders)

        eventually(check, within=10.0)

    return wait
