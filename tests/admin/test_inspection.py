"""Workers that are asked what they hold, while they hold very much."""

from __future__ import annotations

import contextlib
import time

import psutil
import pytest

from tests.admin.asking import node
from tests.helpers import eventually, time_factor
from tests.workers.wire_client import WireClient, call, packed
from workers.inspection import MAX_LOOKED_AT

MANY = 200_000

LONG_TURN_S = 0.03


def test_very_many_waiting_topics_are_looked_at_in_part_and_in_short_turns() -> None:
    with (
        node(drain_timeout_s=0.01, max_calls=2 * MANY, waiting_bytes="1GiB") as (found, asker),
        WireClient.open((found.host, found.port)) as client,
    ):
        for start in range(0, MANY, 10_000):
            calls = [call(":recv!", n, 600_000, n) for n in range(start, start + 10_000)]
            client.write(b"".join(calls))
        eventually(lambda: asker.metric("skywalker_waiting") == MANY, within=30)

        worker = psutil.Process(found.worker_pids()[0])
        before = sum(worker.cpu_times()[:2])
        answers = []
        for _ in range(4):
            for limit in (100, 1000):
                answers.append(asker.json(f"/api/topics?limit={limit}"))
                assert len(answers[-1]["topics"]) == limit
            time.sleep(1.05)  # the same question is answered once a second
        # Of the processor's time, since what else runs on the machine may make any turn long.
        assert sum(worker.cpu_times()[:2]) - before < len(answers) * LONG_TURN_S * time_factor()
        for answer in answers:
            assert (answer["topics_in_all"], answer["looked_at"], answer["silent"]) == (MANY, MAX_LOOKED_AT, [])
            assert answer["topics"][0]["topic"] == "0"
            ages = [row["since"] for row in answer["topics"]]
            assert ages == sorted(ages, reverse=True)
        assert asker.json("/api/connections?order=waiting")["connections"][0]["waiting"] == MANY


def test_subscribers_and_takers_are_counted_and_the_slow_come_first() -> None:
    with node(pubsub=True) as (found, asker), contextlib.ExitStack() as clients:
        slow, _, taking, sending = (
            clients.enter_context(WireClient.open((found.host, found.port), receive_buffer=4096)) for _ in range(4)
        )
        slow.call(":subscribe", 1, "news")
        slow.reply()
        taking.call(":take!", 1, 600_000, "work", "group")
        eventually(lambda: asker.json("/api/state")["waiting"]["take"] == 1)
        eventually(lambda: asker.json("/api/state")["waiting"]["subscription"] == 1)
        for number in range(200):
            sending.call(":send!", number, 0, "news", 30_000 * b"x")
            sending.reply()
        connections = asker.once("/api/connections", lambda it: it["connections"][0]["choked"], within=10)
        first, *others = connections["connections"]
        assert first["unread_bytes"] > 1_000_000
        assert first["subscriptions"] == 1
        assert not [each for each in others if each["choked"]]
        assert asker.json("/api/state")["workers"][0]["choked"] == 1
        rows = {row["topic"]: row for row in asker.json("/api/topics?limit=1000")["topics"]}
        assert rows["work"]["takers"] == 1
        state = asker.json("/api/topics?order=rate")
        assert {row["topic"]: row["subscribers"] for row in state["topics"]} == {"news": 1}


@pytest.mark.parametrize("topic", [b"\xc1", packed("x") * 3])
def test_what_is_no_topic_is_never_listed(topic: bytes) -> None:
    with node() as (found, asker), WireClient.open((found.host, found.port)) as client:
        body = b"\x94\xa6:recv!\x01\xcd\xff\xff" + topic
        client.write(len(body).to_bytes(2, "big") + body)
        client.reply()
        assert asker.json("/api/topics")["topics"] == []
