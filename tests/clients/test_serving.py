"""What becomes of a request when its server ends: at the end of its handler, in the middle of it, or by force."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

import skywalker
from skywalker.clients.call import Call
from skywalker.limits import MAX_FRAME
from tests.clients.driving import AioDriver, Driver, Place, background
from tests.clients.scripted import error, framed
from tests.clients.test_calls import T0, begin, ended, make, written
from tests.helpers import eventually, time_factor

SOON = 10.0
LONG = 300.0
"""Seconds that nobody here waits for: who hears something hears it because it was told."""


def result(future: Future[Any]) -> Any:
    return future.result(SOON * time_factor())


class Work:
    """A handler that goes on until it is told to end."""

    def __init__(self, driver: Driver) -> None:
        self.started = threading.Event()
        self.may_end = threading.Event()
        self.handler: Callable[[Any], Any] = self._async if isinstance(driver, AioDriver) else self._plain

    def _plain(self, value: Any) -> Any:
        self.started.set()
        self.may_end.wait()
        return value

    async def _async(self, value: Any) -> Any:
        self.started.set()
        while not self.may_end.is_set():
            await asyncio.sleep(0.01)
        return value


class ListAsKey(dict[Any, Any]):
    """A map whose key is a list, as other languages send it."""

    def items(self) -> Any:
        return [([1], 2)]


class Stop:
    """The event that tells a serve() of either colour to stop."""

    def __init__(self, driver: Driver) -> None:
        self._loop = driver._loop.loop if isinstance(driver, AioDriver) else None
        self.event = threading.Event() if self._loop is None else asyncio.Event()

    def set(self) -> None:
        if self._loop is None:
            self.event.set()
        else:
            self._loop.call_soon_threadsafe(self.event.set)


@pytest.fixture
def server(place: Place) -> Driver:
    return place.join()


@pytest.fixture
def asker(place: Place) -> Driver:
    return place.join()


@pytest.fixture
def work(server: Driver) -> Iterator[Work]:
    work = Work(server)
    yield work
    work.may_end.set()


def serves(junction: Driver, topic: str) -> None:
    eventually(lambda: junction.topic(topic)["takers"] == {"": 1}, within=SOON)


def test_a_server_that_is_told_to_stop_while_it_waits_does(server: Driver, asker: Driver, topic: str) -> None:
    stop = Stop(server)
    serving = background(lambda: server.serve(topic, lambda value: value, stop=stop.event))
    assert asker.request(topic, 1, timeout=LONG) == 1
    serves(asker, topic)
    stop.set()
    assert result(serving) is None
    eventually(lambda: asker.topic(topic)["takers"] == {}, within=SOON)
    assert server.ping()


def test_a_server_that_is_told_to_stop_answers_what_it_has_taken_up_and_nothing_more(
    server: Driver, asker: Driver, topic: str, work: Work
) -> None:
    stop = Stop(server)
    serving = background(lambda: server.serve(topic, work.handler, stop=stop.event))
    asked = background(lambda: asker.request(topic, "first", timeout=LONG))
    assert work.started.wait(SOON * time_factor())
    stop.set()
    work.may_end.set()
    assert result(asked) == "first"
    assert result(serving) is None
    with pytest.raises(skywalker.TimedOut, match="nobody came"):
        asker.request(topic, "second", timeout=0.05)


def test_a_close_that_drains_has_the_answer_delivered(place: Place, topic: str) -> None:
    server = place.join()
    work = Work(server)
    with contextlib.ExitStack() as stack:
        # One in process is one object, which is closed as a whole: what it answers is seen at the handler only.
        is_local = place.join() is server
        asker = server if is_local else stack.enter_context(contextlib.closing(place.join()))
        serving = background(lambda: server.serve(topic, work.handler))
        asked = background(lambda: asker.request(topic, "v", timeout=LONG))
        assert work.started.wait(SOON * time_factor())
        closing = background(lambda: server.close(drain=LONG))
        work.may_end.set()
        assert result(asked) == "v"
        assert result(closing) is None
        assert result(serving) is None
        with pytest.raises(skywalker.Closed):
            server.ping()


def test_a_close_that_drains_waits_no_longer_than_it_may(server: Driver, topic: str, work: Work) -> None:
    serving = background(lambda: server.serve(topic, work.handler))
    call = server.begin("send", topic, {"reply": topic, "timeout": 60_000, "value": 1}, timeout=LONG)
    assert call.result()
    assert work.started.wait(SOON * time_factor())
    began = time.monotonic()
    result(background(lambda: server.close(drain=0.2)))
    assert time.monotonic() - began >= 0.2
    work.may_end.set()
    assert result(serving) is None


def test_a_handler_that_closes_its_junction_does_not_wait_for_itself(place: Place, topic: str) -> None:
    server = place.join()

    def end(value: Any) -> None:
        server.close(drain=LONG)

    async def end_async(value: Any) -> None:
        await server.junction.close(drain=LONG)

    handler = end_async if isinstance(server, AioDriver) else end
    serving = background(lambda: server.serve(topic, handler))
    server.begin("send", topic, {"reply": topic, "timeout": 60_000, "value": 1}, timeout=LONG)
    assert result(serving) is None


def test_a_request_whose_reply_topic_leaves_no_room_for_an_answer_ends_no_serving(
    server: Driver, asker: Driver, topic: str
) -> None:
    serving = background(lambda: server.serve(topic, lambda value: "x" * 100))
    # The request just fits, and even the answer that none does is longer.
    assert asker.send(topic, {"reply": "r" * (MAX_FRAME - 65), "timeout": 1000, "value": 1}, timeout=SOON)
    assert asker.request(topic, 2, timeout=SOON) == "x" * 100
    server.close(drain=SOON)
    assert result(serving) is None


# Without an answer.


def test_what_is_not_answered_in_time_was_taken_up_all_the_same(
    server: Driver, asker: Driver, topic: str, work: Work
) -> None:
    serving = background(lambda: server.serve(topic, work.handler))
    serves(asker, topic)
    with pytest.raises(skywalker.NoReply, match=r"taken up, but not answered within 0\.2 s") as caught:
        asker.request(topic, 1, timeout=0.2)
    assert isinstance(caught.value, skywalker.TimedOut)
    assert topic in str(caught.value)
    assert "nobody came" not in str(caught.value)
    work.may_end.set()
    server.close(drain=SOON)
    result(serving)


@pytest.fixture
def remote(make_place: Callable[..., Place], node: Callable[[int], Any]) -> Place:
    """A place at a node: in process nobody is lost without the others."""
    return make_place(node(2).address)


@pytest.mark.parametrize("options", [{}, {"name": "server", "direct": False}], ids=str)
def test_who_asked_hears_at_once_that_the_server_was_closed(remote: Place, topic: str, options: dict[str, Any]) -> None:
    server, asker = remote.join(**options), remote.join()
    work = Work(server)
    serving = background(lambda: server.serve(topic, work.handler))
    asked = background(lambda: asker.request(topic, 1, timeout=LONG))
    assert work.started.wait(SOON * time_factor())
    server.close()
    with pytest.raises(skywalker.NoReply, match="gone"):
        result(asked)
    work.may_end.set()
    assert result(serving) is None


@pytest.mark.parametrize("ack", [False, True], ids=["without ack", "with ack"])
def test_what_python_cannot_hold_is_dropped_and_ends_no_serving(
    remote: Place, topic: str, caplog: pytest.LogCaptureFixture, ack: bool
) -> None:
    server, asker = remote.join(ack=ack), remote.join()
    serving = background(lambda: server.serve(topic, lambda value: value))
    serves(asker, topic)
    for value in (ListAsKey(x=1), {"reply": "r", "timeout": 1000, "value": ListAsKey(x=1)}):
        assert asker.send(topic, value, timeout=SOON)
    assert asker.request(topic, 1, timeout=SOON) == 1
    assert asker.topic(topic)["senders"] == 0
    assert [record.levelname for record in caplog.records if "dropped" in record.message] == ["WARNING"] * 2
    server.close()
    assert result(serving) is None


def test_who_asked_hears_at_once_that_the_handler_was_interrupted(remote: Place, topic: str) -> None:
    server, asker = remote.join(), remote.join()

    def interrupted(value: Any) -> None:
        raise KeyboardInterrupt

    async def cancelled(value: Any) -> None:
        raise asyncio.CancelledError

    handler = cancelled if isinstance(server, AioDriver) else interrupted
    serving = background(lambda: server.serve(topic, handler))
    with pytest.raises(skywalker.NoReply, match="gone"):
        asker.request(topic, 1, timeout=LONG)
    with pytest.raises((KeyboardInterrupt, CancelledError)):
        result(serving)
    assert server.ping()


# Where the node keeps the will.


KNOWS = {"extensions": ["will"]}


def greet(calls: Any, answer: Any = KNOWS) -> None:
    """Have the node answer the :hello that is under way."""
    calls.receive(calls.main, framed([":hello", calls.main.hello.id, answer]), T0)


def left(calls: Any, now: float = T0) -> Call:
    return begin(calls, "will", "reply", "gone", timeout=60.0, now=now)


def wills(calls: Any) -> list[Any]:
    return [message for message in written(calls) if message[0] in (":will!", ":cancel")]


def test_a_will_is_left_only_with_a_node_that_knows_what_it_is() -> None:
    calls = make(name="n")
    left(calls)
    assert wills(calls) == []
    greet(calls, {"extensions": ["ack"]})
    assert wills(calls) == []
    calls.disconnected("lost", T0)
    calls.connected_to_node(T0)
    greet(calls)
    (will,) = wills(calls)
    assert will[0] == ":will!"
    assert will[3:] == ["reply", "gone"]


def test_a_will_is_left_again_with_the_time_that_is_left_when_the_connection_is_another() -> None:
    calls = make(name="n")
    greet(calls)
    left(calls)
    assert [will[2] for will in wills(calls)] == [60_000]
    calls.disconnected("lost", T0 + 20)
    calls.connected_to_node(T0 + 20)
    assert wills(calls) == []
    calls.receive(calls.main, framed([":hello", calls.main.hello.id, KNOWS]), T0 + 20)
    assert [will[2] for will in wills(calls)] == [40_000]


def test_a_will_is_taken_back_from_a_node_that_drains() -> None:
    calls = make(name="n")
    greet(calls)
    will = left(calls)
    ((_, id, *_),) = wills(calls)
    calls.receive(calls.main, framed([":ring", None, {"version": "1", "leaving": True}]), T0)
    assert [message[2] for message in wills(calls) if message[0] == ":cancel"] == [id]
    calls.receive(calls.main, framed([":will!", id, error("cancelled")]), T0)
    assert will not in ended(calls)
    assert will.line is None


def test_a_will_that_nobody_needs_any_more_is_cancelled() -> None:
    calls = make(name="n")
    greet(calls)
    will = left(calls)
    ((_, id, *_),) = wills(calls)
    calls.abandon(will, T0)
    assert [message[::2] for message in wills(calls)] == [[":cancel", id]]
