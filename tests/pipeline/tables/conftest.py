"""A node for each module that reads its topics, and a client of it for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import skywalker
from skywalker import embedding
from skywalker.clients.blocking.client import Client


@pytest.fixture(scope="module")
def node() -> Iterator[embedding.Node]:
    with skywalker.embedded(workers=1) as running:
        yield running


@pytest.fixture
def client(node: embedding.Node) -> Iterator[Client]:
    with node.connect() as made:
        yield made
