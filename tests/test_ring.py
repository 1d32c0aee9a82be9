from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.ring import TOKENS_PER_NODE, Ring, random_tokens, slices, token_of
from tests.data import golden_tokens

LOWEST, HIGHEST = -(2**63), 2**63 - 1

# Few different numbers make equality and neighbours likely; the extremes make the wrap so.
token_numbers = (
    st.integers(-5, 5) | st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]) | st.integers(LOWEST, HIGHEST)
)


def owner_by_definition(owned: dict[str, list[int]], token: int) -> str:
    """Return who holds the biggest token less than `token`; with none less, the biggest of all."""
    holders = {number: owner for owner, numbers in owned.items() for number in numbers}
    less = [number for number in holders if number < token]
    return holders[max(less or holders)]


@pytest.mark.parametrize("golden", golden_tokens(), ids=lambda golden: golden.note)
def test_a_topic_has_the_token_that_the_original_gives_it(golden: Any) -> None:
    assert token_of(golden.topic) == golden.token


@given(st.lists(token_numbers, min_size=1, max_size=12, unique=True), st.lists(token_numbers, min_size=1), st.data())
def test_owners_are_those_of_the_definition(numbers: list[int], topics: list[int], data: st.DataObject) -> None:
    owned: dict[str, list[int]] = {}
    for number in numbers:
        owned.setdefault(data.draw(st.sampled_from("abc")), []).append(number)
    ring = Ring(owned)
    # A topic's token may well be that of a node.
    for token in topics + numbers:
        assert ring.owner(token) == owner_by_definition(owned, token)


def test_a_ring_is_not_changed_by_what_becomes_of_its_tokens() -> None:
    tokens = [10]
    ring = Ring({"a": tokens, "b": [0]})
    tokens[0] = -10
    assert ring.owner(5) == "b"


def test_a_ring_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        Ring({})
    with pytest.raises(ValueError, match="at least one token"):
        Ring({"a": []})


def test_a_token_with_two_owners_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="token 7 belongs to 'a' and 'b'"):
        Ring({"a": [1, 7], "b": [7]})


# The workers of one node.


@given(st.lists(token_numbers, max_size=40, unique=True), st.integers(1, 9))
def test_slices_share_out_all_tokens_and_each_but_once(numbers: list[int], workers: int) -> None:
    shares = slices(numbers, workers)
    assert sorted(shares) == list(range(workers))
    assert sorted(token for share in shares.values() for token in share) == sorted(numbers)
    assert max(map(len, shares.values())) - min(map(len, shares.values())) <= 1


def test_each_worker_owns_every_nth_token_in_order() -> None:
    assert slices([50, 10, 40, 20, 30], 2) == {0: [10, 30, 50], 1: [20, 40]}


@given(st.lists(token_numbers, min_size=1, max_size=20, unique=True), st.integers(1, 5), token_numbers)
def test_worker_and_node_agree_on_the_owning_token(numbers: list[int], workers: int, topic: int) -> None:
    worker = Ring(slices(numbers, workers)).owner(topic)
    token = Ring({number: [number] for number in numbers}).owner(topic)
    assert token in slices(numbers, workers)[worker]


@pytest.mark.parametrize("count", [0, 1, TOKENS_PER_NODE, 1000])
def test_random_tokens_are_as_many_as_asked_sorted_and_different(count: int) -> None:
    tokens = random_tokens(count)
    assert len(tokens) == count
    assert tokens == sorted(set(tokens))
    assert all(LOWEST <= token <= HIGHEST for token in tokens)


def test_random_tokens_take_the_whole_range() -> None:
    tokens = random_tokens(1000)
    assert tokens[0] < LOWEST // 2
    assert tokens[-1] > HIGHEST // 2
    assert tokens != random_tokens(1000)
