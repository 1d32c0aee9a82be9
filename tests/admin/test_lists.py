"""What several workers say of the same topics, put together."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from skywalker.address import Address
from skywalker.members import Member, Place, Snapshot
from skywalker.ring import random_tokens, token_of
from workers.admin import lists
from workers.admin.questions import Answers
from workers.admin.view import View


def member(name: str) -> Member:
    """Return a node of two workers."""
    return Member(name, name, Address("127.0.0.1", 1), 2, False, tuple(sorted(random_tokens())))


def owned_by(view: View, place: Place) -> str:
    """Return a topic whose owner that is."""
    ring = view.snapshot.ring
    return next(str(n) for n in range(1_000_000) if ring.owner(token_of(msgpack.packb(str(n)))) == place)


def told(topic: str, receivers: int, rate: float = 0.0) -> dict[str, Any]:
    """Return what a worker answers that knows of one topic."""
    raw = msgpack.packb(topic).decode("latin-1")
    row = {"topic": raw, "senders": 0, "receivers": receivers, "takers": 0, "subscribers": 0, "since": 1.0}
    return {"topics_in_all": 1, "looked_at": 1, "topics": [row], "rates": {raw: rate} if rate else {}}


def rows(view: View, *answers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the topics that are shown when the workers of slots 0, 1, ... say that."""

    async def ask(question: object) -> Answers:
        return Answers([*enumerate(answers)], [])

    questions: Any = SimpleNamespace(ask=ask)
    samples: Any = SimpleNamespace(latest=SimpleNamespace(live=[]))
    found: list[dict[str, Any]] = json.loads(asyncio.run(lists.topics(questions, samples, view, "waiting", 100)))[
        "topics"
    ]
    return found


@pytest.mark.parametrize("owner", [0, 1])
def test_of_a_topic_that_two_workers_know_the_one_that_owns_it_is_shown_with_the_calls_of_both(owner: int) -> None:
    here = member("here")
    view = View(here, {}, Snapshot([here, member("there")]))
    topic = owned_by(view, Place("here", owner))
    [row] = rows(view, told(topic, receivers=1, rate=3.0), told(topic, receivers=2, rate=4.0))
    assert (row["topic"], row["worker"], row["receivers"], row["rate"]) == (topic, owner, 1 + owner, 7.0)


def test_a_worker_of_another_node_with_the_same_number_owns_nothing_here() -> None:
    here = member("here")
    view = View(here, {}, Snapshot([here, member("there")]))
    topic = owned_by(view, Place("there", 1))
    [row] = rows(view, told(topic, receivers=1), told(topic, receivers=2))
    assert row["worker"] == 0, "the first, since none of them owns it"
