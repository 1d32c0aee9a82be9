"""Messages on their way to real nodes that restart, drain, hang and are busy, and to receivers that vanish."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import psutil
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from skywalker.clients import stream
from skywalker.clients.settings import CLOJURE_KEYWORD, Settings
from skywalker.embedding import Node, embedded, start
from skywalker.errors import BadFrame, Busy, ReservedValue, TimedOut, TooLarge
from skywalker.limits import MAX_FRAME
from skywalker.pipeline.tables import sending
from skywalker.pipeline.tables.sending import Sender
from skywalker.pipeline.tables.writing import Writing
from skywalker.wire import values
from tests.clients.scripted import ScriptedNode, error
from tests.helpers import eventually, time_factor
from tests.pipeline.tables.receiver import Receiver


def sender(address: str, timeout_ms: int = 10_000, window: int = 100, *, missed_is_fatal: bool = True) -> Sender:
    settings = Settings.of(
        address,
        dialect="current",
        timeout_value=CLOJURE_KEYWORD,
        name="tests",
        ack=False,
        token=None,
        max_frame=MAX_FRAME,
        direct=False,
    )
    return Sender(settings, timeout_ms, window, missed_is_fatal=missed_is_fatal)


def messages(topic: Any, numbers: range) -> Iterator[tuple[bytes, bytes]]:
    where = values.pack(topic)
    return ((where, values.pack(number)) for number in numbers)


def send_all(sends: Sender, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    sends.send(pairs)
    sends.finish()


@pytest.fixture
def node(skywalker_node: Node) -> Node:
    return skywalker_node


def test_messages_arrive_in_order_once_each(node: Node) -> None:
    with Receiver(node.address, "w/order") as receiver, sender(node.address) as sends:
        sends.send(messages("w/order", range(500)))
        sends.send(messages("w/order", range(500, 1000)))
        sends.finish()
        assert sends.flight.handed_over == 1000
        assert eventually(lambda: len(receiver.got) == 1000)
    assert receiver.got == [*range(1000)]


def test_the_last_message_is_on_its_way_before_more_are_asked_for(node: Node) -> None:
    with sender(node.address) as sends:
        sends.send(messages("w/flushed", range(3)))
        with node.connect() as junction:
            assert [junction.recv("w/flushed", 5 * time_factor()) for _ in range(3)] == [0, 1, 2]
        sends.finish()


def test_a_node_that_is_killed_and_starts_again_loses_nothing() -> None:
    first = start(workers=1)
    port = first.port
    nodes = [first]
    try:
        with Receiver(first.address, "w/killed") as receiver, sender(first.address, 60_000, window=50) as sends:
            crowd = threading.Thread(target=_restart, args=(first, port, receiver, nodes))
            crowd.start()
            try:
                sends.send(messages("w/killed", range(3000)))
                sends.finish()
            finally:
                crowd.join()
            assert eventually(lambda: {*receiver.got} == {*range(3000)})
            assert 0 < sends.flight.issued_again <= 50
        twice = sum(count - 1 for count in Counter(receiver.got).values())
        assert twice <= sends.flight.issued_again
    finally:
        for node in nodes:
            node.stop()


def _restart(node: Node, port: int, receiver: Receiver, nodes: list[Node]) -> None:
    """Kill a node in the middle of things, and start it again where it was."""
    eventually(lambda: len(receiver.got) > 500)
    os.killpg(node.pid, signal.SIGKILL)
    node.stop()
    nodes.append(eventually(lambda: start(workers=1, port=port), within=20))


def test_a_node_that_drains_gives_back_what_waits_and_another_gets_it_once() -> None:
    with embedded(workers=1) as staying:
        leaving = start(workers=1, drain_timeout_s=10.0)
        ended = threading.Thread(target=leaving.stop)
        try:
            with sender(f"{leaving.address},{staying.address}", window=50) as sends:
                _be_at(sends, leaving, staying)
                sends.send(messages("w/drained", range(20)))
                with leaving.connect() as junction:
                    assert eventually(lambda: junction.topic("w/drained")["senders"] == 20)
                ended.start()
                with Receiver(staying.address, "w/drained") as receiver:
                    sends.send(messages("w/drained", range(20, 40)))
                    sends.finish()
                    assert eventually(lambda: len(receiver.got) >= 40)
                assert receiver.got == [*range(40)]
                assert sends.flight.issued_again == 0
        finally:
            ended.join()


def test_a_node_that_goes_away_with_its_last_answer_leaves_nothing_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "CONNECT_TIMEOUT_S", 0.3)
    with ScriptedNode() as node:
        scripted = threading.Thread(target=_answer_and_leave, args=(node,), daemon=True)
        scripted.start()
        with sender(node.address, timeout_ms=100) as sends:
            send_all(sends, messages("w/last", range(1)))
            assert sends.flight.handed_over == 1
        scripted.join()


def _answer_and_leave(node: ScriptedNode) -> None:
    connection = node.next_connection()
    assert connection.read()[0] == ":hello"
    connection.write([":hello", None, {}])
    method, id = connection.read()[:2]
    connection.write([method, id, True], [":ring", None, {"leaving": True}])


def _be_at(sends: Sender, wanted: Node, other: Node) -> None:
    """Have the sender be connected to one of two nodes, if need be by a stop of the other that it thinks is lost."""
    address = sends._finder.address
    assert address is not None
    if address.port != wanted.port:
        assert address.port == other.port
        sends._replace("the test wants the other node")


def test_a_node_that_hangs_is_left_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "PROBE_S", 0.3 * time_factor())
    with (
        embedded(workers=1) as hanging,
        embedded(workers=1) as other,
        sender(f"{hanging.address},{other.address}", window=50) as sends,
    ):
        _be_at(sends, hanging, other)
        sends.send(messages("w/hung", range(10)))
        os.killpg(hanging.pid, signal.SIGSTOP)
        try:
            with Receiver(other.address, "w/hung") as receiver:
                sends.finish()
                assert eventually(lambda: receiver.got == [*range(10)])
        finally:
            os.killpg(hanging.pid, signal.SIGCONT)
        assert sends.flight.issued_again == 10


def test_a_topic_that_waits_for_long_is_no_silence(monkeypatch: pytest.MonkeyPatch, node: Node) -> None:
    monkeypatch.setattr(stream, "PROBE_S", 0.1)
    with sender(node.address, timeout_ms=1500, missed_is_fatal=False) as sends:
        sends.send(messages("w/long", range(2)))
        sends.finish()
        assert sends.flight.missed.total() == 2
        assert sends.flight.issued_again == 0


def test_a_node_that_takes_fewer_calls_gets_no_more_and_all_in_the_end() -> None:
    with embedded(workers=1, max_calls=100) as node:
        with Receiver(node.address, "w/busy") as receiver, sender(node.address, window=200) as sends:
            sends.send(messages("w/busy", range(1000)))
            sends.finish()
            assert sends.flight.busy is not None
            assert eventually(lambda: len(receiver.got) == 1000)
        assert sorted(receiver.got) == [*range(1000)]


def test_a_node_that_stays_too_busy_is_given_up_and_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "STUCK_S", 0.3)
    with ScriptedNode() as node:
        scripted = threading.Thread(target=_refuse_all, args=(node,), daemon=True)
        scripted.start()
        too_busy = pytest.raises(Busy, match=r"too busy for \d+ s: no memory; set maxInFlight lower")
        with sender(node.address, timeout_ms=100) as sends, too_busy:
            send_all(sends, messages("w/full", range(1)))
        scripted.join()


def _refuse_all(node: ScriptedNode) -> None:
    connection = node.next_connection()
    while call := connection.read():
        connection.write([call[0], call[1], {} if call[0] == ":hello" else error("busy", "no memory")])


def test_large_values_get_through_to_receivers_that_are_slower(node: Node) -> None:
    # More than all buffers on the way hold: the sender has to read and write at the same time.
    value = values.pack("x" * 60_000)
    with Receiver(node.address, "w/large") as receiver, sender(node.address, window=300) as sends:
        sends.send((values.pack("w/large"), value) for _ in range(400))
        sends.finish()
        assert eventually(lambda: len(receiver.got) == 400, within=20)
    assert {*map(len, receiver.got)} == {60_000}


def test_no_connection_stays_behind() -> None:
    with embedded(workers=1) as node:
        with pytest.raises(TimedOut), sender(node.address, timeout_ms=50) as sends:
            send_all(sends, messages("t", range(4)))
        with pytest.raises(TooLarge), sender(node.address) as sends:
            sends.send([(values.pack("t"), values.pack("x" * 70_000))])
        with node.connect() as junction:
            assert eventually(lambda: junction.topic("t")["senders"] == 0)
        worker = psutil.Process(node.worker_pids()[0])
        assert eventually(lambda: not [c for c in worker.net_connections("tcp") if c.status == "ESTABLISHED"])


def test_a_value_that_is_no_messagepack_is_refused_by_the_node_and_named_by_its_topic(node: Node) -> None:
    said = r"column 'value' of a row for topic 'w/bad' is not one MessagePack value .*"
    for value, why in ((b"\xda\xff", "it ends within a value"), (b"\x01\x02", "1 bytes follow"), (b"", "ends within")):
        with sender(node.address) as sends, pytest.raises(BadFrame, match=said + why):
            send_all(sends, [(values.pack("w/bad"), value)])


@pytest.mark.parametrize("value", [b"\xd4\x54\x00", b"\xc7\x01\x54\x00", b"\xd4\x45\x00", b"\xc8\x00\x01\x45\x00"])
def test_a_value_that_receivers_would_take_for_the_nodes_own_word_is_refused_by_it(node: Node, value: bytes) -> None:
    with sender(node.address) as sends, pytest.raises(ReservedValue, match="refused a row for topic 'w/reserved'"):
        send_all(sends, [(values.pack("w/reserved"), value)])


def test_the_node_is_told_who_writes() -> None:
    with ScriptedNode() as node:
        greeted: list[Any] = []
        scripted = threading.Thread(target=lambda: greeted.append(_greet(node)), daemon=True)
        scripted.start()
        writing = Writing(StructType([StructField("n", LongType())]), {"address": node.address, "topic": "t"})
        assert writing.write(iter([]), "w/0").taken == 0
        scripted.join()
    assert greeted == [[":hello", None, {"name": "skywalker-spark", "ring": True}]]


def _greet(node: ScriptedNode) -> Any:
    connection = node.next_connection()
    hello = connection.read()
    connection.write([":hello", None, {}])
    return hello
