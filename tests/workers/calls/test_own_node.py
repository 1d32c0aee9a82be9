"""What a worker says of the cluster: the nodes that it knows of, page by page."""

from __future__ import annotations

import random
from typing import Any

import pytest

from skywalker.address import Address
from skywalker.limits import MAX_FRAME
from skywalker.members import Member, Snapshot
from skywalker.ring import random_tokens
from skywalker.wire import values
from workers.calls.own_node import OwnNode
from workers.engine.machine import MACHINE


def member(number: int) -> Member:
    """Return a node of which there may be many."""
    name = f"node-{number:04}"
    return Member(name, name, Address("127.0.0.1", 1), 1, False, tuple(sorted(random_tokens())))


def pages(node: OwnNode) -> list[dict[str, Any]]:
    """Return all that a client hears which asks on as long as there is more."""
    found: list[dict[str, Any]] = []
    after = ""
    while not found or found[-1]["more"]:
        packed = node.packed_nodes(after)
        assert len(packed) < MAX_FRAME
        found.append(values.unpack(packed))
        after = found[-1]["nodes"][-1]["id"]
    return found


@pytest.mark.parametrize("count", [1, 3, 500])
def test_every_node_is_told_once_in_the_order_of_their_ids(count: int) -> None:
    members = [member(number) for number in range(count)]
    node = OwnNode(members[0], "0", 0, None, MACHINE)
    snapshot = Snapshot(random.sample(members, count))
    node.follow(snapshot)
    found = pages(node)
    told = [one for page in found for one in page["nodes"]]
    assert told == [values.unpack(values.pack(each.as_map())) for each in members]
    assert {page["version"] for page in found} == {snapshot.version}
    assert [page["more"] for page in found] == [True] * (len(found) - 1) + [False]
