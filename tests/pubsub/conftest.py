"""Nodes with one and two workers, and both colours of client of them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

import pytest

from skywalker.embedding import Node, embedded
from tests.clients.driving import Loop
from tests.clients.proxy import Proxy
from tests.clients.scripted import ScriptedNode
from tests.pubsub.driving import Broker, Connect, aio_connect, blocking_connect

_numbers = itertools.count()


@pytest.fixture(scope="session")
def node() -> Iterator[Callable[[int], Node]]:
    """Nodes by their number of workers, each started when first asked for."""
    with contextlib.ExitStack() as stack:
        nodes: dict[int, Node] = {}

        def get(workers: int) -> Node:
            if workers not in nodes:
                nodes[workers] = stack.enter_context(embedded(workers=workers, pubsub=True))
            return nodes[workers]

        yield get
        for each in nodes.values():
            assert "Traceback" not in each.log


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    with Loop() as loop:
        yield loop


@pytest.fixture(params=["blocking", "aio"])
def connect(request: pytest.FixtureRequest, loop: Loop) -> Iterator[Connect]:
    """Return a function that connects a client of either colour, which is closed after the test."""
    with contextlib.ExitStack() as stack:
        connect = blocking_connect if request.param == "blocking" else aio_connect(loop)

        def connected(where: str, **options: object) -> Broker:
            broker = connect(where, **options)
            stack.callback(broker.close)
            return broker

        yield connected


@pytest.fixture
def broker(connect: Connect, node: Callable[[int], Node]) -> Broker:
    """A client of a node with two workers."""
    return connect(node(2).pubsub_address)


@pytest.fixture
def topic() -> str:
    """Return a topic that no other test uses."""
    return f"topic-{next(_numbers)}"


@pytest.fixture
def scripted() -> Iterator[ScriptedNode]:
    with ScriptedNode(courtesies=False) as node:
        yield node


@pytest.fixture
def proxy(node: Callable[[int], Node]) -> Iterator[Proxy]:
    """A proxy in front of a node with two workers."""
    host, _, port = node(2).pubsub_address.rpartition(":")
    with Proxy(host, int(port)) as proxy:
        yield proxy
