"""Micro benchmarks of routing: from a topic to who owns it."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from skywalker.address import Address
from skywalker.members import Member, Snapshot
from skywalker.ring import Ring, random_tokens, token_of
from skywalker.wire.values import pack

TOPICS = [pack(f"orders/eu/{number}") for number in range(1000)]


@pytest.mark.parametrize("size", [12, 100, 4000])
def test_the_token_of_a_topic(benchmark: BenchmarkFixture, size: int) -> None:
    benchmark(token_of, pack("x" * size))


@pytest.mark.parametrize("nodes", [1, 10, 1000])
def test_the_owners_of_a_thousand_topics(benchmark: BenchmarkFixture, nodes: int) -> None:
    ring = Ring({node: random_tokens() for node in range(nodes)})

    def find() -> set[int]:
        return {ring.owner(token_of(topic)) for topic in TOPICS}

    assert benchmark(find) <= set(range(nodes))


@pytest.mark.parametrize("nodes", [1, 10, 1000])
def test_a_new_ring_of_many_nodes(benchmark: BenchmarkFixture, nodes: int) -> None:
    where = Address("127.0.0.1", 1)
    members = [Member(str(node), "", where, 4, True, tuple(random_tokens())) for node in range(nodes)]
    snapshot = benchmark(Snapshot, members)
    assert snapshot.ring.owner(0).node in snapshot.by_id
