"""Places to meet at: in process, and at real nodes with one, two and four workers, for both colours of client."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

import pytest

from skywalker.embedding import Node, embedded
from tests.clients.driving import Loop, Place, aio_place, blocking_place
from tests.clients.proxy import Proxy
from tests.clients.scripted import ScriptedNode

WORKERS = (1, 2, 4)
_numbers = itertools.count()


@pytest.fixture(scope="session")
def node() -> Iterator[Callable[[int], Node]]:
    """Nodes by their number of workers, each started when first asked for."""
    with contextlib.ExitStack() as stack:
        nodes: dict[int, Node] = {}

        def get(workers: int) -> Node:
            if workers not in nodes:
                nodes[workers] = stack.enter_context(embedded(workers=workers))
            return nodes[workers]

        yield get


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    with Loop() as loop:
        yield loop


@pytest.fixture(params=["blocking", "aio"])
def make_place(request: pytest.FixtureRequest, loop: Loop) -> Iterator[Callable[[str | None], Place]]:
    """Return a function that makes a place of either colour, at an address or in process."""
    with contextlib.ExitStack() as stack:

        def make(address: str | None) -> Place:
            place = blocking_place(address) if request.param == "blocking" else aio_place(loop, address)
            stack.callback(place.close)
            return place

        yield make


@pytest.fixture(params=["local", *(f"node-{workers}" for workers in WORKERS)])
def place(
    request: pytest.FixtureRequest, make_place: Callable[[str | None], Place], node: Callable[[int], Node]
) -> Place:
    """Where a test's clients meet."""
    kind, _, workers = request.param.partition("-")
    return make_place(None if kind == "local" else node(int(workers)).address)


@pytest.fixture
def topic() -> str:
    """Return a topic that no other test uses."""
    return f"topic-{next(_numbers)}"


@pytest.fixture
def scripted() -> Iterator[ScriptedNode]:
    with ScriptedNode() as node:
        yield node


@pytest.fixture
def proxy(node: Callable[[int], Node]) -> Iterator[Proxy]:
    """A proxy in front of a node with two workers."""
    at = node(2)
    with Proxy(at.host, at.port) as proxy:
        yield proxy
