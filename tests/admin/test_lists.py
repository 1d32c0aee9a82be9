"""What several workers say of the same topics, put together."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from workers.agent.admin import lists
from workers.agent.admin.questions import Answers


def told(
    topic: str, receivers: int, rate: float = 0.0, *, owned: bool = False, owner: int | None = None, **loads: float
) -> dict[str, Any]:
    """Return what a worker answers that knows of one topic."""
    raw = msgpack.packb(topic).decode("latin-1")
    row = {"topic": raw, "cut": "", "owned": owned, "senders": 0, "receivers": receivers, "takers": 0, "subscribers": 0}
    topics = [row | {"since": 1.0, "owner": owner}]
    rates = {raw: rate} if rate else {}
    by_slot = {slot.removeprefix("of"): load for slot, load in loads.items()}
    return {"topics_in_all": 1, "looked_at": 1, "topics": topics, "rates": rates, "loads": by_slot}


def rows(*answers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the topics that are shown when the workers of slots 0, 1, ... say that."""

    async def ask(question: object) -> Answers:
        return Answers([*enumerate(answers)], [])

    questions: Any = SimpleNamespace(ask=ask)
    samples: Any = SimpleNamespace(latest=SimpleNamespace(live=[]))
    found: list[dict[str, Any]] = json.loads(asyncio.run(lists.topics(questions, samples, "waiting", 100)))["topics"]
    return found


@pytest.mark.parametrize("owner", [0, 1])
def test_of_a_topic_that_two_workers_know_the_one_that_owns_it_is_shown_with_the_calls_of_both(owner: int) -> None:
    answers = [told("topic", 1 + slot, rate=3.0 + slot, owned=slot == owner, owner=owner) for slot in range(2)]
    [row] = rows(*answers)
    assert (row["topic"], row["worker"], row["receivers"], row["rate"]) == ("topic", owner, 1 + owner, 7.0)


def test_of_one_that_neither_of_them_owns_what_the_first_says_is_shown() -> None:
    [row] = rows(told("topic", receivers=1), told("topic", receivers=2))
    assert row["worker"] == 0


def test_the_share_of_a_topic_is_of_all_calls_on_topics_of_its_worker_wherever_they_came_in() -> None:
    [row] = rows(
        told("topic", 1, rate=30.0, owner=2, of2=40.0, of0=7.0), told("topic", 1, rate=10.0, owner=2, of2=60.0)
    )
    assert (row["worker"], row["rate"], row["share"]) == (2, 40.0, 0.4)


def test_of_a_topic_of_another_node_or_one_that_is_never_called_no_share_is_told() -> None:
    [row] = rows(told("topic", 1, rate=30.0, of0=40.0))
    assert row["share"] is None
    [row] = rows(told("topic", 1, owner=0))
    assert row["share"] is None
