"""What the kernel takes for a client that reads nothing: little, at a door in TLS or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skywalker.limits import KIB
from tests.helpers import eventually
from tests.workers.running_nodes import TLS, Node, running_by
from tests.workers.wire_client import Clients, call

ASKED = call(":hello", 1, {}) * 6000
"""Of all calls the one with the longest answer: these are megabytes."""

MAX_UNSENT = 256 * KIB
"""What is said to it at most, one write more, and what its own kernel takes."""


@pytest.fixture(params=[1, TLS], ids=str)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running_by(request.param, tmp_path_factory) as node:
        yield node


def unread_in_kernel(node: Node) -> int:
    """Return the bytes that the kernel keeps for clients of the node."""
    port = node.address[1]
    queues = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(
        int(fields[4].partition(":")[0], 16) for fields in queues if int(fields[1].partition(":")[2], 16) == port
    )


def test_little_is_kept_for_a_client_that_never_reads(node: Node, connect: Clients) -> None:
    client = connect(receive_buffer=4096)
    client.socket.setblocking(False)
    client.socket.send(ASKED)
    eventually(lambda: unread_in_kernel(node) > 64 * KIB)
    other = connect()
    for number in range(20):
        assert other.ask(":ping", number) is True
        assert unread_in_kernel(node) < MAX_UNSENT
