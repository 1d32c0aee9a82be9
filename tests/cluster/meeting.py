"""Pairs of raw clients that are to meet: many at once, whichever side comes first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tests.cluster.clusters import Cluster
from tests.helpers import CLOCK, time_factor
from tests.workers.wire_client import WireClient

LONG_MS = 60_000

EVERY: Final = [f"topic-{number}" for number in range(60)]


def begin(client: WireClient, method: str, topics: Sequence[str], timeout_ms: int = LONG_MS) -> None:
    """Make a call on each topic; the id is the topic, and a value says whose it is."""
    for topic in topics:
        value = [f"value of {topic}"] if method == ":send!" else []
        client.call(method, topic, timeout_ms, topic, *value)


def results(client: WireClient, count: int, within: float) -> dict[str, Any]:
    """Return the results of the next calls that are answered, by topic; fewer if the time is over before."""
    found: dict[str, Any] = {}
    deadline = CLOCK.monotonic() + within * time_factor()
    while len(found) < count:
        left = deadline - CLOCK.monotonic()
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


def assert_calls_go_on(cluster: Cluster, about: str) -> None:
    """Assert that pairs meet through every two nodes that live."""
    live = cluster.live
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(node.client()) for node in live]
        for number, sender in enumerate(clients):
            receiver = clients[(number + 1) % len(clients)]
            meet(sender, receiver, [f"{about}-{number}-{topic}"[:32] for topic in EVERY])


def _missing(topics: Sequence[str], answered: dict[str, Any]) -> str:
    return f"{len(topics) - len(answered)} of {len(topics)} were not answered"
