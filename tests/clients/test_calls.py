"""The pure core of the clients: frames out, bytes in, outcomes; with a clock that the test turns."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker import errors
from skywalker.clients.call import GRACE_S, Call
from skywalker.clients.calls import MUTE_TRIES, Calls
from skywalker.clients.line import HELLO_S
from skywalker.clients.requests import Kind
from skywalker.clients.settings import CLOJURE_KEYWORD, Settings
from skywalker.clients.stream import PROBE_S
from skywalker.clients.survey import Pages
from skywalker.wire.junction import CLOJURE_TIMED_OUT
from tests.clients.scripted import TIMED_OUT, error, framed
from tests.wire.streams import cut, decode_pieces

T0 = 1000.0
GREETING = [":hello", 1, {"ring": True}]


def settings(where: str = "node:1234", **changes: Any) -> Settings:
    """Return what connect() makes of these arguments."""
    arguments = {
        "dialect": "current", "timeout_value": CLOJURE_KEYWORD, "name": None, "ack": False, "token": None,
        "max_frame": 65535, "direct": True,
    }  # fmt: skip
    return Settings.of(where, **{**arguments, **changes})


def make(connected: bool = True, **changes: Any) -> Calls:
    calls = Calls(settings(**changes))
    if connected:
        connect(calls)
    return calls


def connect(calls: Calls, now: float = T0) -> None:
    """Connect to a node, an original one which answers a bare :hello with nil, and forget that this was said."""
    was_busy = calls.busy
    calls.connected_to_node(now)
    if calls.main.hello is not None and calls._settings.hello is None:
        calls.receive(calls.main, framed([":hello", calls.main.hello.id, None]), now)
        calls.ended.remove(calls.main.hello)
        if not was_busy:
            calls.main.output()


def begin(calls: Calls, kind: Kind, *arguments: Any, timeout: float = 1.0, now: float = T0) -> Call:
    call = Call()
    calls.begin(call, kind, arguments, timeout, now)
    return call


def written(calls: Calls) -> list[Any]:
    """Return the messages that are to be written, but for a bare :hello."""
    return [message for message in all_written(calls) if message[::2] != GREETING[::2]]


def all_written(calls: Calls) -> list[Any]:
    """Return the messages that are to be written."""

    def decode(data: bytes) -> tuple[list[Any], bytes]:
        messages = []
        while len(data) >= 2 and len(data) >= 2 + int.from_bytes(data[:2], "big"):
            end = 2 + int.from_bytes(data[:2], "big")
            messages.append(msgpack.unpackb(data[2:end], strict_map_key=False))
            data = data[end:]
        return messages, data

    messages, rest = decode_pieces(decode, [calls.main.output()])
    assert rest == b""
    return messages


def ended(calls: Calls) -> list[Call]:
    """Return the calls that have ended since the last time."""
    found = list(calls.ended)
    calls.ended.clear()
    return found


# Frames out.


def test_calls_leave_in_order_with_ids_of_their_own() -> None:
    calls = make()
    begin(calls, "recv", "foo", timeout=1)
    begin(calls, "send", "foo", "bar", timeout=0.0005)
    begin(calls, "take", "foo", "g", timeout=86_400)
    begin(calls, "tokens")
    assert written(calls) == [
        [":recv!", 2, 1000, "foo"],
        [":send!", 3, 1, "foo", "bar"],
        [":take!", 4, 86_400_000, "foo", "g"],
        [":tokens", 5],
    ]
    assert calls.main.output() == b""


def test_the_bytes_are_those_of_the_published_example() -> None:
    first = make(dialect="first", timeout_value="timeout")
    begin(first, "recv", "foo", timeout=1)
    # The id is this client's own: 2 where the example has 33.
    assert first.main.output().hex() == "001895a63a72656376 2102cd03e8a774696d656f7574a3666f6f".replace(" ", "")


def test_a_refused_call_leaves_nothing_behind() -> None:
    calls = make(max_frame=100)
    with pytest.raises(errors.TooLarge, match="limit is 100"):
        begin(calls, "send", "foo", "x" * 100)
    with pytest.raises(errors.LocalProtocolError):
        begin(calls, "send", "foo", object())
    assert not calls.busy
    assert calls.main.output() == b""
    assert calls.wait(T0) is None
    begin(calls, "send", "foo", "x")
    assert written(calls) == [[":send!", 2, 1000, "foo", "x"]]


# Bytes in.


RESULTS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 300), st.text(max_size=300), st.binary(max_size=300),
    st.just(TIMED_OUT), st.just(error("busy")), st.just(msgpack.ExtType(0x45, b"no error")),
    st.lists(st.integers(-9, 9)),
)  # fmt: skip


@given(st.data())
def test_outcomes_do_not_depend_on_how_the_stream_was_cut(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    replies = []
    for _ in range(data.draw(st.integers(0, 12))):
        # Some ids are of no call, some of one that was answered before.
        id = data.draw(st.one_of(st.integers(0, count + 2), st.booleans(), st.none(), st.just([1])))
        replies.append(framed([":recv!", id, data.draw(RESULTS)]))
        if data.draw(st.integers(0, 5)) == 0:
            replies.append(framed([":ping", 7]))
    stream = b"".join(replies)
    outcomes = []
    for pieces in (
        [stream],
        cut(stream, range(1, len(stream))),
        cut(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=10))),
    ):
        calls = make()
        begun = [begin(calls, "recv", number) for number in range(count)]
        calls.main.output()
        for piece in pieces:
            calls.receive(calls.main, piece, T0)
        order = [call.id for call in ended(calls)]
        state = [(call.ended, call.value, repr(call.error)) for call in begun]
        outcomes.append((order, state, calls.main.hang_up, calls.main.output()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_any_bytes_at_all_raise_nothing_and_end_no_call_twice(pieces: list[bytes]) -> None:
    calls = make()
    begun = [begin(calls, "recv", number) for number in range(4)]
    for piece in pieces:
        calls.receive(calls.main, piece, T0)
        calls.receive(calls.main, len(piece).to_bytes(2, "big") + piece, T0)
    found = [call.id for call in ended(calls)]
    assert len(found) == len(set(found))
    calls.disconnected("test", T0)
    calls.close(errors.Closed("test"))
    assert sorted(found + [call.id for call in ended(calls)]) == [call.id for call in begun]


@pytest.mark.parametrize("id", [True, 1.0, "1", [1], None, {"a": 1}])
def test_an_id_that_merely_equals_ours_is_not_ours(id: Any) -> None:
    calls = make()
    call = begin(calls, "recv", "foo")
    calls.receive(calls.main, framed([":recv!", id, "for somebody else"]), T0)
    assert not call.ended
    assert not calls.main.hang_up


@pytest.mark.parametrize("message", [None, 7, "text", {}, [], [":recv!"], [":recv!", 1], [1, 2, 3, 4]])
def test_what_is_no_reply_ends_the_connection_and_says_what_it_was(message: Any) -> None:
    calls = make()
    before, after = begin(calls, "recv", "before"), begin(calls, "recv", "after")
    stream = framed([":recv!", before.id, 1]) + framed(message) + framed([":recv!", after.id, 2])
    calls.receive(calls.main, stream, T0)
    assert before.value == 1
    assert not after.ended
    assert repr(message) in calls.main.hang_up


def test_what_is_nested_deeper_than_python_can_tell_ends_the_connection_and_the_survey() -> None:
    deep = b"\x91" * 1000 + b"\xc0"
    calls = make()
    calls.receive(calls.main, len(deep).to_bytes(2, "big") + deep, T0)
    assert "[[[[" in calls.main.hang_up
    with pytest.raises(errors.RemoteProtocolError):
        Pages().add(msgpack.unpackb(deep))


def test_a_frame_that_is_no_messagepack_ends_the_connection() -> None:
    calls = make()
    begin(calls, "recv", "foo")
    calls.receive(calls.main, b"\0\1\xc1", T0)
    assert "no MessagePack" in calls.main.hang_up


@pytest.mark.parametrize("code", sorted(set(errors.BY_CODE) - {"draining"}))
def test_an_error_is_raised_as_the_class_of_its_code(code: str) -> None:
    calls = make()
    call = begin(calls, "send", "foo", 1)
    calls.receive(calls.main, framed([":send!", call.id, error(code, "the reason", {"limit": 5})]), T0)
    assert type(call.error) is errors.BY_CODE[code]
    assert str(call.error) == "the reason"
    assert isinstance(call.error, errors.RequestError)
    assert call.error.details == {"limit": 5}


def test_a_ping_of_the_node_is_answered_with_its_own_id() -> None:
    calls = make()
    for id in (7, "x", None, [1]):
        calls.receive(calls.main, framed([":ping", id]), T0)
        assert written(calls) == [[":ping", id, True]]


# The first dialect.


def test_in_the_first_dialect_the_callers_own_value_means_timed_out() -> None:
    calls = make(dialect="first")
    call = begin(calls, "recv", "foo")
    assert CLOJURE_TIMED_OUT in calls.main.output()
    calls.receive(calls.main, framed([":recv!", call.id, CLOJURE_KEYWORD]), T0)
    assert isinstance(call.error, errors.TimedOut)


def test_in_the_first_dialect_equal_in_python_is_not_equal() -> None:
    calls = make(dialect="first", timeout_value=1)
    values = [True, 1.0, TIMED_OUT]
    begun = [begin(calls, "recv", "foo") for _ in values]
    for call, value in zip(begun, values, strict=True):
        calls.receive(calls.main, framed([":recv!", call.id, value]), T0)
    assert [repr(call.value) for call in begun] == [repr(value) for value in values]
    # A reply that is encoded at length is the same value.
    call = begin(calls, "recv", "foo")
    calls.receive(calls.main, b"\0\x0b\x93\xa6:recv!" + bytes([call.id]) + b"\xcc\x01", T0)
    assert isinstance(call.error, errors.TimedOut)


def test_in_the_first_dialect_the_timeout_value_cannot_be_sent() -> None:
    calls = make(dialect="first", timeout_value=0)
    with pytest.raises(errors.LocalProtocolError, match="timeout value"):
        begin(calls, "send", "foo", 0)
    begin(calls, "send", "foo", False)
    begin(calls, "send", "foo", 0.0)
    assert len(written(calls)) == 2


# Time.


def test_the_nodes_word_decides_until_the_grace_is_over() -> None:
    calls = make()
    call = begin(calls, "recv", "foo", timeout=1)
    calls.main.output()
    calls.tick(T0 + 1 + GRACE_S - 0.001)
    assert not call.ended
    calls.tick(T0 + 1 + GRACE_S + 0.02)
    assert isinstance(call.error, errors.TimedOut)
    [(method, _, target)] = written(calls)
    assert (method, target) == (":cancel", call.id)
    # The late reply, and the answer to the cancel, find nobody.
    calls.receive(calls.main, framed([":recv!", call.id, "late"]) + framed([":cancel", 2, False]), T0 + 2)
    assert ended(calls) == [call]
    assert not calls.main.hang_up


# Connections, one after another.


def test_a_new_connection_gets_the_calls_in_order_with_the_time_that_is_left() -> None:
    calls = make()
    first = begin(calls, "recv", "a", timeout=10)
    second = begin(calls, "send", "b", "v", timeout=1.75)  # which has half a second more
    third = begin(calls, "tokens", timeout=10)
    calls.main.output()
    calls.disconnected("cut", T0)
    assert calls.main.output() == b""
    assert not first.ended
    fourth = begin(calls, "take", "c", "g", timeout=3, now=T0 + 1)
    assert calls.main.output() == b""
    connect(calls, T0 + 2)
    assert written(calls) == [
        [":recv!", first.id, 8000, "a"],
        [":send!", second.id, 0, "b", "v"],
        [":tokens", third.id],
        [":take!", fourth.id, 2000, "c", "g"],
    ]


def test_without_a_connection_at_the_end_of_its_time_a_call_tells_where_and_why() -> None:
    calls = make(connected=False)
    call = begin(calls, "recv", "a", timeout=1)
    calls.disconnected("connection refused", T0)
    calls.tick(T0 + 2)
    assert isinstance(call.error, errors.Unreachable)
    assert "node:1234" in str(call.error)
    assert "connection refused" in str(call.error)


def test_a_call_whose_time_is_long_over_as_a_connection_comes_is_not_given_to_it() -> None:
    calls = make(connected=False)
    call = begin(calls, "send", "a", "v", timeout=1)
    connect(calls, T0 + 1 + GRACE_S)
    assert written(calls) == []
    calls.tick(T0 + 2)
    assert isinstance(call.error, errors.Unreachable)


def test_failures_count_until_a_connection_proves_useful() -> None:
    calls = make(connected=False)
    for count in range(1, 4):
        calls.disconnected("refused", T0)
        assert calls.failures == count
    calls.connected_to_node(T0)
    calls.disconnected("accepted, then cut", T0)
    assert calls.failures == 4
    calls.connected_to_node(T0)
    call = begin(calls, "ping")
    calls.receive(calls.main, framed([":ping", call.id, True]), T0)
    assert calls.failures == 0


# Cancelling.


def test_a_call_and_what_cancels_it_may_be_over_at_one_time() -> None:
    calls = make()
    call, canceller = begin(calls, "send", "a", 1, timeout=5), Call()
    calls.main.output()
    calls.cancel(call, canceller, 5, T0)
    calls.tick(T0 + 1000)
    assert ended(calls) == [call, canceller]


def test_cancelling_without_a_connection_needs_no_node() -> None:
    calls = make(connected=False)
    call, canceller = begin(calls, "recv", "a"), Call()
    calls.cancel(call, canceller, 10, T0)
    assert isinstance(call.error, errors.Cancelled)
    assert canceller.value is True
    connect(calls)
    assert calls.main.output() == b""


def test_a_connection_lost_while_cancelling_cancels() -> None:
    calls = make()
    call, canceller = begin(calls, "recv", "a"), Call()
    calls.cancel(call, canceller, 10, T0)
    calls.disconnected("cut", T0)
    assert isinstance(call.error, errors.Cancelled)
    assert canceller.value is True
    connect(calls)
    assert calls.main.output() == b""


@pytest.mark.parametrize("result", [True, error("cancelled"), error("busy")])
def test_each_who_cancels_a_call_learns_what_really_became_of_it(result: object) -> None:
    calls = make()
    call, one, other = begin(calls, "send", "a", 1), Call(), Call()
    calls.cancel(call, one, 10, T0)
    calls.cancel(call, other, 10, T0)
    calls.receive(calls.main, framed([":cancel", other.id, False]), T0)  # the node has one under way
    assert not ended(calls)
    calls.receive(calls.main, framed([":send!", call.id, result]) + framed([":cancel", one.id, result != True]), T0)  # noqa: E712
    assert one.value is other.value is isinstance(call.error, errors.Cancelled)
    assert not calls.busy


def test_who_cancels_a_call_may_not_hear_in_time_what_became_of_it() -> None:
    calls = make()
    call, canceller = begin(calls, "send", "a", 1, timeout=60), Call()
    calls.cancel(call, canceller, 10, T0)
    calls.tick(T0 + 11)
    assert isinstance(canceller.error, errors.TimedOut)
    assert not call.ended
    calls.receive(calls.main, framed([":send!", call.id, True]), T0 + 20)
    assert call.value is True


def test_a_call_that_is_cancelled_as_its_node_refuses_it_is_not_issued_again() -> None:
    calls = make()
    call, canceller = begin(calls, "send", "a", 1), Call()
    calls.cancel(call, canceller, 10, T0)
    answers = [[":send!", call.id, error("draining")], [":cancel", canceller.id, False]]
    calls.receive(calls.main, b"".join(map(framed, answers)), T0)
    assert isinstance(call.error, errors.Cancelled)
    assert canceller.value is True
    assert not calls.busy


def test_an_abandoned_call_is_withdrawn_from_the_node_and_its_late_reply_dropped() -> None:
    calls = make()
    call = begin(calls, "recv", "a")
    calls.main.output()
    calls.abandon(call, T0)
    assert [message[0] for message in written(calls)] == [":cancel"]
    calls.receive(calls.main, framed([":recv!", call.id, "late"]), T0)
    assert isinstance(call.error, errors.Cancelled)
    assert call.value is None


# A node that drains.


def test_a_draining_node_gives_all_calls_back_before_it_is_left() -> None:
    calls = make()
    waits = begin(calls, "recv", "a", timeout=10)
    refused = begin(calls, "send", "b", 1, timeout=10)
    calls.main.output()
    calls.receive(calls.main, framed([":send!", refused.id, error("draining")]), T0)
    cancelled = [(method, target) for method, _, target in written(calls)]
    assert cancelled == [(":cancel", waits.id), (":cancel", refused.id)]
    assert not calls.main.hang_up
    later = begin(calls, "recv", "c", timeout=10)
    assert calls.main.output() == b""
    calls.receive(calls.main, framed([":recv!", waits.id, error("cancelled")]), T0)
    assert calls.main.hang_up == "the node drains"
    calls.disconnected(calls.main.hang_up, T0)
    connect(calls, T0 + 1)
    assert [message[1:3] for message in written(calls)] == [
        [waits.id, 9000],
        [refused.id, 9000],
        [later.id, 9000],
    ]
    assert not ended(calls)


def test_draining_is_never_shown_but_as_no_node_at_the_end_of_the_time() -> None:
    calls = make()
    call = begin(calls, "send", "b", 1, timeout=1)
    calls.receive(calls.main, framed([":send!", call.id, error("draining")]), T0)
    calls.disconnected(calls.main.hang_up, T0)
    calls.tick(T0 + 5)
    assert isinstance(call.error, errors.Unreachable)
    assert "drains" in str(call.error)


# Greeting and acknowledging.


def test_a_greeting_opens_every_connection_ahead_of_the_calls() -> None:
    calls = make(connected=False, name="me", token="secret", ack=True)
    begin(calls, "recv", "a")
    for _ in range(2):
        connect(calls)
        hello, recv = written(calls)
        assert hello[0] == ":hello"
        assert hello[2] == {"name": "me", "token": "secret", "ack": True, "ring": True}
        assert recv[0] == ":recv!"
        calls.disconnected("cut", T0)


def first_said(calls: Calls, connections: int, hang_up: str = "") -> list[str]:
    """Lose one connection after the other, and return which method each was opened with."""
    methods = []
    for _ in range(connections):
        calls.connected_to_node(T0)
        methods.append(all_written(calls)[0][0])
        calls.main.hang_up = hang_up
        calls.disconnected(hang_up or "the node closed the connection", T0)
    return methods


@pytest.mark.parametrize("where", ["node:1234", "node:1234,other:1234"])
@pytest.mark.parametrize("dialect", ["current", "first"])
def test_every_node_is_greeted_and_the_calls_follow_at_once(where: str, dialect: str) -> None:
    calls = Calls(settings(where, dialect=dialect))
    calls.connected_to_node(T0)
    begin(calls, "tokens")
    assert all_written(calls) == [GREETING, [":tokens", 2]]


@pytest.mark.parametrize("where", ["node:1234", "node:1234,other:1234"])
def test_a_node_that_closes_on_a_greeting_is_soon_not_greeted_any_more(where: str) -> None:
    calls = Calls(settings(where))
    call = begin(calls, "tokens")
    assert first_said(calls, MUTE_TRIES) == [":hello"] * MUTE_TRIES
    calls.connected_to_node(T0)
    assert all_written(calls) == [[":tokens", call.id]]
    calls.receive(calls.main, framed([":tokens", call.id, [1]]), T0)
    assert call.value == [1]
    # It may have closed that for any reason, so it is greeted once more. It is not greeted twice.
    calls.disconnected("the node closed the connection", T0)
    call = begin(calls, "tokens")
    assert first_said(calls, 2) == [":hello", ":tokens"]


def lost_ungreeted(calls: Calls) -> None:
    """Lose a connection that is not greeted, and on which the node has answered."""
    call = begin(calls, "tokens")
    calls.connected_to_node(T0)
    assert all_written(calls) == [[":tokens", call.id]]
    calls.receive(calls.main, framed([":tokens", call.id, [1]]), T0)
    calls.disconnected("the node closed the connection", T0)


@pytest.mark.parametrize("refuses", [False, True])
def test_a_node_that_knows_greetings_after_all_is_greeted_on_its_next_connection(refuses: bool) -> None:
    calls = make(connected=False)
    waits = begin(calls, "recv", "a", timeout=1000)
    if refuses:
        calls.connected_to_node(T0)
        calls.receive(calls.main, framed([":hello", all_written(calls)[0][1], error("unknown-method")]), T0)
        calls.disconnected("the node closed the connection", T0)
    else:  # as does a proxy whose node is down
        assert first_said(calls, MUTE_TRIES) == [":hello"] * MUTE_TRIES
    calls.abandon(waits, T0)
    lost_ungreeted(calls)
    calls.connected_to_node(T0)
    method, id = all_written(calls)[0][:2]
    assert method == ":hello"
    calls.receive(calls.main, framed([method, id, {"version": ""}]), T0)
    calls.disconnected("the node closed the connection", T0)
    begin(calls, "tokens")
    assert first_said(calls, MUTE_TRIES) == [":hello"] * MUTE_TRIES, "what was before it counts no more"


def test_what_is_closed_without_a_greeting_as_well_is_greeted_again() -> None:
    calls = make(connected=False)
    begin(calls, "tokens")
    assert first_said(calls, 2 * MUTE_TRIES + 2) == [*[":hello"] * MUTE_TRIES, ":tokens"] * 2


def test_a_node_that_never_answers_a_greeting_and_all_else_is_kept_and_not_greeted_again() -> None:
    calls = make(connected=False)
    calls.connected_to_node(T0)
    first, waits = begin(calls, "tokens"), begin(calls, "recv", "a", timeout=1000)
    calls.receive(calls.main, framed([":tokens", first.id, [1]]), T0)
    calls.tick(T0 + HELLO_S + GRACE_S + 0.02)
    assert not calls.main.hang_up
    calls.receive(calls.main, framed([":recv!", waits.id, "v"]), T0 + 20)
    assert waits.value == "v"
    calls.disconnected("cut", T0 + 21)
    connect(calls, T0 + 22)
    assert all_written(calls) == []


def test_a_node_that_answers_nothing_at_all_is_left_and_greeted_again() -> None:
    calls = make(connected=False)
    begin(calls, "recv", "a", timeout=1000)
    assert first_said(calls, 5, "the node did not answer :hello in time") == [":hello"] * 5
    calls.connected_to_node(T0)
    calls.tick(T0 + HELLO_S + GRACE_S + 0.02)
    assert ":hello" in calls.main.hang_up


@pytest.mark.parametrize("result", [None, [], "what?", True, error("unknown-method")])
def test_a_node_that_answers_a_greeting_without_knowing_it_is_as_good(result: Any) -> None:
    calls = make(connected=False)
    call = begin(calls, "recv", "a")
    calls.connected_to_node(T0)
    hello, _ = all_written(calls)
    calls.receive(calls.main, framed([":hello", hello[1], result]) + framed([":recv!", call.id, "v"]), T0)
    assert not calls.main.hang_up
    assert call.value == "v"


@pytest.mark.parametrize("code", ["busy", "internal"])
def test_a_greeting_that_is_refused_for_now_is_said_again(code: str) -> None:
    calls = make(connected=False)
    call = begin(calls, "recv", "a")
    calls.connected_to_node(T0)
    calls.receive(calls.main, framed([":hello", all_written(calls)[0][1], error(code)]), T0)
    assert calls.main.hang_up
    assert not call.ended
    calls.disconnected(calls.main.hang_up, T0)
    calls.connected_to_node(T0)
    assert all_written(calls)[0][0] == ":hello"


def test_timeouts_are_not_acknowledged_and_late_values_are_given_back() -> None:
    calls = make(ack=True)
    hello = written(calls)[0]
    calls.receive(calls.main, framed([":hello", hello[1], {}]), T0)
    timed_out, abandoned = begin(calls, "recv", "a"), begin(calls, "recv", "a")
    calls.abandon(abandoned, T0)
    calls.main.output()
    calls.receive(calls.main, framed([":recv!", timed_out.id, TIMED_OUT]) + framed([":recv!", abandoned.id, 1]), T0)
    [[method, _, given_back]] = written(calls)
    assert (method, given_back) == (":cancel", abandoned.id)
    calls.receive(calls.main, framed([":recv!", timed_out.id, TIMED_OUT]) + framed([":send!", abandoned.id, True]), T0)
    assert calls.main.output() == b"", "what is no value needs no giving back"


def test_a_value_that_python_cannot_hold_is_given_back() -> None:
    calls = make(ack=True)
    hello = written(calls)[0]
    calls.receive(calls.main, framed([":hello", hello[1], {}]), T0)
    waits, abandoned = begin(calls, "recv", "a"), begin(calls, "take", "a", "g")
    calls.abandon(abandoned, T0)
    calls.main.output()
    for call in (waits, abandoned):
        body = b"\x93\xa6:recv!" + msgpack.packb(call.id) + b"\x81\x91\x01\x02"
        calls.receive(calls.main, len(body).to_bytes(2, "big") + body, T0)
    assert [(method, target) for method, _, target in written(calls)] == [
        (":cancel", waits.id),
        (":cancel", abandoned.id),
    ]
    assert isinstance(waits.error, errors.RemoteProtocolError)


def test_a_value_that_comes_as_its_node_is_left_is_given_back_and_the_call_made_again() -> None:
    calls = make(ack=True)
    hello = written(calls)[0]
    calls.receive(calls.main, framed([":hello", hello[1], {}]), T0)
    met, waits = begin(calls, "take", "a", "g", timeout=10), begin(calls, "recv", "b", timeout=10)
    calls.receive(calls.main, framed([":ring", None, {"version": "", "leaving": True}]), T0)
    calls.main.output()
    calls.receive(calls.main, framed([":take!", met.id, "v"]), T0)
    assert [(method, target) for method, _, target in written(calls)] == [(":cancel", met.id)]
    assert not calls.main.hang_up
    calls.receive(calls.main, framed([":recv!", waits.id, error("cancelled")]), T0)
    calls.disconnected(calls.main.hang_up, T0)
    connect(calls, T0 + 1)
    assert [message[1] for message in written(calls)[1:]] == [met.id, waits.id]
    assert [call.ended for call in (met, waits)] == [False, False]


def test_a_node_that_answers_a_greeting_with_nothing_gets_no_acknowledgements() -> None:
    calls = make(ack=True)
    hello = written(calls)[0]
    calls.receive(calls.main, framed([":hello", hello[1], None]), T0)
    call = begin(calls, "recv", "a")
    calls.main.output()
    calls.receive(calls.main, framed([":recv!", call.id, 1]), T0)
    assert calls.main.output() == b""
    assert call.value == 1


def test_a_refused_greeting_refuses_every_call() -> None:
    calls = make(connected=False, token="wrong")
    call = begin(calls, "recv", "a")
    connect(calls)
    hello = written(calls)[0]
    calls.receive(calls.main, framed([":hello", hello[1], error("unauthorized", "who are you")]), T0)
    assert isinstance(call.error, errors.Unauthorized)
    assert "who are you" in calls.main.hang_up


# Silence.


def greeted() -> Calls:
    calls = make(name="me")
    hello = written(calls)[0]
    calls.receive(calls.main, framed([":hello", hello[1], {}]), T0)
    return calls


def test_a_silent_node_is_pinged_and_then_given_up() -> None:
    calls = greeted()
    begin(calls, "recv", "a", timeout=1000)
    calls.main.output()
    assert calls.wait_for_probe(T0) == PROBE_S
    calls.tick(T0 + PROBE_S - 0.1)
    assert calls.main.output() == b""
    calls.tick(T0 + PROBE_S)
    assert [message[0] for message in written(calls)] == [":ping"]
    assert calls.wait_for_probe(T0 + PROBE_S) == PROBE_S
    calls.tick(T0 + 2 * PROBE_S)
    assert "silent" in calls.main.hang_up


def test_any_word_of_the_node_ends_its_silence() -> None:
    calls = greeted()
    begin(calls, "recv", "a", timeout=1000)
    calls.tick(T0 + PROBE_S)
    [*_, ping] = written(calls)
    calls.receive(calls.main, framed([":ping", ping[1], True]), T0 + PROBE_S + 1)
    calls.tick(T0 + 2 * PROBE_S)
    assert not calls.main.hang_up
    assert calls.main.output() == b""


def test_silence_counts_only_while_an_answer_is_owed() -> None:
    calls = greeted()
    assert calls.wait(T0 + 1000) is None
    begin(calls, "recv", "a", timeout=1000, now=T0 + 1000)
    calls.main.output()
    calls.tick(T0 + 1001)
    assert calls.main.output() == b""


def test_a_node_that_was_not_greeted_is_never_pinged() -> None:
    calls = make()
    begin(calls, "recv", "a", timeout=1000)
    calls.main.output()
    calls.tick(T0 + 500)
    assert calls.main.output() == b""
    assert not calls.main.hang_up
