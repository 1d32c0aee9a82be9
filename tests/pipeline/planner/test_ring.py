"""Rings as arrays against the ring that nodes and clients use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.members import Member, Place, Snapshot
from skywalker.pipeline.planner.ring import Fleet, Index, TokenRing, workers_of
from skywalker.ring import Ring

LOWEST, HIGHEST = -(2**63), 2**63 - 1

numbers = (
    st.integers(-5, 5) | st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]) | st.integers(LOWEST, HIGHEST)
)


def token_ring(owned: dict[int, int]) -> TokenRing:
    """Return the ring of these owners by token."""
    return TokenRing.of(np.array([*owned], np.int64), np.array([*owned.values()]))


@given(st.dictionaries(numbers, st.integers(0, 3), min_size=1, max_size=12), st.lists(numbers, min_size=1))
def test_owners_are_those_of_the_ring_of_the_library(owned: dict[int, int], topics: list[int]) -> None:
    ring = Ring.of_tokens(owned)
    # A topic's token may well be that of a node, or right beside it.
    beside = [token + step for token in owned for step in (-1, 0, 1)]
    asked = [token for token in topics + beside if LOWEST <= token <= HIGHEST]
    expected = [ring.owner(token) for token in asked]
    made = token_ring(owned)
    assert made.owner(np.array(asked)).tolist() == expected
    assert made.owners[Index(made).arcs(np.array(asked))].tolist() == expected


@given(st.dictionaries(numbers, st.integers(0, 3), min_size=1, max_size=12))
def test_parts_are_those_of_the_ring_of_the_library(owned: dict[int, int]) -> None:
    made = token_ring(owned)
    shares = np.bincount(made.owners, weights=made.parts())
    for owner, share in Ring.of_tokens(owned).shares().items():
        assert shares[owner] == pytest.approx(share, rel=1e-12, abs=1e-18)
    assert shares.sum() == pytest.approx(1)


def test_the_index_finds_what_a_search_finds_where_tokens_are_crowded() -> None:
    rng = np.random.default_rng(3)
    crowd = rng.choice(5_000, 1_000, replace=False) + 2**40
    ring = TokenRing.of(np.concatenate([crowd, rng.integers(LOWEST, HIGHEST, 70_000)]), np.zeros(71_000))
    topics = np.concatenate([crowd, crowd + 1, rng.integers(LOWEST, HIGHEST, 100_000), [LOWEST, HIGHEST]])
    assert (Index(ring).arcs(topics) == ring.arcs(topics)).all()


def test_a_ring_without_tokens_or_with_one_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        TokenRing.of(np.zeros(0, np.int64), np.zeros(0))
    with pytest.raises(ValueError, match="token -7 comes twice"):
        TokenRing.of(np.array([3, -7, 8, -7]), np.arange(4))
    with pytest.raises(ValueError, match="owner 0 is the only one"):
        token_ring({1: 0, 5: 0}).without(0)


@pytest.mark.parametrize("workers", [1, 3, 40])
def test_workers_own_what_the_cluster_has_them_own(workers: int) -> None:
    fleet = Fleet(5, 32, seed=9)
    ring = fleet.ring(5, 32)
    snapshot = Snapshot(
        Member(str(node), "", Address("127.0.0.1", 1), workers, True, tuple(ring.tokens[ring.owners == node].tolist()))
        for node in range(5)
    )
    topics = np.random.default_rng(1).integers(LOWEST, HIGHEST, 1_000, endpoint=True)
    owners = zip(ring.owner(topics).tolist(), workers_of(topics, workers).tolist(), strict=True)
    for topic, (node, worker) in zip(topics.tolist(), owners, strict=True):
        assert snapshot.ring.owner(topic) == Place(str(node), worker)


def test_a_smaller_cluster_is_a_part_of_a_larger_one_and_a_seed_makes_one_of_it() -> None:
    small, large = Fleet(4, 8, seed=1).ring(3, 5), Fleet(90, 64, seed=1).ring(3, 5)
    assert small.tokens.tolist() == large.tokens.tolist()
    assert small.owners.tolist() == large.owners.tolist()
    assert small.tokens.tolist() != Fleet(4, 8, seed=2).ring(3, 5).tokens.tolist()
