"""Networks to cut, and clusters on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.cluster import network
from tests.cluster.network import Network


@pytest.fixture
def net() -> Iterator[Network]:
    """Five hosts that see each other."""
    network.require()
    with Network(5) as net:
        yield net


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    """Closes what is given to it after the test."""
    with contextlib.ExitStack() as stack:
        yield stack
