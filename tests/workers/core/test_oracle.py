"""A worker, or several that are linked, against an oracle: whatever clients say, they are told the same.

They read all at once, and links are quick, so that what one says is dealt with before the next one speaks. What else
may be the case is for test_calls and test_links.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection
from dataclasses import replace
from typing import Final

import pytest

from skywalker.limits import Limits
from skywalker.wire import frames, pubsub, values
from skywalker.wire import junction as wire
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.oracle import Client, Oracle
from tests.workers.core.worlds import Wire

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "200"))
STEPS: Final = 60
LAYOUTS: Final = ([0], [0], [0, 0], [0, 1], [0, 0, 1])
CLIENTS: Final = 5
KINDS: Final = (*[(False, False)] * 2, *[(True, False)] * 4, (False, True))
"""Of clients: whether they agree on acks, and whether they speak pub/sub."""
NAMES: Final = (*"aaaaaaaab", "a name of more than sixteen bytes")
TOPICS: Final = [values.pack(topic) for topic in (*NAMES, 200, 1.0, None, ["a", {"b": 1000}])]
GROUPS: Final = [values.pack(group) for group in ("g", "h", 70_000, "a name of more than sixteen bytes")]
METHODS: Final = (*[wire.SEND] * 5, *[wire.RECV] * 3, *[wire.TAKE] * 3, wire.WILL)
TIMES: Final = (0, 900, 4_900, 4_900, 59_900, 59_900, 59_900, 59_900)
"""Milliseconds. Nothing is due at a whole second, when clients speak."""


class History:
    """One history, by clients of workers and with the oracle."""

    def __init__(self, seed: int) -> None:
        self.luck = luck = random.Random(seed)
        layout = Layout(luck.choice(LAYOUTS), luck)
        self.cluster = Cluster(layout, replace(Limits(), idle_probe_s=10**6), seed)
        self.oracle = Oracle(self.cluster.now)
        self.log = [f"workers of nodes {layout.nodes}"]
        self.wires: dict[Client, Wire] = {}
        self.ids = self.came = 0
        for _ in range(CLIENTS):
            self.come()

    # What clients do.

    def come(self) -> None:
        acks, speaks_pubsub = self.luck.choice(KINDS)
        client, at = self.oracle.connect(acks, speaks_pubsub), self.luck.randrange(len(self.cluster.workers))
        wire_ = self.wires[client] = self.cluster.worlds[at].wires[self.came] = Wire(self.came)
        self.cluster.workers[at].connect(self.came, pubsub=speaks_pubsub)
        if not speaks_pubsub:
            wire_.coming += wire.frame(wire.HELLO, self.id(), values.pack({"ack": acks}))
        self.cluster.settle()
        wire_.taken.clear()
        self.log.append(f"{self.came} comes to {at} {acks=} {speaks_pubsub=}")
        self.came += 1

    def leave(self, client: Client) -> None:
        self.oracle.leave(client)
        wire_ = self.wires.pop(client)
        wire_.ended = True
        self.cluster.settle()
        self.log.append(f"{wire_.fd} leaves")

    def id(self) -> bytes:
        self.ids += 1
        return values.pack(self.ids)

    def one_of(self, ids: Collection[bytes]) -> bytes:
        """Return one of them, or perhaps any that there was."""
        return self.luck.choice([*ids] * 4 + [values.pack(self.luck.randrange(self.ids))])

    def some_meeting(self) -> list[bytes]:
        luck, id, method = self.luck, self.id(), self.luck.choice(METHODS)
        value = values.pack(luck.choice((self.ids, "x" * luck.choice((0, 16, 3_000)), None, {"a": []})))
        more = {wire.RECV: [], wire.TAKE: [luck.choice(GROUPS)]}.get(method, [value])
        return [method, id, values.pack(luck.choice(TIMES)), luck.choice(TOPICS), *more]

    def some_call(self, client: Client) -> bytes:
        id, topic = self.id(), self.luck.choice(TOPICS)
        calls = [
            *[self.some_meeting()] * 8,
            [wire.SUBSCRIBE, id, topic],
            [wire.TOPIC, id, topic],
            [wire.PING, id],
            *[[wire.CANCEL, id, self.one_of([*client.waiting, *client.unacked])]] * 2,
            *[[wire.ACK, self.one_of(client.unacked)]] * len(client.unacked),
            *[[wire.UNSUBSCRIBE, id, self.one_of(client.subscriptions)]] * (2 * len(client.subscriptions)),
        ]
        return wire.frame(*self.luck.choice(calls))

    def some_message(self) -> bytes:
        luck = self.luck
        topic, payload = luck.choice(NAMES).encode(), luck.randbytes(luck.choice((0, 16, 3_000)))
        # Few subscribe, and not for long: they leave nothing for others to wait for.
        messages = (pubsub.subscribe(topic), *[pubsub.unsubscribe(topic)] * 3, *[pubsub.publish(topic, payload)] * 4)
        return luck.choice(messages)

    def speak(self, client: Client) -> None:
        said = self.some_message() if client.speaks_pubsub else self.some_call(client)
        self.oracle.hear(client, said)
        self.wires[client].coming += said
        self.cluster.settle()
        self.log.append(f"{self.wires[client].fd} says {said!r}")
        if any(call.deadline == self.oracle.now for call in client.waiting.values()):
            self.pass_time(1)  # whoever was given its value has no time to say so, or to give it back

    def pass_time(self, seconds: int) -> None:
        # What is due is so somewhat later, and then others may still have a last word.
        for later in (seconds - 0.05, seconds):
            self.cluster.pass_until(self.oracle.now + later)
            self.cluster.settle()
        self.oracle.pass_until(self.oracle.now + seconds)
        self.log.append(f"{seconds} s go by")

    # What comes of it.

    def step(self) -> None:
        luck, chance = self.luck, self.luck.random()
        client = luck.choice([*self.wires])
        if chance < 0.05:
            self.pass_time(luck.choice((1, 1, 4, 30)))
        elif chance < 0.1:
            self.leave(client)
            self.come()
        else:
            self.speak(client)
        self.compare()

    def compare(self) -> None:
        for client, wire_ in self.wires.items():
            assert told(client, wire_) == client.told, f"{wire_.fd} is told something else"
            client.told.clear()

    def end(self) -> None:
        """All times run out, so that nobody waits, and all leave."""
        self.pass_time(61)
        self.compare()
        for client in [*self.wires]:
            assert not client.waiting
            self.leave(client)
        for worker in self.cluster.workers:
            assert worker.core.held() == (0, 0)
            worker.core.shut()


def told(client: Client, wire_: Wire) -> dict[bytes, list[bytes]]:
    """Return what it is told, as the oracle has it."""
    found: dict[bytes, list[bytes]] = {}
    data = bytes(wire_.taken)
    wire_.taken.clear()
    if client.speaks_pubsub:
        items, rest = pubsub.split(data)
        found = {b"": [item[-1] for item in items]} if items else {}
    else:
        replies, rest = frames.split(data)
        for reply in replies:
            assert not isinstance(reply, frames.BadFrame), reply
            method, id, result = reply
            error = wire.refusal(values.unpack(result))
            found.setdefault(id, []).append(method + (result if error is None else error.code.encode()))
    assert not rest
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_clients_are_told_as_by_the_oracle(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = History(seed)
        live(history, seed, STEPS, history.log)
