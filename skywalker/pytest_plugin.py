"""Fixtures for the tests of programs that use skywalker; pytest finds them by itself.

    def test_a_job_is_handed_over(skywalker_node, skywalker_client):
        waiting = skywalker_client.begin("recv", "jobs")
        start_my_program(skywalker_node.address)
        assert waiting.result() == {"id": 1}

The node is a real one, shared by the whole session since it keeps nothing between calls; tests
that run at the same time, or leave calls behind, should use topics of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Loaded with every run of pytest, so it must cost nothing to those who use none of this.
    from skywalker.clients.blocking.client import Client
    from skywalker.embedding import Node


@pytest.fixture(scope="session")
def skywalker_node() -> Iterator[Node]:
    """A node with one worker on a free port of 127.0.0.1, for the session: `address`, `host`, `port`, `connect()`."""
    from skywalker.embedding import embedded

    with embedded(workers=1) as node:
        yield node


@pytest.fixture
def skywalker_client(skywalker_node: Node) -> Iterator[Client]:
    """A blocking client of skywalker_node, closed after the test."""
    with skywalker_node.connect() as client:
        yield client
