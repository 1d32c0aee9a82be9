"""Workers that are asked what they hold, while they hold very much."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator

import psutil
import pytest

from skywalker.embedding import Node
from tests.admin.asking import Asker, node
from tests.helpers import eventually, time_factor
from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import WireClient, call, packed
from workers.worker.inspection import MAX_LOOKED_AT, Inspection

MANY = 100_000

LONG_TURN_S = 0.03

PATIENCE_S = 0.5

LONG_TOPIC = 4000
"""Bytes of a topic, of which each takes six to be told as what it is."""


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
        for _ in range(2):
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


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Node, Asker]]:
    """A node, and who asks it; nobody else is there when a test begins."""
    with node(pubsub=True) as found:
        yield found


def test_subscribers_and_takers_are_counted_and_the_slow_come_first(shared: tuple[Node, Asker]) -> None:
    found, asker = shared
    with contextlib.ExitStack() as clients:
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
def test_what_is_no_topic_is_never_listed(shared: tuple[Node, Asker], topic: bytes) -> None:
    found, asker = shared
    with WireClient.open((found.host, found.port)) as client:
        body = b"\x94\xa6:recv!\x01\xcd\xff\xff" + topic
        client.greet().write(len(body).to_bytes(2, "big") + body)
        client.reply()
        assert asker.json("/api/topics")["topics"] == []


def test_long_topics_are_told_in_part_in_short_turns_and_are_told_apart(shared: tuple[Node, Asker]) -> None:
    found, asker = shared
    with WireClient.open((found.host, found.port)) as client:
        for number in range(1000):
            client.call(":recv!", number, 600_000, LONG_TOPIC * b"\xff" + b"%03d" % number)
        client.call(":recv!", 1000, 600_000, 400 * "é")
        client.call(":recv!", 1001, 600_000, 200 * "é")
        client.call(":recv!", 1002, 600_000, 100 * "é")
        eventually(lambda: asker.metric("skywalker_waiting") == 1003, within=10)
        worker = psutil.Process(found.worker_pids()[0])
        before = sum(worker.cpu_times()[:2])
        for limit in (1000, 101):
            status, _, body = asker.ask(f"/api/topics?limit={limit}")
            assert status == 200
            assert len(body) < limit * 1000
            time.sleep(1.05)  # the same question is answered once a second
        assert sum(worker.cpu_times()[:2]) - before < 2 * LONG_TURN_S * time_factor()
        rows = asker.json("/api/topics?limit=1000")["topics"]
        assert all(row["topic"].endswith("ff…") and len(row["topic"]) < 600 for row in rows)
        assert len({row["cut"] for row in rows}) == len(rows) == 1000
        client.write(b"".join(call(":cancel", "", number) for number in range(1000)))
        client.replies(2000)
        rows = asker.once("/api/topics?limit=100", lambda it: len(it["topics"]) == 3)["topics"]
        whole, *others = sorted(rows, key=lambda row: len(row["topic"]))
        assert (whole["topic"], whole["cut"]) == (100 * "é", "")
        for row in others:
            assert row["cut"]
            assert row["topic"] == (len(row["topic"]) - 1) * "é" + "…"


def test_answers_take_a_small_part_of_the_time_however_much_is_asked() -> None:
    worker = OneWorker()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.closing(worker), ours, worker.connect() as client:
        for _ in range(10):
            client.write(b"".join(call(":recv!", 1, 600_000, number) for number in range(1000)))
            worker.turn()
        Inspection(theirs, worker.hub.clients).open()
        for number in range(100):
            ours.send(json.dumps({"what": "topics", "order": "waiting", "limit": 1 + number}).encode())
        taken_s = 0.0
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            began = time.thread_time()
            while worker.loop.turn(patient=False):
                pass
            taken_s += time.thread_time() - began
            time.sleep(0.002)
        # One part in SHARE, what it began with, and the turns themselves.
        assert taken_s < PATIENCE_S / 4
        _, [answer], _, _ = socket.recv_fds(ours, 100, 1)
        os.close(answer)
        ours.close()
        worker.turn()
        assert theirs.fileno() == -1, "who asks is gone, and what is not answered yet with it"
