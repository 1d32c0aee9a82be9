"""What only threads, processes and signals can do to the blocking client of pub/sub."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import skywalker
from skywalker import pubsub
from skywalker.embedding import Node
from tests.clients.driving import background
from tests.clients.proxy import Proxy
from tests.clients.scripted import ScriptedNode
from tests.clients.test_blocking import run_in_child
from tests.helpers import eventually, time_factor
from tests.pubsub.driving import waiters
from tests.pubsub.scripted import acknowledge

SOON = 10.0

Nodes = Callable[[int], Node]


@pytest.fixture
def broker(node: Nodes) -> Iterator[pubsub.Broker]:
    with pubsub.connect(node(2).pubsub_address) as broker:
        yield broker


def test_no_thread_is_started_and_asyncio_is_not_loaded(node: Nodes) -> None:
    program = f"""
import sys, threading, skywalker
with skywalker.pubsub.connect({node(1).pubsub_address!r}) as broker, broker.subscribe("alone") as messages:
    broker.publish("alone", "1")
    assert messages.get(5).payload == b"1"
    assert threading.active_count() == 1, threading.enumerate()
assert not [name for name in ("asyncio", "click", "workers", "concurrent.futures") if name in sys.modules]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SOON * time_factor())


def test_the_names_are_those_that_are_offered() -> None:
    assert set(dir(pubsub)) == {"Broker", "Message", "Pending", "Subscription", "aio", "connect"}
    assert all(getattr(pubsub, name) is not None for name in pubsub.__all__)
    assert skywalker.pubsub is pubsub
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pubsub.nothing  # noqa: B018


def test_subscribers_come_and_go_while_many_threads_publish(broker: pubsub.Broker, topic: str) -> None:
    stop = threading.Event()

    def publish(number: int) -> None:
        for count in itertools.count():
            if stop.is_set():
                return
            broker.publish(topic, b"%d %d" % (number, count))

    def come_and_go() -> None:
        for _ in range(20):
            with broker.subscribe(topic) as messages:
                seen: dict[int, int] = {}
                for _ in range(30):
                    number, count = map(int, messages.get(SOON).payload.split())
                    assert seen.get(number, count - 1) == count - 1  # nothing is missed in between
                    seen[number] = count

    publishing = [background(lambda n=number: publish(n)) for number in range(6)]
    try:
        for each in [background(come_and_go) for _ in range(3)]:
            each.result(60 * time_factor())
    finally:
        stop.set()
    for each in publishing:
        each.result(SOON * time_factor())


def test_a_callback_that_takes_long_holds_up_no_other_thread(node: Nodes, proxy: Proxy, topic: str) -> None:
    called, go_on = threading.Event(), threading.Event()

    def on_gap(_: str) -> None:
        called.set()
        go_on.wait(SOON * time_factor())

    with (
        pubsub.connect(proxy.address) as behind,
        pubsub.connect(node(2).pubsub_address) as beside,
        behind.subscribe(topic, on_gap=on_gap) as messages,
    ):
        waiting = [background(lambda: messages.get(SOON)) for _ in range(2)]
        eventually(lambda: waiters(messages) == 2)
        proxy.cut()
        assert called.wait(SOON * time_factor())
        beside.publish(topic, b"1")
        eventually(lambda: any(each.done() for each in waiting))
        go_on.set()
        beside.publish(topic, b"2")
        assert {each.result(SOON * time_factor()).payload for each in waiting} == {b"1", b"2"}


# What the kernel has no room for.


def test_a_node_that_does_not_read_keeps_a_publisher_waiting_and_no_more_in_memory(scripted: ScriptedNode) -> None:
    with pubsub.connect(scripted.address) as broker:
        connection = scripted.next_connection()
        begun = []
        deadline = time.monotonic() + SOON * time_factor()
        while not begun or not begun[-1].ended:
            assert time.monotonic() < deadline
            begun.append(broker.begin("t", bytes(60_000), timeout=0.5))
        with pytest.raises(skywalker.TimedOut):
            begun[-1].result()
        unsent = broker._driver._main.unsent  # type: ignore[union-attr]
        assert len(unsent) < 2 * 60_000
        reading = background(lambda: acknowledge(connection, len(begun) + 1))
        broker.publish("t", b"last", timeout=SOON)
        assert reading.result(SOON * time_factor())[-1][3] == b"last"


