"""Places to meet at, for both colours of client: in process, at real nodes, by TLS and by a Unix socket."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skywalker.embedding import Node, embedded
from tests.authority import Authority
from tests.clients.driving import Loop, Place, aio_place, blocking_place
from tests.clients.proxy import Proxy
from tests.clients.scripted import ScriptedNode
from tests.clients.spying import Spy

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
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom nodes and clients trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def tls_node(authority: Authority) -> Iterator[Node]:
    """A node with two workers that speaks TLS, and to no other."""
    cert, key = authority.sign("127.0.0.1", "localhost")
    with embedded(workers=2, tls_cert=cert, tls_key=key, pubsub=True) as node:
        yield node


@pytest.fixture(scope="session")
def unix_node() -> Iterator[str]:
    """Return where the Unix socket of a node with two workers is."""
    with tempfile.TemporaryDirectory(prefix="skywalker-") as directory:  # those of pytest may have too long a path
        path = Path(directory, "door")
        with embedded(workers=2, unix=str(path)):
            yield f"unix://{path}"


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    with Loop() as loop:
        yield loop


@pytest.fixture(params=["blocking", "aio"])
def make_place(request: pytest.FixtureRequest, loop: Loop) -> Iterator[Callable[..., Place]]:
    """Return a function that makes a place of either colour, at an address or in process; it takes usual options."""
    with contextlib.ExitStack() as stack:

        def make(address: str | None, **usual: Any) -> Place:
            is_blocking = request.param == "blocking"
            place = blocking_place(address, **usual) if is_blocking else aio_place(loop, address, **usual)
            stack.callback(place.close)
            return place

        yield make


@pytest.fixture(params=["local", "node"])
def place(request: pytest.FixtureRequest, make_place: Callable[..., Place], node: Callable[[int], Node]) -> Place:
    """Where a test's clients meet; how many workers it has is none of theirs."""
    return make_place(None if request.param == "local" else node(2).address)


@pytest.fixture
def topic() -> str:
    """Return a topic that no other test uses."""
    return f"topic-{next(_numbers)}"


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


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
