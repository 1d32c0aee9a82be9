"""Pairs of raw clients that are to meet: many at once, whichever side comes first."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from tests.helpers import time_factor
from tests.workers.wire_client import WireClient

LONG_MS = 60_000


def begin(client: WireClient, method: str, topics: Sequence[str], timeout_ms: int = LONG_MS) -> None:
    """Make a call on each topic; the id is the topic, and a value says whose it is."""
    for topic in topics:
        value = [f"value of {topic}"] if method == ":send!" else []
        client.call(method, topic, timeout_ms, topic, *value)


def results(client: WireClient, count: int, within: float) -> dict[str, Any]:
    """Return the results of the next calls that are answered, by topic; fewer if the time is over before."""
    found: dict[str, Any] = {}
    deadline = time.monotonic() + within * time_factor()
    while len(found) < count:
        left = deadline - time.monotonic()
        try:
            _, topic, result = client.reply(left / time_factor())
        except TimeoutError:
            break
        assert topic not in found, f"{topic} was answered twice"
        found[topic] = result
    return found


def assert_met(sender: WireClient, receiver: WireClient, topics: Sequence[str], within: float = 5.0) -> None:
    """Assert that every value that `begin()` sent at the one arrives at the other."""
    got = results(receiver, len(topics), within)
    assert got == {topic: f"value of {topic}" for topic in topics}, _missing(topics, got)
    told = results(sender, len(topics), within)
    assert told == dict.fromkeys(topics, True), _missing(topics, told)


def meet(sender: WireClient, receiver: WireClient, topics: Iterable[str], within: float = 5.0) -> None:
    """Have all meet that begin now, half of the senders before and half after their listeners."""
    every = [*topics]
    half = len(every) // 2
    begin(sender, ":send!", every[:half])
    begin(receiver, ":recv!", every)
    begin(sender, ":send!", every[half:])
    assert_met(sender, receiver, every, within)


def _missing(topics: Sequence[str], answered: dict[str, Any]) -> str:
    return f"{len(topics) - len(answered)} of {len(topics)} were not answered"
