"""A node of ours and peers in plain ZeroMQ, and networks to cut."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skywalker.silk import blocking
from tests.cluster import network
from tests.cluster.network import Network
from tests.silk.driving import keepalive
from tests.silk.raw_peer import RawPeer

Peers = Callable[..., RawPeer]


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    """Closes what is given to it after the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def node() -> Iterator[blocking.Node]:
    """A node of ours, in a thread."""
    with blocking.Node(name="ours", keepalive=keepalive()) as node:
        yield node


@pytest.fixture
def peers(closing: contextlib.ExitStack) -> Peers:
    """Return a function that makes a raw peer."""

    def make(**settings: Any) -> RawPeer:
        return closing.enter_context(RawPeer(**settings))

    return make


@pytest.fixture
def raw(peers: Peers) -> RawPeer:
    """A peer that has joined nothing yet."""
    return peers()


@pytest.fixture
def member(raw: RawPeer, node: blocking.Node) -> RawPeer:
    """The same, as a member of the node's cluster."""
    raw.join(node.info.router)
    return raw


@pytest.fixture
def net() -> Iterator[Network]:
    """Four hosts that see each other."""
    network.require()
    with Network(4) as net:
        yield net
