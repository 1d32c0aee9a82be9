"""What only threads, processes and signals can do to the blocking client."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

import skywalker
from skywalker.clients.blocking.driver import FirstOf
from skywalker.clients.routes import DIRECT_AFTER_CALLS
from skywalker.embedding import Node
from skywalker.ring import token_of
from skywalker.wire import values
from tests.clients.driving import background
from tests.clients.proxy import Proxy
from tests.clients.scripted import Connection, ScriptedNode
from tests.helpers import eventually, time_factor

SOON = 10.0

Nodes = Callable[[int], Node]


@pytest.fixture
def junction(node: Nodes) -> Iterator[skywalker.Client]:
    with skywalker.connect(node(2).address) as junction:
        yield junction


@pytest.fixture
def other(node: Nodes) -> Iterator[skywalker.Client]:
    with skywalker.connect(node(2).address) as junction:
        yield junction


@pytest.fixture
def served(scripted: ScriptedNode) -> Iterator[tuple[skywalker.Client, Connection]]:
    """A client of a scripted node, and the node's end."""
    with skywalker.connect(scripted.address) as junction:
        yield junction, scripted.next_connection()


# Threads.


def test_no_thread_is_started_and_asyncio_is_not_loaded(node: Nodes) -> None:
    program = f"""
import sys, threading, skywalker
with skywalker.connect({node(2).address!r}) as junction:
    call = junction.begin("recv", "alone", timeout=5)
    assert junction.send("alone", 1) and call.result() == 1
    assert threading.active_count() == 1, threading.enumerate()
assert not [name for name in ("asyncio", "click", "workers", "concurrent.futures") if name in sys.modules]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SOON * time_factor())


def test_threads_that_come_and_go_never_leave_another_without_a_reader(
    junction: skywalker.Client, other: skywalker.Client, topic: str
) -> None:
    """Short calls lead and resign all the time, some at their deadline, while one long call waits behind them."""
    long = background(lambda: junction.recv([topic, "long"], timeout=60.0))
    stop = threading.Event()

    def churn(number: int) -> int:
        count = 0
        while not stop.is_set():
            junction.recv([topic, number], timeout=0.001 * (count % 5), default=None)
            count += 1
        return count

    churners = [background(lambda n=number: churn(n)) for number in range(6)]
    for number in range(20):
        assert other.send([topic, number % 6], number, timeout=SOON)
    stop.set()
    assert all(churner.result(SOON * time_factor()) > 3 for churner in churners)
    assert other.send([topic, "long"], "v", timeout=SOON)
    assert long.result(SOON * time_factor()) == "v"


def test_a_thread_that_goes_to_sleep_just_as_the_leader_ends_leads_itself(
    junction: skywalker.Client, other: skywalker.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = junction._driver._sleep

    def sleep_late(call: skywalker.Pending, until: float) -> None:
        assert other.send([topic, "leads"], 1, timeout=SOON)
        assert leading.result(SOON * time_factor()) == 1
        sleep(call, until)

    monkeypatch.setattr(junction._driver, "_sleep", sleep_late)
    leading = background(lambda: junction.recv([topic, "leads"], timeout=60.0))
    eventually(lambda: other.topic([topic, "leads"])["receivers"] == 1, within=SOON)  # it has read what came before
    eventually(lambda: junction._driver._leader is not None, within=SOON)
    following = background(lambda: junction.recv([topic, "follows"], timeout=60.0))
    eventually(leading.done, within=SOON)
    assert other.send([topic, "follows"], 2, timeout=SOON)
    assert following.result(SOON * time_factor()) == 2


def test_a_thread_whose_answer_another_reads_just_before_it_leads_does_not_read_for_more(
    junction: skywalker.Client, other: skywalker.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead = junction._driver._lead

    def lead_late(call: skywalker.Pending, *args: Any, **options: Any) -> bool:
        if isinstance(call, FirstOf):
            return lead(call, *args, **options)  # before the call
        monkeypatch.undo()
        assert background(lambda: other.send(topic, 1, timeout=SOON) and junction.ping()).result(SOON * time_factor())
        return lead(call, *args, **options)

    monkeypatch.setattr(junction._driver, "_lead", lead_late)
    assert background(lambda: junction.recv(topic, timeout=60.0)).result(SOON * time_factor()) == 1


def test_threads_hammer_through_a_network_that_keeps_failing(node: Nodes, proxy: Proxy, topic: str) -> None:
    stop = threading.Event()
    with skywalker.connect(proxy.address) as sender, skywalker.connect(node(2).address) as receiver:

        def send(number: int) -> int:
            count = 0
            while not stop.is_set():
                assert sender.send([topic, number], count, timeout=SOON)
                count += 1
            return count

        def receive(number: int) -> list[int]:
            return list(receiver.values([topic, number], timeout=2.0))

        receivers = [background(lambda n=number: receive(n)) for number in range(4)]
        senders = [background(lambda n=number: send(n)) for number in range(4)]
        for wanted in range(2, 8):
            proxy.cut()
            eventually(lambda wanted=wanted: proxy.accepted >= wanted, within=SOON)
        stop.set()
        for send_count, received in zip(senders, receivers, strict=True):
            count = send_count.result(SOON * time_factor())
            got = received.result(SOON * time_factor())
            # A value may come twice where its `true` was lost, never be missing or out of order.
            assert sorted(set(got)) == list(range(count))
            assert got == sorted(got)


def test_a_call_that_is_waited_for_again_and_again_keeps_nothing_of_that(topic: str) -> None:
    with skywalker.LocalJunction() as junction:
        call = junction.begin("recv", topic, timeout=SOON)
        for _ in range(10):
            junction._driver.wait(call, time.monotonic() + 0.001)
        assert not call.waiters
        assert junction.send(topic, "v", timeout=0)
        assert call.result() == "v"


def test_what_is_read_as_the_main_connection_is_lost_is_taken_in_before_that() -> None:
    """Lines that have younger calls on the topics of a lost one are closed with it."""
    tokens = {0: [-(2**62)], 1: [2**62]}
    topic = next(name for name in map(str, range(100)) if token_of(values.pack(name)) > tokens[1][0])

    def greet(connection: Connection, worker: int) -> None:
        answer = {"node": "n", "worker": worker, "workers": 2, "tokens": tokens, "steering": False}
        connection.write([":hello", connection.read()[1], answer])

    def pinged() -> Future[Any]:
        ping = background(junction.ping)
        asked.append(main.read())
        return ping

    def answer() -> None:
        main.write([":ping", asked.pop()[1], True])

    asked: list[Any] = []
    with ScriptedNode(courtesies=False) as node:
        connecting = background(lambda: skywalker.connect(node.address))
        main = node.next_connection()
        greet(main, 0)
        method, id = main.read()
        main.write([method, id, []])
        with connecting.result(SOON * time_factor()) as junction:
            junction.begin("recv", topic, timeout=SOON)
            assert main.read()[0] == ":recv!"
            for _ in range(DIRECT_AFTER_CALLS):
                ping = pinged()
                answer()
                ping.result(SOON * time_factor())
            ping = pinged()
            direct = node.next_connection()
            greet(direct, 1)
            method, id, _ = main.read()
            assert method == ":topic"
            main.write([method, id, {}])
            answer()
            ping.result(SOON * time_factor())
            younger = junction.begin("recv", topic, timeout=SOON)
            method, id, *_ = direct.read()
            assert (method, id) == (":recv!", younger.id)
            direct.write([method, id, "v"])
            main.close()
            assert younger.result() == "v"


def test_a_call_whose_time_is_over_is_done_though_another_thread_reads_and_the_node_is_silent(
    served: tuple[skywalker.Client, Connection],
) -> None:
    junction, _ = served
    leading = background(lambda: junction.recv("leads", timeout=SOON, default=None))
    eventually(lambda: junction._driver._leader is not None, within=SOON)
    call = junction.begin("recv", "t", timeout=0)
    eventually(call.done, within=SOON / 4)
    assert not leading.done()
    junction.close()
    with pytest.raises(skywalker.Closed):
        leading.result(SOON * time_factor())


def test_a_node_that_does_not_read_holds_no_thread_beyond_its_time(
    served: tuple[skywalker.Client, Connection],
) -> None:
    junction, connection = served
    began = time.monotonic()
    calls = []
    while time.monotonic() - began < 20:
        call = junction.begin("send", "t", b"x" * 60_000, timeout=0.3)
        calls.append(call)
        if call.done():
            break
    with pytest.raises(skywalker.OutcomeUnknown):  # it is still to be written, as it has begun
        calls[-1].result()
    assert time.monotonic() - began < 10 * time_factor()
    # What was half written is completed once the node reads again: the stream is still whole.
    reading = background(
        lambda: list(itertools.takewhile(lambda message: message[0] != ":recv!", iter(connection.read, None)))
    )
    probe = background(lambda: junction.recv("probe", timeout=SOON, default=None))
    messages = reading.result(SOON * time_factor())
    assert [message[1] for message in messages if message[0] == ":send!"] == [call.id for call in calls]
    junction.close()
    with pytest.raises(skywalker.Closed):
        probe.result(SOON * time_factor())


def test_one_thread_may_begin_more_than_the_buffers_hold(junction: skywalker.Client, topic: str) -> None:
    """The replies must be read while the calls are still being written, or both sides would wait for the other."""
    count = 300
    calls = [junction.begin("recv", [topic, number], timeout=30) for number in range(count)]
    sent = [junction.begin("send", [topic, number], b"x" * 60_000, timeout=30) for number in range(count)]
    assert all(call.result() is True for call in sent)
    assert [len(call.result()) for call in calls] == [60_000] * count


# Interruption.


def test_an_interrupt_while_waiting_cancels_the_call(
    junction: skywalker.Client, other: skywalker.Client, topic: str
) -> None:
    def interrupt() -> None:
        eventually(lambda: other.topic(topic)["receivers"] == 1, within=SOON)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = background(interrupt)
    with pytest.raises(KeyboardInterrupt):
        junction.recv(topic, timeout=60.0)
    interrupting.result(SOON * time_factor())
    eventually(lambda: other.topic(topic)["receivers"] == 0, within=SOON)
    assert junction.ping()


def test_an_interrupt_of_one_thread_leaves_the_calls_of_others(
    junction: skywalker.Client, other: skywalker.Client, topic: str
) -> None:
    for first in ("leads", "follows"):
        theirs = [topic, first]

        def start(theirs: list[str] = theirs) -> Any:
            waiting = background(lambda: junction.recv(theirs, timeout=60.0))
            eventually(lambda: other.topic(theirs)["receivers"] == 1, within=SOON)
            return waiting

        waiting = start() if first == "follows" else None

        def interrupt() -> Any:
            eventually(lambda: other.topic(topic)["receivers"] == 1, within=SOON)
            their_call = start() if first == "leads" else waiting  # noqa: B023 - it ends within this round
            os.kill(os.getpid(), signal.SIGINT)
            return their_call

        interrupting = background(interrupt)
        with pytest.raises(KeyboardInterrupt):
            junction.recv(topic, timeout=60.0)
        their_call = interrupting.result(SOON * time_factor())
        eventually(lambda: other.topic(topic)["receivers"] == 0, within=SOON)
        assert other.send(theirs, "v", timeout=SOON)
        assert their_call.result(SOON * time_factor()) == "v"


# A socket that an exception hits between being made and being kept is closed by the garbage collector, which warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_moment_leave_a_client_that_works(junction: skywalker.Client, topic: str) -> None:
    """A timer fires again and again at odd times; whatever it hits, the next call must be answered."""

    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    old = signal.signal(signal.SIGALRM, ring)
    hits = 0
    try:
        for round in range(120):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.0001 + round % 37 * 0.00002)
                    for _ in range(20):
                        junction.ping()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Alarm:
                hits += 1
            assert junction.ping(timeout=SOON)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert hits > 40
    assert junction.recv(topic, timeout=0, default="nobody") == "nobody"


# Processes.


def run_in_child(work: Callable[[], bool]) -> int:
    """Fork, and return the exit status of a child that says whether `work` went well."""
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            signal.alarm(int(30 * time_factor()))
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_after_a_fork_parent_and_child_each_use_a_connection_of_their_own(proxy: Proxy, topic: str) -> None:
    with skywalker.connect(proxy.address, direct=False) as junction:
        waiting = background(lambda: junction.recv([topic, "parent"], timeout=SOON))
        eventually(lambda: junction.topic([topic, "parent"])["receivers"] == 1, within=SOON)

        def work() -> bool:
            for _ in range(50):
                call = junction.begin("recv", [topic, "child"], timeout=SOON)
                if not junction.send([topic, "child"], "c", timeout=SOON) or call.result() != "c":
                    return False
            junction.close()
            return True

        assert proxy.accepted == 1
        assert run_in_child(work) == 0
        assert proxy.accepted == 2
        assert junction.send([topic, "parent"], "p", timeout=SOON)
        assert waiting.result(SOON * time_factor()) == "p"


def test_a_child_cannot_wait_for_its_parents_calls(junction: skywalker.Client, topic: str) -> None:
    call = junction.begin("recv", topic, timeout=SOON)

    def work() -> bool:
        with pytest.raises(skywalker.Closed, match="process"):
            call.result()
        return junction.ping()

    assert run_in_child(work) == 0
    assert junction.send(topic, 1, timeout=SOON)
    assert call.result() == 1


def test_a_fork_while_another_thread_holds_the_lock_does_not_hang_the_child(junction: skywalker.Client) -> None:
    stop = threading.Event()

    def hammer() -> None:
        while not stop.is_set():
            junction.ping()

    hammering = [background(hammer) for _ in range(3)]
    try:
        assert [run_in_child(lambda: junction.ping(timeout=SOON)) for _ in range(10)] == [0] * 10
    finally:
        stop.set()
    for future in hammering:
        future.result(SOON * time_factor())
