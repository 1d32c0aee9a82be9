"""What a core records of calls is what it counts of them, each once, in pages that are handed over in time."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Final, NamedTuple

import pytest

from skywalker.journal import record
from skywalker.journal.record import PAGE_RECORDS
from skywalker.ring import token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.test_links import LinkedHistory
from tests.workers.core.worlds import MemoryWorker, Wire
from workers.calls.recording import PAGE_S, Recording
from workers.stats import metrics

HISTORIES: Final = 20
STEPS: Final = 60
TOPICS: Final = 5_000
"""More than a core keeps though nobody is at them, and than it knows the tokens of."""

FORMAT: Final = struct.Struct("<dqfIIBBBB")


class Record(NamedTuple):
    ended: float
    token: int
    wait: float
    size: int
    connection: int
    method: int
    outcome: int
    route: int
    door: int


class Written:
    """In place of a writer."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.pages = 0
        self.names: dict[int, bytes] = {}
        self.moves = 0

    def write(self, page: bytearray, count: int) -> bytearray:
        self.pages += 1
        self.records += (Record(*fields) for fields in FORMAT.iter_unpack(page[: count * FORMAT.size]))
        return bytearray(len(page))

    def name(self, token: int, topic: bytes) -> None:
        assert token not in self.names, "it is named once"
        self.names[token] = topic

    def moved(self) -> None:
        self.moves += 1

    def close(self) -> None:
        pass


def recorded(worker: MemoryWorker, every: int = 1) -> tuple[Recording, Written]:
    """Have one record its calls from now on."""
    written = Written()
    recording = Recording(written, every, worker.turn, lambda: 0.3)  # type: ignore[arg-type]
    worker.hub.clients._recording = recording
    recording.begin(worker.core)
    return recording, written


class RecordedHistory(LinkedHistory):
    def __init__(self, seed: int) -> None:
        self.recordings: dict[MemoryWorker, tuple[Recording, Written]] = {}
        super().__init__(seed)
        self.record()

    def record(self) -> None:
        for worker in self.cluster.workers:
            if worker not in self.recordings:
                self.recordings[worker] = recorded(worker)

    def kill(self) -> None:
        super().kill()
        self.record()

    def look(self) -> None:
        """What clients are told is others' business."""

    def end(self) -> None:
        for worker, (recording, written) in self.recordings.items():
            recording.close()
            self.compare(worker, written)
        for worker in self.cluster.workers:
            worker.core.shut()

    def compare(self, worker: MemoryWorker, written: Written) -> None:
        records, memory = written.records, worker.memory
        outcomes = Counter((each.method, each.outcome) for each in records)
        for method, name in enumerate(record.METHODS):
            for outcome, its_name in enumerate(record.OUTCOMES):
                if method and outcome:
                    assert outcomes[method, outcome] == memory[metrics.CALLS.cell(name, its_name)], (name, its_name)
        routes = Counter(each.route for each in records)
        routed = memory[metrics.ROUTED.at : metrics.ROUTED.end].tolist()
        assert [routes[route] for route in range(len(record.ROUTES))] == routed
        assert written.moves == memory[metrics.MOVED.cell("in")]
        assert all(each.wait >= 0.0 and each.token in written.names and each.connection for each in records)
        assert all(token == token_of(topic) for token, topic in written.names.items())
        doors = {each.connection: each.door for each in records}
        assert all(each.door == doors[each.connection] in (record.JUNCTION, record.PUBSUB) for each in records)
        assert all((each.method == record.PUBLISH) <= (each.outcome == record.PROMPT) for each in records)
        times = [each.ended for each in records]
        assert times == sorted(times)


@pytest.mark.parametrize("part", range(PARTS))
def test_all_that_is_counted_is_on_record(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = RecordedHistory(seed)
        live(history, seed, STEPS, history.log)


def a_worker() -> tuple[MemoryWorker, Wire]:
    worker = MemoryWorker()
    wire_ = worker.world.wires[50] = Wire(50)
    worker.connect(50)
    return worker, wire_


def meet(worker: MemoryWorker, wire_: Wire, count: int) -> None:
    """Have so many values handed on."""
    topic, value = values.pack("topic"), values.pack("value")
    while count:
        some = min(count, 20)
        for id in range(some):
            wire_.coming += wire.frame(wire.RECV, values.pack(id), values.pack(60_000), topic)
            wire_.coming += wire.frame(wire.SEND, values.pack(100 + id), values.pack(60_000), topic, value)
        wire_.room = 10**6
        worker.settle()
        count -= some


def test_a_page_is_handed_over_when_it_is_full_or_has_waited() -> None:
    worker, wire_ = a_worker()
    _, written = recorded(worker)
    meet(worker, wire_, 3)
    worker.world.now += PAGE_S / 2
    worker.settle()
    assert not written.pages
    worker.world.now += PAGE_S / 2 + 0.02
    worker.settle()
    assert written.pages == 1
    [received, sent] = written.records[:2]
    assert {received.method, sent.method} == {record.SEND, record.RECV}
    assert received.size == sent.size == len(values.pack("value"))
    meet(worker, wire_, PAGE_RECORDS // 2 + 1)
    assert written.pages == 2
    assert len(written.records) == 6 + PAGE_RECORDS
    worker.core.shut()


@pytest.mark.parametrize("every", [1, 20])
def test_each_call_is_recorded_under_its_own_topic(every: int) -> None:
    """However many there are, and whichever was forgotten, so that another has its place."""
    worker, wire_ = a_worker()
    recording, written = recorded(worker, every)
    names = [values.pack(f"topic{number}") for number in range(TOPICS)]
    sent = [values.pack("x" * number) for number in range(TOPICS)]
    tokens = {len(value): token_of(name) for name, value in zip(names, sent, strict=True)}
    for number in (*range(10), *range(TOPICS), *range(TOPICS), *range(10)):
        wire_.coming += wire.frame(wire.RECV, values.pack(1), values.pack(60_000), names[number])
        wire_.coming += wire.frame(wire.SEND, values.pack(2), values.pack(60_000), names[number], sent[number])
        wire_.room = 10**6
        worker.settle()
    recording.close()
    assert len(written.records) > TOPICS / every
    assert all(each.token == tokens[each.size] for each in written.records)
    assert {each.token for each in written.records} == {*written.names}
    worker.core.shut()


def test_one_of_so_many_is_recorded_on_average() -> None:
    worker, wire_ = a_worker()
    recording, written = recorded(worker, every=10)
    meet(worker, wire_, 5_000)
    recording.close()
    assert 900 < len(written.records) < 1_100
    methods = Counter(each.method for each in written.records)
    assert min(methods[record.SEND], methods[record.RECV]) > 400, "not at even distances"
    worker.core.shut()
