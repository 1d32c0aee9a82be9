"""Every call that meets nobody is answered in its time: never before, and at most 50 ms after."""

from __future__ import annotations

import random

import pytest

from tests.helpers import CLOCK
from tests.workers.staged import Node
from tests.workers.wire_client import TIMED_OUT, Clients, call

LATE_S = 0.050


def lateness(connect: Clients, calls: list[tuple[float, tuple[object, ...]]]) -> list[float]:
    """Make calls, each with its timeout in ms; return the seconds by which each of them was answered too late."""
    clients = [connect() for _ in range(8)]
    began = {}
    for id, (timeout, (method, *arguments)) in enumerate(calls):
        began[id] = CLOCK.monotonic()
        clients[id % 8].call(method, id, timeout, *arguments)
    late = {}
    until = CLOCK.monotonic() + 2.0
    while len(late) < len(calls):
        assert CLOCK.monotonic() < until, f"{len(calls) - len(late)} calls are not answered"
        for client in clients:
            while client.has_input():
                _, id, result = client.reply()
                assert result == TIMED_OUT
                assert id not in late, "a call was answered twice"
                late[id] = CLOCK.monotonic() - began[id] - calls[id][0] / 1000
    for client in clients:
        client.close()
    return list(late.values())


@pytest.mark.parametrize("method", [":send!", ":recv!", ":take!", "all of them"])
def test_calls_that_meet_nobody_are_answered_in_time(node: Node, connect: Clients, topic: str, method: str) -> None:
    chance = random.Random(topic)
    calls: list[tuple[float, tuple[object, ...]]] = []
    for number in range(400):
        kind = chance.choice([":send!", ":recv!", ":take!"]) if method == "all of them" else method
        name = [topic, kind, number] if kind == ":send!" else [topic, kind, number % 50]
        last = {":send!": ["value"], ":recv!": [], ":take!": ["group"]}[kind]
        timeout = chance.choice([0, 1, 5, chance.randrange(300), chance.random() * 300])
        calls.append((timeout, (kind, name, *last)))
    late = lateness(connect, calls)
    assert min(late) >= 0, "a call was answered before its time"
    assert max(late) < LATE_S


def test_a_flood_of_calls_that_expire_at_one_moment_is_answered_in_time(connect: Clients, topic: str) -> None:
    client = connect()
    began = CLOCK.monotonic()
    client.write(b"".join(call(":recv!", n, 300, [topic, n % 100]) for n in range(2000)))
    answers = client.replies(2000)
    assert sorted(id for _, id, result in answers if result == TIMED_OUT) == list(range(2000))
    assert 0.3 <= CLOCK.monotonic() - began < 0.3 + LATE_S


def test_a_long_timeout_is_not_answered_at_once(connect: Clients, topic: str) -> None:
    client = connect()
    for id, timeout in enumerate([86_400_000, 86_399_999.5, 2**25]):
        client.call(":recv!", id, timeout, topic)
    client.wait_until(topic, receivers=3)
    assert not client.has_input(within=0.1)