# Interruption.


def test_an_interrupt_ends_the_waiting_and_leaves_a_subscription_that_works(broker: pubsub.Broker, topic: str) -> None:
    with broker.subscribe(topic) as messages:

        def interrupt() -> None:
            eventually(lambda: waiters(messages) == 1)
            os.kill(os.getpid(), signal.SIGINT)

        interrupting = background(interrupt)
        with pytest.raises(KeyboardInterrupt):
            messages.get(60.0)
        interrupting.result(SOON * time_factor())
        # Until it is next used it may not have noticed that it lost its connection over this.
        with pytest.raises(skywalker.TimedOut):
            messages.get(0.5)
        broker.publish(topic, b"1")
        assert messages.get(SOON).payload == b"1"


def test_an_interrupt_while_topics_do_not_fit_into_the_kernel_withdraws_them_all(scripted: ScriptedNode) -> None:
    with pubsub.connect(scripted.address) as broker:
        scripted.next_connection()
        messages = broker.subscribe()
        scripted.next_connection()  # which reads nothing

        def interrupt() -> None:
            eventually(lambda: messages._driver._clogged, within=SOON)
            os.kill(os.getpid(), signal.SIGINT)

        interrupting = background(interrupt)
        began = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            messages.subscribe(*(b"%0255d" % number for number in range(24_000)), timeout=60.0)
        interrupting.result(SOON * time_factor())
        # Each withdrawal waits behind megabytes, which are not copied for it.
        assert time.process_time() - began < 4.0 * time_factor()
        assert messages.topics == frozenset()
        assert not messages._exchange.busy


# A socket that an exception hits between being made and being kept is closed by the garbage collector, which warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_moment_leave_a_client_that_works(broker: pubsub.Broker, topic: str) -> None:
    """A timer fires again and again at odd times; whatever it hits, what is published next must arrive."""

    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    old = signal.signal(signal.SIGALRM, ring)
    hits = 0
    try:
        with broker.subscribe(topic) as messages:
            for round in range(80):
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0.0001 + round % 37 * 0.00002)
                        for _ in range(20):
                            broker.publish(topic, b"")
                            messages.get(SOON)
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except Alarm:
                    hits += 1
                messages.subscribe(topic, timeout=SOON)  # which brings a new connection if the one before is lost
                broker.publish(topic, b"%d" % round, timeout=SOON)
                while messages.get(SOON).payload != b"%d" % round:
                    pass
    finally:
        signal.signal(signal.SIGALRM, old)
    assert hits > 25


# Processes.


def test_the_child_of_a_fork_is_told_to_connect_anew_and_harms_nothing(
    broker: pubsub.Broker, node: Nodes, topic: str
) -> None:
    with broker.subscribe(topic) as messages:
        begun = broker.begin(topic, b"before")

        def work() -> bool:
            for use in (
                lambda: broker.publish(topic, b"child"),
                lambda: broker.subscribe(topic),
                lambda: messages.get(1.0),
                lambda: messages.unsubscribe(topic),
                begun.result,
            ):
                try:
                    use()
                except skywalker.Closed as error:
                    if "connect anew" not in str(error):
                        return False
                else:
                    return False
            messages.close()
            broker.close()
            with pubsub.connect(node(2).pubsub_address) as own:
                own.publish(topic, b"child")
            return True

        assert run_in_child(work) == 0
        begun.result()
        broker.publish(topic, b"after")
        assert [messages.get(SOON).payload for _ in range(3)] == [b"before", b"child", b"after"]
        assert messages.gaps == 0


def test_signals_that_keep_coming_do_not_put_off_a_timeout(broker: pubsub.Broker) -> None:
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with broker.subscribe("silent") as messages:
            began = time.monotonic()
            with pytest.raises(skywalker.TimedOut):
                messages.get(0.5)
            assert time.monotonic() - began < 1.5 * time_factor()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupt_while_nothing_comes_costs_a_subscription_nothing(broker: pubsub.Broker) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with broker.subscribe("quiet") as messages:
            for _ in range(5):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with pytest.raises(KeyboardInterrupt):
                    messages.get(SOON)
            broker.publish("quiet", "still here")
            assert messages.get(SOON).payload == b"still here"
            assert messages.gaps == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("where", ["", " "])
def test_no_address_is_not_the_usual_one(where: str) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="there is no address"):
        pubsub.connect(where)
