"""A node of ours and peers in plain ZeroMQ, in simulated time unless a module says that it is REAL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.silk import ground
from tests.silk.driving import keepalive
from tests.silk.raw_peer import RawPeer

Peers = Callable[..., RawPeer]


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ground.Ground]:
    """Where the test takes place."""
    is_real = getattr(request, "param", getattr(request.module, "REAL", False))
    here = ground.Real() if is_real else ground.Simulated()
    monkeypatch.setattr(ground, "here", here)
    yield here
    if isinstance(here, ground.Simulated):
        here.world.close()


@pytest.fixture
def closing(here: ground.Ground) -> Iterator[contextlib.ExitStack]:
    """Closes what is given to it after the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def period() -> float:
    """Seconds between its signs of life."""
    return keepalive()


@pytest.fixture
def node(here: ground.Ground, period: float) -> Iterator[Any]:
    """A node of ours."""
    with here.node(name="ours", keepalive=period) as node:
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
def member(raw: RawPeer, node: Any) -> RawPeer:
    """The same, as a member of the node's cluster."""
    raw.join(node.info.router)
    return raw
