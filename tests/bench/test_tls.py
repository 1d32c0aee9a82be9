"""The benchmark of TLS and access control, on real nodes: that they are what it says they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from bench.errors import Unreachable
from bench.load.dial import contact
from bench.load.plan import Load
from bench.tls import KINDS, Kind, connections_per_core, nodes
from tests.bench.works import work
from tests.helpers import time_factor
from workers.engine.secure_socket import SecureSocket

Reached = dict[Kind, tuple[int, Load]]


@pytest.fixture(scope="module")
def reached() -> Iterator[Reached]:
    with nodes() as reached:
        yield reached


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_node_of_each_kind_does_the_work(reached: Reached, kind: Kind) -> None:
    pid, load = reached[kind]
    # Values of several records, and more of them than a socket has room for.
    load = dataclasses.replace(load, pairs=2, in_flight=64, value_bytes=40_000, patience_s=5 * time_factor())
    done = work(load, 0.2)
    assert done.sent == done.received >= 2 * 64
    assert connections_per_core(pid, load, 0.1) > 0


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_node_speaks_tls_and_wants_a_token_if_that_is_its_kind(reached: Reached, kind: Kind) -> None:
    _, load = reached[kind]
    link = contact(load).link
    assert isinstance(link, SecureSocket) == kind.tls
    link.close()
    assert bool(load.token) == kind.access
    if kind.access:
        with pytest.raises(Unreachable, match="unauthorized"):
            contact(dataclasses.replace(load, token="skw_wrong"))
    if kind.tls:
        with pytest.raises(Unreachable):
            contact(dataclasses.replace(load, ca=""))
