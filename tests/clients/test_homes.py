"""Where a node for the main line is looked for, in which order, and what is said when there is none."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.clients.homes import MEMBERS_TRIED, Homes, Round

ADDRESSES = [Address(f"10.0.0.{number}", 3443) for number in range(6)]


def luck() -> float:
    return random.random()


def go(round: Round, source: list[Address]) -> list[Address]:
    """Dial all in vain; return the addresses in the order in which they were dialled."""
    dialled = []
    while True:
        address = round.next()
        if address is None:
            if round.is_complete:
                return dialled
            round.found(source)
        else:
            dialled.append(address)
            round.failed(address, "connection refused")


@given(st.sets(st.sampled_from(ADDRESSES)), st.sets(st.sampled_from(ADDRESSES)), st.sets(st.sampled_from(ADDRESSES)))
def test_every_address_is_dialled_once_members_first_and_those_to_be_avoided_last(
    members: set[Address], found: set[Address], avoided: set[Address]
) -> None:
    homes = Homes()
    homes.learn(members)
    for address in avoided:
        homes.avoid(address)
    dialled = go(Round(homes, luck), [*found])
    few = min(len(members - avoided), MEMBERS_TRIED)
    first, rest = dialled[:few], dialled[few:]
    assert set(first) <= members - avoided
    assert set(rest) == found - set(first)
    assert len(dialled) == len(set(dialled))
    was_avoided = [address in avoided for address in rest]
    assert was_avoided == sorted(was_avoided)


def test_with_a_connection_all_is_forgiven() -> None:
    homes = Homes()
    homes.learn(ADDRESSES[:1])
    homes.avoid(ADDRESSES[0])
    assert homes.some_members(luck) == []
    homes.settle()
    assert homes.some_members(luck) == ADDRESSES[:1]


def test_the_cause_names_every_address_or_the_only_one_once() -> None:
    one = Round(Homes(), luck)
    go(one, ADDRESSES[:1])
    assert one.cause(str(ADDRESSES[0])) == "connection refused"
    two = Round(Homes(), luck)
    dialled = go(two, ADDRESSES[:2])
    assert two.cause("a,b") == f"{dialled[0]}: connection refused; {dialled[1]}: connection refused"
    many = Round(Homes(), luck)
    dialled = go(many, ADDRESSES)
    assert many.cause("a").endswith(f"; {dialled[3]}: connection refused; and 2 more")


def test_the_cause_tells_of_a_source_without_an_answer_or_an_address_and_of_an_attempt_under_way() -> None:
    troubled = Round(Homes(), luck)
    troubled.trouble("Consul does not answer")
    assert troubled.cause("c") == "Consul does not answer"
    source = Round(Homes(), luck)
    source.trouble("DNS name a.test has no A or AAAA record")
    assert source.cause("DNS name a.test") == "has no A or AAAA record"
    empty = Round(Homes(), luck)
    empty.found([])
    assert empty.cause("c") == "no node is known there"
    under_way = Round(Homes(), luck)
    under_way.found(ADDRESSES[:1])
    under_way.next()
    assert under_way.is_last
    assert under_way.cause("c") == "10.0.0.0:3443: no answer so far"
