"""What one principal does at a worker, and what the worker remembers of it."""

from __future__ import annotations

import tracemalloc

import pytest

from skywalker.access.principal import ACTIONS, Patterns, Principal
from skywalker.errors import Forbidden
from skywalker.limits import KIB, MAX_TOPIC, MIB
from skywalker.wire import values
from workers.access.account import Account


def account_of(**topics: list[str]) -> Account:
    return Account(Principal("web", {each: Patterns.parse(topics.get(each, [])) for each in ACTIONS}), 0.0)


def topic(text: str) -> bytes:
    return values.topic_bytes(values.pack(text))


def test_what_is_allowed_and_what_is_not_stay_so_however_much_is_asked() -> None:
    web = account_of(send=["jobs/*"], recv=["done/*"])
    for _ in range(2):
        for number in range(8_000):
            web.check("send", topic(f"jobs/{number}"))
            web.check("recv", topic(f"done/{number}"))
        for action, name in (("recv", "jobs/1"), ("send", "done/1"), ("publish", "jobs/1")):
            with pytest.raises(Forbidden, match=action):
                web.check(action, topic(name))


@pytest.mark.parametrize("length", [10, 100, 1000, MAX_TOPIC - 10])
def test_what_is_remembered_of_its_topics_has_a_bound_in_bytes(length: int) -> None:
    web = account_of(**{action: ["jobs*"] for action in ACTIONS})
    count = MIB // (2 * (100 + length))  # of each action: twice too much in all
    tracemalloc.start()
    try:
        before, most = tracemalloc.get_traced_memory()[0], 0
        for number in range(count):
            for action in ACTIONS:
                web.check(action, topic("jobs" + str(number).rjust(length, "/")))
            most = max(most, tracemalloc.get_traced_memory()[0] - before) if number % 50 == 0 else most
    finally:
        tracemalloc.stop()
    assert most < 1.5 * MIB + 64 * KIB
