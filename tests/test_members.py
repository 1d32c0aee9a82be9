"""Which worker owns a topic: every worker its fair share, and all who see the same nodes name the same one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.clients.routes import Greeting
from skywalker.members import MAX_WORKERS, Member, Place, Snapshot, arcs
from skywalker.ring import SLICED, SLICING, TOKENS, random_tokens, slices, token_of, version_of, worker_of
from skywalker.wire import values
from tests.test_ring import owner_by_definition

WHERE: Final = Address("127.0.0.1", 3443)
TOPICS: Final = [values.pack(f"topic {number}") for number in range(300)]


def member(id: str, workers: int, tokens: Sequence[int], slicing: int = SLICING) -> Member:
    return Member(id, id, WHERE, workers, True, tuple(sorted(tokens)), slicing)


def owned_up_to(token: int, worker: int, workers: int) -> int:
    """Return how many of the tokens from the lowest one up to this one, itself included, a worker has."""
    whole, rest = divmod(token + TOKENS // 2 + 1, SLICED)
    begin, end = (-(-SLICED * each // workers) for each in (worker, worker + 1))
    return whole * (end - begin) + min(max(rest - begin, 0), end - begin)


def counted(snapshot: Snapshot) -> dict[Place, int]:
    """Return how many tokens each worker of nodes that go by the rule 1 has, counted exactly."""
    counts: dict[Place, int] = {}
    for arc in arcs(snapshot):
        end = arc.start + arc.length
        spans = [(arc.start, min(end, TOKENS // 2 - 1)), (-(TOKENS // 2) - 1, end - TOKENS)]
        for place in arc.share.places():
            its = place.worker, arc.share.workers
            counts[place] = counts.get(place, 0) + sum(
                owned_up_to(last, *its) - owned_up_to(before, *its) for before, last in spans if before < last
            )
    return counts


@pytest.mark.parametrize("nodes", [1, 3, 10])
@pytest.mark.parametrize("tokens", [1, 4, 32, 256])
@pytest.mark.parametrize("workers", [2, 3, 7, 8, 16, 33, 64])
def test_every_worker_of_a_node_has_the_same_share(workers: int, tokens: int, nodes: int) -> None:
    snapshot = Snapshot(member(f"n{number}", workers, random_tokens(tokens)) for number in range(nodes))
    counts = counted(snapshot)
    assert sum(counts.values()) == TOKENS
    parts = snapshot.ring.shares()
    for node, share in snapshot.shares().items():
        for worker in range(workers):
            place = Place(node, worker)
            assert parts[place] == pytest.approx(share / workers)
            # An arc that ends in the middle of a worker's slice has one slice more of it, or less.
            assert abs(counts[place] - share * TOKENS / workers) < (tokens + 1) * SLICED


@pytest.mark.parametrize("workers", [2, 16, 64])
def test_workers_get_as_many_topics_as_each_other(workers: int) -> None:
    count = 2_000 * workers
    owned = [0] * workers
    for number in range(count):
        owned[worker_of(token_of(values.pack(["order", number])), workers)] += 1
    assert max(owned) < 1.15 * 2_000
    assert min(owned) > 0.85 * 2_000


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, MAX_WORKERS))
def test_the_worker_is_one_of_the_node_s(token: int, workers: int) -> None:
    assert 0 <= worker_of(token, workers) < workers
    assert worker_of(token, 1) == 0


def test_no_topic_changes_its_worker_at_a_node_that_keeps_it() -> None:
    some = [member(f"n{number}", 5, random_tokens(16)) for number in range(4)]
    before, after = Snapshot(some[:3]), Snapshot(some)
    for topic in map(token_of, TOPICS):
        old, new = before.ring.owner(topic), after.ring.owner(topic)
        assert new == old or new.node == "n3"


# Nodes of different versions.


def in_turns(members: Sequence[Member], token: int) -> Place:
    """Return the owner of a topic as nodes have it that know of no rules."""
    owned = {
        f"{each.id} {worker}": tokens
        for each in members
        for worker, tokens in slices(each.tokens, each.workers).items()
    }
    node, worker = owner_by_definition(owned, token).split()
    return Place(node, int(worker))


def as_of_old(each: Member) -> dict[str, object]:
    """Return what a node that knows of no rules tells of a member, whatever it has heard of it."""
    return {key: value for key, value in each.as_map().items() if key != "slicing"}


def test_with_a_node_that_knows_no_rule_all_share_as_it_does_and_give_their_ring_its_name() -> None:
    old, *others = members = [
        member("a", 3, random_tokens(8), 0),
        member("b", 4, random_tokens(8)),
        member("c", 1, [5]),
    ]
    assert old.as_map() == as_of_old(old)
    snapshot = Snapshot(members)
    for topic in map(token_of, TOPICS):
        assert snapshot.ring.owner(topic) == in_turns(members, topic)
    assert snapshot.version == version_of(values.pack([as_of_old(each) for each in members]))
    # Once it is gone they go by the newest rule, and their ring has another name.
    without = Snapshot(others)
    assert without.slicing == SLICING
    assert without.version != version_of(values.pack([as_of_old(each) for each in others]))
    assert any(without.ring.owner(topic) != in_turns(others, topic) for topic in map(token_of, TOPICS))


def test_a_rule_of_the_future_is_nobody_s_before_all_know_it() -> None:
    ours, theirs = member("a", 3, random_tokens(8)), member("b", 4, random_tokens(8), SLICING + 6)
    snapshot = Snapshot([ours, theirs])
    assert snapshot.slicing == SLICING
    known = Snapshot([ours, dataclasses.replace(theirs, slicing=SLICING)])
    assert snapshot.version == known.version
    assert [*map(snapshot.ring.owner, range(0, 2**63, 2**55))] == [*map(known.ring.owner, range(0, 2**63, 2**55))]
    assert Member.parse(theirs.as_map()) == theirs


@pytest.mark.parametrize("slicing", [0, 1, 2])
def test_what_is_kept_of_a_ring_makes_the_same_ring(slicing: int) -> None:
    snapshot = Snapshot([member("a", 3, random_tokens(8), slicing), member("b", 4, random_tokens(8), 1)])
    kept = [Member.parse(each) for each in values.unpack(snapshot.pack())]
    again = Snapshot(each for each in kept if each is not None)
    assert again.version == snapshot.version == version_of(snapshot.pack())
    assert again.ring.by_token() == snapshot.ring.by_token()


@pytest.mark.parametrize("slicing", [-1, 1.0, True, "1", None, 2**40])
def test_a_node_whose_rule_is_none_is_no_node(slicing: object) -> None:
    assert Member.parse({**member("a", 2, [1]).as_map(), "slicing": slicing}) is None


@pytest.mark.parametrize("slicing", [0, 1, 9])
def test_a_client_that_is_told_of_one_node_alone_names_the_owners_that_the_node_does(slicing: int) -> None:
    it = member("a", 6, random_tokens(4), slicing)
    told = {"node": "a", "worker": 0, "workers": 6, "tokens": slices(it.tokens, 6), "slicing": slicing}
    greeting = Greeting.parse(told)
    assert greeting is not None
    alone = Snapshot([it])
    for topic in map(token_of, TOPICS):
        assert greeting.ring.owner(topic) == alone.ring.owner(topic)
