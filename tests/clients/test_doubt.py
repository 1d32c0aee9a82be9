"""Sends whose outcome a client cannot know: it says so, and calls none of them taken or missed."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

import skywalker
from skywalker import errors
from skywalker.clients.blocking import connection as blocking
from skywalker.clients.call import GRACE_S, LOST_CONNECTION, Call
from skywalker.limits import MIB
from tests.clients.driving import Place, background
from tests.clients.scripted import TIMED_OUT, Connection, ScriptedNode, error, framed
from tests.clients.test_calls import T0, begin, connect, make, written
from tests.helpers import time_factor

MakePlace = Callable[..., Place]

SOON = 10.0

SENT_BYTES = 4 * MIB
"""More than a socket takes at once."""


def in_doubt(**changes: Any) -> tuple[Any, Call]:
    """Return calls with one send, whose connection was lost after it was written."""
    calls = make(**changes)
    call = begin(calls, "send", "t", "v", timeout=10)
    calls.main.output()
    calls.disconnected("cut", T0)
    return calls, call


def why(call: Call) -> tuple[str, type[BaseException] | None]:
    """Return why the outcome of a send is unknown, and with what it would have ended otherwise."""
    assert isinstance(call.error, errors.OutcomeUnknown)
    assert call.error.code == "unknown-outcome"
    cause = call.error.__cause__
    return call.error.details["why"], None if cause is None else type(cause)


# The core.


@pytest.mark.parametrize(
    ("result", "cause"),
    [(TIMED_OUT, errors.TimedOut), (error("busy"), errors.Busy), (error("moved"), errors.RequestError)],
)
def test_a_send_that_is_made_again_and_not_taken_then_is_unknown(result: Any, cause: type[Exception]) -> None:
    calls, call = in_doubt()
    connect(calls, T0 + 1)
    assert written(calls) == [[":send!", call.id, 9000, "t", "v"]]
    calls.receive(calls.main, framed([":send!", call.id, result]), T0 + 2)
    assert why(call) == (LOST_CONNECTION, cause)
    assert "'t'" in str(call.error)


def test_what_the_node_says_of_its_own_doubt_is_told_as_it_is() -> None:
    for calls, call in (in_doubt(), (again := make(), begin(again, "send", "t", 1))):
        if not calls.is_connected:
            connect(calls)
        said = error("unknown-outcome", "who knows", {"why": "silent-owner"})
        calls.receive(calls.main, framed([":send!", call.id, said]), T0)
        assert why(call) == ("silent-owner", None)
        assert str(call.error) == "who knows"


def test_one_without_a_connection_until_its_time_is_over_is_unknown() -> None:
    calls, call = in_doubt()
    calls.disconnected("connection refused", T0)
    calls.tick(T0 + 11 + GRACE_S)
    assert why(call) == (LOST_CONNECTION, errors.Unreachable)
    assert "connection refused" in str(call.error)


def test_one_that_was_not_written_when_its_connection_was_lost_is_not_in_doubt() -> None:
    calls = make()
    first = begin(calls, "send", "t", "first")
    calls.main.output()
    second = begin(calls, "send", "t", "second")
    third = begin(calls, "send", "t", "third")
    data = calls.main.output()
    calls.main.unwritten = len(data) - 1  # of the second, one byte has left
    fourth = begin(calls, "send", "t", "fourth")  # and the driver has not even looked at this
    calls.disconnected("cut", T0)
    connect(calls)
    answers = (framed([":send!", call.id, TIMED_OUT]) for call in (first, second, third, fourth))
    calls.receive(calls.main, b"".join(answers), T0)
    assert why(first) == why(second) == (LOST_CONNECTION, errors.TimedOut)
    assert type(third.error) is type(fourth.error) is errors.TimedOut


def test_what_a_node_that_drains_gives_back_is_not_in_doubt_and_what_it_does_not_is() -> None:
    calls = make()
    refused, cancelled, lost = [begin(calls, "send", "t", n, timeout=10) for n in range(3)]
    calls.main.output()
    calls.receive(calls.main, framed([":send!", refused.id, error("draining")]), T0)
    calls.receive(calls.main, framed([":send!", cancelled.id, error("cancelled")]), T0)
    calls.disconnected("cut", T0)
    connect(calls)
    calls.receive(
        calls.main, b"".join(framed([":send!", call.id, TIMED_OUT]) for call in (refused, cancelled, lost)), T0
    )
    assert type(refused.error) is type(cancelled.error) is errors.TimedOut
    assert why(lost) == (LOST_CONNECTION, errors.TimedOut)


def test_one_that_is_cancelled_in_doubt_is_unknown_and_not_cancelled() -> None:
    canceller = Call()
    calls, call = in_doubt()
    calls.cancel(call, canceller, 10, T0)  # without a connection
    assert (why(call), canceller.value) == ((LOST_CONNECTION, errors.Cancelled), False)

    calls, call = in_doubt()
    connect(calls)
    canceller = Call()
    calls.cancel(call, canceller, 10, T0)
    calls.receive(calls.main, framed([":send!", call.id, error("cancelled")]), T0)  # by the second node
    assert (why(call), canceller.value) == ((LOST_CONNECTION, errors.Cancelled), False)

    calls = make()
    call, canceller = begin(calls, "send", "t", 1), Call()
    calls.main.output()
    calls.cancel(call, canceller, 10, T0)
    calls.disconnected("cut", T0)  # with the :cancel
    assert (why(call), canceller.value) == ((LOST_CONNECTION, errors.Cancelled), False)


# With sockets.


def test_a_connection_knows_how_much_never_left() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with contextlib.closing(ours):
        with contextlib.closing(theirs):
            theirs.setblocking(False)
            connection = blocking.Connection(ours)
            connection.write(bytes(SENT_BYTES))
            came = 0
            with contextlib.suppress(BlockingIOError):
                while data := theirs.recv(SENT_BYTES):
                    came += len(data)
            assert 0 < connection.unwritten == SENT_BYTES - came
        connection.write(b"more")  # which ends it
        assert connection.unwritten == SENT_BYTES - came + len(b"more")


def take_send(connection: Connection) -> None:
    """Answer the send! that comes over it with true."""
    while (call := connection.read())[0] != ":send!":
        pass
    connection.write([":send!", call[1], True])


def test_a_line_whose_connection_took_nothing_any_more_leaves_no_doubt(scripted: ScriptedNode) -> None:
    with skywalker.connect(scripted.address, resend=False) as junction:
        first = scripted.next_connection()
        assert junction._driver._main is not None
        junction._driver._main.shut()  # so that what is written next is refused
        sent = background(lambda: junction.send("t", "v", timeout=SOON))
        take_send(scripted.next_connection())
        assert sent.result(SOON * time_factor()) is True
        first.close()


@pytest.mark.parametrize("unread", [0, 40_000], ids=["nothing unread", "pings unread"])
def test_a_blocking_client_knows_that_its_connection_has_ended_before_it_sends(
    scripted: ScriptedNode, unread: int
) -> None:
    with skywalker.connect(scripted.address, resend=False) as junction:
        first = scripted.next_connection()
        first.write_bytes(unread * framed([":ping", 7]))  # more than one read takes
        first.close()
        time.sleep(0.1)  # for all that to come, and the end after it
        sent = background(lambda: junction.send("t", "v", timeout=SOON))
        take_send(scripted.next_connection())
        assert sent.result(SOON * time_factor()) is True


def lost(scripted: ScriptedNode, wanted: str) -> Connection:
    """Return the next connection, once the last was lost after a call of this method had come over it."""
    first = scripted.next_connection()
    while first.read()[0] != wanted:
        pass
    first.close()
    return scripted.next_connection()


def test_a_send_whose_connection_is_lost_is_made_again_and_then_unknown_whatever_its_default(
    make_place: MakePlace, scripted: ScriptedNode
) -> None:
    junction = make_place(scripted.address).join()
    sent = background(lambda: junction.send("t", "v", timeout=SOON, default=False))
    second = lost(scripted, ":send!")
    method, id, *_ = second.read()
    assert method == ":send!"
    second.write([method, id, TIMED_OUT])
    with pytest.raises(skywalker.OutcomeUnknown, match="lost") as caught:
        sent.result(SOON * time_factor())
    assert not isinstance(caught.value, TimeoutError)


def request_in_doubt(make_place: MakePlace, scripted: ScriptedNode) -> tuple[Any, Connection, dict[str, Any]]:
    """Return a request that was lost with its connection, and then not taken; the calls that it makes, by method."""
    junction = make_place(scripted.address).join()
    asked = background(lambda: junction.request("square", 7, timeout=0.4 * time_factor()))
    second = lost(scripted, ":send!")
    made: dict[str, Any] = {}
    while len(made) < 2:
        method, id, *_ = second.read()
        made[method] = id
    second.write([":send!", made[":send!"], TIMED_OUT])
    return asked, second, made


def test_a_request_that_may_have_been_taken_gets_its_answer(make_place: MakePlace, scripted: ScriptedNode) -> None:
    asked, node, made = request_in_doubt(make_place, scripted)
    node.write([":recv!", made[":recv!"], {"value": 49}])
    assert asked.result(SOON * time_factor()) == 49


def test_one_that_was_taken_is_not_told_as_one_that_reached_no_node(make_place: MakePlace) -> None:
    with ScriptedNode() as node:
        junction = make_place(node.address).join()
        asked = background(lambda: junction.request("square", 7, timeout=0.4 * time_factor()))
        take_send(node.next_connection())
    with pytest.raises(skywalker.NoReply, match="no node reachable") as caught:
        asked.result(SOON * time_factor())
    assert isinstance(caught.value.__cause__, skywalker.Unreachable)


@pytest.mark.parametrize("answers", [True, False])
def test_and_without_one_it_is_not_known_whether_it_was_handled(
    make_place: MakePlace, scripted: ScriptedNode, answers: bool
) -> None:
    asked, node, made = request_in_doubt(make_place, scripted)
    if answers:
        node.write([":recv!", made[":recv!"], TIMED_OUT])
    with pytest.raises(skywalker.NoReply, match="not known whether") as caught:
        asked.result(SOON * time_factor())
    assert isinstance(caught.value.__cause__, skywalker.OutcomeUnknown)
