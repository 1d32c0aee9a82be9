"""The blocking face: what threads, signals and handlers that block do to it."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
import warnings
from typing import Any

import psutil
import pytest

from skywalker import silk
from skywalker.errors import (
    Closed,
    HandlerFailed,
    NoReply,
    NotJoined,
)
from skywalker.silk import blocking
from tests.clients.driving import background
from tests.helpers import eventually, time_factor
from tests.silk.driving import insist, keepalive

REAL = True
"""What only real sockets, threads or clocks show."""

NOWHERE = "tcp://127.0.0.1:9"


@pytest.fixture
def other(closing: contextlib.ExitStack, node: blocking.Node) -> blocking.Node:
    """A second member."""
    other = closing.enter_context(blocking.Node(name="other", keepalive=keepalive()))
    other.join(node.info.router)
    return other


def stuck_until(event: threading.Event) -> Any:
    def stuck(data: Any) -> Any:
        assert event.wait(20 * time_factor())
        return data

    return stuck


def knows(node: blocking.Node, other: blocking.Node, type: str) -> None:
    eventually(lambda: type in node.members[other.id].messages)


def test_it_does_all_that_the_other_face_does(node: blocking.Node, other: blocking.Node) -> None:
    came: list[Any] = []

    @other.handle("double", attempts=2, period=0.5)
    def double(data: Any) -> Any:
        return 2 * data

    other.handle("note", came.append)
    knows(node, other, "note")
    assert node.members == {other.id: other.info}
    assert node.members[other.id].messages["double"] == silk.Handling(2, 0.5)
    assert node.request(other.id, "double", 4) == 8
    assert node.request_any("double", "ab") == "abab"
    assert [(reply.node.id, reply.data, reply.error) for reply in node.request_all("double", 1)] == [
        (other.id, 2, None)
    ]
    node.tell(other.id, "note", 1)
    node.tell_any("note", 2)
    insist(lambda: node.broadcast("note", 3), until=lambda: 3 in came)
    eventually(lambda: [each for each in came if each < 3] == [1, 2])  # a broadcast has a way of its own
    assert double(1) == 2
    node.leave()
    with pytest.raises(NotJoined):
        node.request_any("double")
    node.join(other.info.router)
    assert node.request_any("double", 1) == 2
    assert node.dropped == 0


def test_handlers_may_block_and_run_side_by_side(node: blocking.Node, other: blocking.Node) -> None:
    together = threading.Barrier(10)

    def meet(data: Any) -> int:
        return together.wait(10 * time_factor())

    other.handle("meet", meet, period=20)
    knows(node, other, "meet")
    calls = [background(lambda: node.request_any("meet")) for _ in range(10)]
    assert sorted(call.result() for call in calls) == [*range(10)]


def test_a_handler_may_ask_others(node: blocking.Node, other: blocking.Node) -> None:
    node.handle("name", lambda data: "node")
    other.handle("ask", lambda data: [reply.data for reply in other.request_all("name")], period=10)
    knows(other, node, "name")
    knows(node, other, "ask")
    assert node.request_any("ask") == ["node"]


@pytest.mark.parametrize("waiting", ["request", "request_all", "join", "events"])
def test_an_interrupt_ends_what_waits_and_the_node_can_be_used_on(
    node: blocking.Node, other: blocking.Node, waiting: str
) -> None:
    go_on = threading.Event()
    other.handle("stuck", stuck_until(go_on), attempts=1, period=30)
    other.handle("echo", lambda data: data)
    knows(node, other, "echo")
    events = node.events()
    calls = {
        "request": lambda: node.request(other.id, "stuck"),
        "request_all": lambda: next(node.request_all("stuck")),
        "join": lambda: node.join(NOWHERE, timeout=30),
        "events": events.next,
    }
    main = threading.get_ident()
    for _ in range(3):
        timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            calls[waiting]()
        timer.join()
    go_on.set()
    assert node.request(other.id, "echo", "still") == "still"
    other.leave()
    told = events.next(5)
    assert told is not None
    assert type(told).__name__ == "Left"


def test_events_wait_as_long_as_they_are_told_to(node: blocking.Node, other: blocking.Node) -> None:
    events = node.events()
    began_at = time.monotonic()
    with pytest.raises(TimeoutError):
        events.next(0.1)
    assert 0.09 < time.monotonic() - began_at < 2 * time_factor()
    with pytest.raises(TimeoutError):
        events.next(0)
    other.leave()
    assert type(events.next(5)).__name__ == "Left"
    events.close()
    assert events.next() is None
    assert [*events] == []
    events.close()


def test_who_waits_for_events_is_told_when_there_will_be_no_more(closing: contextlib.ExitStack) -> None:
    node = closing.enter_context(blocking.Node())
    closed_soon, closed_later = node.events(), node.events()
    first, second = background(closed_soon.next), background(lambda: [*closed_later])
    time.sleep(0.05)
    closed_soon.close()
    assert first.result() is None
    assert not second.done()
    node.close()
    assert second.result() == []
    assert [*closed_later] == []
    closed_later.close()
    with pytest.raises(Closed):
        node.events()


def test_all_that_waits_ends_with_closed_when_the_node_is_closed(node: blocking.Node, other: blocking.Node) -> None:
    go_on = threading.Event()
    other.handle("stuck", stuck_until(go_on), attempts=1, period=60)
    knows(node, other, "stuck")
    calls = [
        background(lambda: node.request(other.id, "stuck")),
        background(lambda: node.request_any("stuck")),
        background(lambda: node.join(NOWHERE, timeout=60)),
    ]
    replies = background(lambda: next(node.request_all("stuck")))
    half_read = node.request_all("stuck")
    time.sleep(0.1)
    for closing in [background(node.close) for _ in range(4)]:
        assert closing.result() is None
    for call in calls:
        with pytest.raises(Closed):
            call.result()
    assert isinstance(replies.result().error, Closed)
    half_read.close()
    for use in (
        lambda: node.members,
        lambda: node.request(other.id, "stuck"),
        node.leave,
        lambda: node.handle("x", print),
    ):
        with pytest.raises(Closed, match="the node was closed"):
            use()
    node.close()
    go_on.set()


def test_closing_amid_calls_of_many_threads_leaves_none_of_them_hanging() -> None:
    for _ in range(5):
        with blocking.Node() as other, blocking.Node() as node:
            other.handle("echo", lambda data: data, attempts=1, period=30)
            node.join(other.info.router)

            def ask_on(node: blocking.Node = node) -> None:
                while True:
                    node.request_any("echo")
                    assert node.members

            calls = [background(ask_on) for _ in range(6)]
            time.sleep(0.1)
            node.close()
            for call in calls:
                with pytest.raises(Closed):
                    call.result()


def test_a_handler_that_runs_is_waited_for_at_the_end() -> None:
    ended: list[str] = []

    def slow(data: Any) -> None:
        time.sleep(0.3)
        ended.append(data)

    with blocking.Node() as asker:
        with blocking.Node() as node:
            node.handle("slow", slow, attempts=1)
            node.join(asker.info.router)
            call = background(lambda: asker.request(node.id, "slow", "x"))
            time.sleep(0.1)
        assert ended == ["x"]
        with pytest.raises(NoReply):
            call.result()


def test_a_node_that_was_never_opened_has_nothing_to_close() -> None:
    descriptors = psutil.Process().num_fds()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        node = blocking.Node()
        node.handle("echo", lambda data: data)
        with pytest.raises(Closed, match="not open"):
            node.join(NOWHERE)
        assert psutil.Process().num_fds() == descriptors
        del node
        gc.collect()
    node = blocking.Node()
    node.close()
    node.close()
    with pytest.raises(Closed):
        node.open()


def test_nodes_leave_neither_threads_nor_descriptors_behind() -> None:
    def once() -> None:
        with blocking.Node(keys=silk.Keys.generate()) as keyed, blocking.Node() as one, blocking.Node() as other:
            one.handle("echo", lambda data: data)
            other.join(one.info.router)
            assert other.request_any("echo", 1) == 1
            assert keyed.members == {}

    once()
    process = psutil.Process()
    fds, threads = process.num_fds(), process.num_threads()
    for _ in range(5):
        once()
    eventually(lambda: process.num_fds() <= fds and process.num_threads() <= threads)


@pytest.mark.parametrize("ending", [SystemExit(3), StopIteration(), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_a_handler_cannot_end_the_thread_of_its_node(
    node: blocking.Node, other: blocking.Node, ending: BaseException
) -> None:
    def end(data: Any) -> Any:
        raise ending

    other.handle("end", end)
    other.handle("echo", lambda data: data)
    knows(node, other, "echo")
    with pytest.raises(HandlerFailed, match=type(ending).__name__):
        node.request(other.id, "end")
    assert node.request(other.id, "echo", 1) == 1
