"""A worker, or several that are linked, against a junction in process: the same calls have the same answers.

Clients read all at once and acknowledge nothing, and links are quick, so that each call is dealt with before the next
one comes. What else may be the case is for test_calls and test_links.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any, Final

import pytest

from skywalker.clients.bus import Bus
from skywalker.clients.call import Call
from skywalker.clients.requests import Kind, Requests
from skywalker.errors import RequestError, TimedOut
from skywalker.limits import Limits
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.worlds import Wire

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "200"))
STEPS: Final = 60
LAYOUTS: Final = ([0], [0], [0, 0], [0, 1], [0, 0, 1])
CLIENTS: Final = 4
TOPICS: Final = ("a", "a", "a", "b", 200, 1.0, None, "a name of more than sixteen bytes", ["a", {"b": 1000}])
GROUPS: Final = ("g", "h", 70_000, "a name of more than sixteen bytes")
TIMED: Final[tuple[Kind, ...]] = ("send", "recv", "take")


class History:
    """One history, in process and by clients of workers."""

    def __init__(self, seed: int) -> None:
        self.luck = luck = random.Random(seed)
        self.bus = Bus()
        layout = Layout(luck.choice(LAYOUTS), luck)
        self.cluster = Cluster(layout, replace(Limits(), idle_probe_s=10**6), seed)
        self.log = [f"workers of nodes {layout.nodes}"]
        self.clients = [Wire(fd) for fd in range(CLIENTS)]
        self.requests = Requests()
        self.calls: list[tuple[Kind, Call]] = []  # by id
        self.outcomes: dict[int, Any] = {}  # of the oracle, by id
        for wire_ in self.clients:
            at = luck.randrange(len(layout.nodes))
            self.cluster.worlds[at].wires[wire_.fd] = wire_
            self.cluster.workers[at].connect(wire_.fd)
            wire_.coming += wire.frame(wire.HELLO, values.pack(-1), b"\x80")
        self.hear()

    @property
    def now(self) -> float:
        return self.cluster.now

    # Calls.

    def meet(self) -> None:
        luck = self.luck
        kind = luck.choice(TIMED)
        topic = luck.choice(TOPICS)
        arguments: tuple[Any, ...] = (topic,)
        if kind == "send":
            arguments = (topic, luck.choice((len(self.calls), "x" * luck.choice((0, 16, 3_000)), None, {"a": [topic]})))
        elif kind == "take":
            arguments = (topic, luck.choice(GROUPS))
        self.begin(kind, arguments, luck.choice((0.0, 1.0, 1.0, 5.0, 60.0)))

    def ask(self) -> None:
        if self.luck.random() < 0.2:
            self.begin("ping", (), 1.0)
        else:
            self.begin("topic", (self.luck.choice(TOPICS),), 1.0)

    def begin(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> None:
        call, id = Call(), len(self.calls)
        self.calls.append((kind, call))
        self.bus.begin(call, kind, arguments, timeout, self.now)
        # The same client says all on which others depend, as one that is asked to cancel something has to know it.
        self.say(id % CLIENTS, self.requests.encode(id, kind, arguments, timeout))
        self.log.append(f"{id}: {kind} {arguments!r:.100} within {timeout} s")

    def cancel(self) -> None:
        if not self.calls:
            return
        waiting = [id for id, (_, call) in enumerate(self.calls) if not call.ended]
        id = self.luck.choice(waiting) if waiting and self.luck.random() < 0.8 else self.luck.randrange(len(self.calls))
        canceller, by = Call(), len(self.calls)
        self.calls.append(("cancel", canceller))
        self.bus.cancel(self.calls[id][1], canceller, 1.0, self.now)
        self.say(id % CLIENTS, wire.frame(wire.CANCEL, values.pack(by), values.pack(id)))
        self.log.append(f"{by}: cancels {id}")

    def say(self, client: int, frame: bytes) -> None:
        self.clients[client].coming += frame

    def pass_time(self) -> None:
        seconds = self.luck.choice((0.1, 0.5, 1.0, 4.0, 30.0))
        # What is due then is so on both sides a bit later.
        self.cluster.pass_until(self.now + seconds + 0.02)
        self.bus.tick(self.now)
        self.log.append(f"{seconds} s go by")

    # What comes of it.

    def step(self) -> None:
        self.luck.choice((self.meet,) * 10 + (self.ask, self.cancel, self.pass_time))()
        self.compare()

    def compare(self) -> None:
        wanted = {id: outcome_of(call) for id, (_, call) in enumerate(self.calls) if call.ended}
        told = {id: outcome for id, outcome in wanted.items() if id not in self.outcomes}
        self.outcomes = wanted
        assert self.hear() == told

    def hear(self) -> dict[int, Any]:
        """Return what clients are told, by id."""
        self.cluster.settle()
        heard: dict[int, Any] = {}
        for wire_ in self.clients:
            frames, rest = split(bytes(wire_.taken))
            wire_.taken.clear()
            assert not rest
            for method, packed, result in frames:
                id = values.unpack(packed)
                if id < 0:
                    continue
                assert id not in heard, "it is answered twice"
                assert method == METHODS[self.calls[id][0]]
                heard[id] = result_of(method, result)
        return heard

    def end(self) -> None:
        """All times run out; then nobody waits."""
        self.cluster.pass_until(self.now + 61.0)
        self.bus.tick(self.now)
        self.compare()
        assert len(self.outcomes) == len(self.calls)
        for worker in self.cluster.workers:
            assert worker.core.held() == (0, 0)
            worker.core.shut()


METHODS: Final = {
    "send": wire.SEND, "recv": wire.RECV, "take": wire.TAKE, "topic": wire.TOPIC, "ping": wire.PING,
    "cancel": wire.CANCEL,
}  # fmt: skip


def outcome_of(call: Call) -> Any:
    if isinstance(call.error, TimedOut):
        return "timed out"
    if call.error is not None:
        assert isinstance(call.error, RequestError)
        return "refused", call.error.code
    if call.kind == "topic":
        return rounded(call.value)
    return "answered", call.value


def result_of(method: bytes, packed: bytes) -> Any:
    result = values.unpack(packed)
    if wire.is_timeout(result):
        return "timed out"
    error = wire.refusal(result)
    if error is not None:
        return "refused", error.code
    if method == wire.TOPIC:
        return rounded(result)
    return "answered", result


def rounded(info: dict[str, Any]) -> Any:
    """Return who waits at a topic, and for how many tenths of a second the oldest of them does."""
    return info | {"age": round(info["age"], -2)}


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_are_answered_as_in_process(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = History(seed)
        live(history, seed, STEPS, history.log)
