"""Sends under way: what goes out, what may come back, and what is never sent twice or lost in between."""

from __future__ import annotations

from typing import Any, cast

import pytest

from skywalker.errors import BadTopic, RemoteProtocolError, TooLarge
from skywalker.limits import MAX_FRAME
from skywalker.pipeline.tables.flight import Flight
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.clients.scripted import TIMED_OUT, error, framed

TOPIC = values.pack("t")


def written(flight: Flight) -> list[list[Any]]:
    """Return the calls that are to be written, decoded, and take them from there."""
    frames, rest = split(b"".join(flight.output))
    assert rest == b""
    flight.output.clear()
    return [[*map(values.unpack, cast(list[bytes], elements))] for elements in frames]


def started(count: int, window: int = 100) -> tuple[Flight, list[list[Any]]]:
    flight = Flight(1500, window)
    for number in range(count):
        flight.put(TOPIC, values.pack(number))
    return flight, written(flight)


def replies(calls: list[list[Any]], result: Any) -> bytes:
    return b"".join(framed([call[0], call[1], result]) for call in calls)


def test_a_send_is_the_frame_of_the_protocol() -> None:
    flight, (call,) = started(1)
    method, _, *rest = call
    assert method == ":send!"
    assert rest == [1500, "t", 0]
    assert len(flight) == 1


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_outcomes_do_not_depend_on_how_the_replies_were_cut(step: int) -> None:
    flight, calls = started(30)
    data = replies(calls[:20], True) + replies(calls[20:], TIMED_OUT)
    for start in range(0, len(data), step):
        flight.take(data[start : start + step])
    assert (flight.handed_over, flight.missed, len(flight)) == (20, {TOPIC: 10}, 0)


def test_there_is_room_for_so_many_sends_as_were_asked_for_and_again_once_one_is_answered() -> None:
    flight, calls = started(3, window=3)
    rooms = [flight.has_room]
    flight.take(replies(calls[1:2], True))
    rooms.append(flight.has_room)
    flight.put(TOPIC, values.pack("next"))
    assert [*rooms, flight.has_room] == [False, True, False]
    ids = {call[1] for call in calls}
    assert written(flight)[0][1] in ids
    assert len(ids) == 3


def test_a_largest_frame_goes_out_and_one_byte_more_does_not() -> None:
    flight, (call,) = started(1)
    room = MAX_FRAME - (len(framed(call)) - 2)
    flight.put(TOPIC, b"\xc5" + (room - 2).to_bytes(2, "big") + bytes(room - 2))
    assert len(flight.output[0]) == 2 + MAX_FRAME
    with pytest.raises(TooLarge, match=r"topic 't' takes 65536 bytes, limit is 65535"):
        flight.put(TOPIC, b"\xc5" + (room - 1).to_bytes(2, "big") + bytes(room - 1))
    assert len(flight) == 2


def test_a_new_connection_gets_what_is_not_answered_in_order_and_it_is_counted_as_sent_again() -> None:
    flight, calls = started(5)
    flight.take(replies([calls[3], calls[0]], True) + b"\0")  # the connection breaks within a frame
    flight.put(TOPIC, values.pack("later"))
    flight.start_anew()
    assert [call[-1] for call in written(flight)] == [1, 2, 4, "later"]
    assert flight.issued_again == 4
    flight.take(replies(calls[1:3], True))
    assert flight.handed_over == 4


def test_a_node_that_goes_away_gives_back_what_it_has_before_another_gets_it() -> None:
    flight, calls = started(3)
    flight.take(replies(calls[:1], error("draining")))
    assert (flight.has_room, flight.is_left) == (False, False)
    cancels = written(flight)
    assert [(call[0], call[2]) for call in cancels] == [(":cancel", call[1]) for call in calls[1:]]
    # The one is met before its cancel gets there, the other is given back.
    flight.take(replies(calls[1:2], True) + replies(calls[2:], error("cancelled")) + replies(cancels, False))
    assert (flight.has_room, flight.is_left) == (False, True)
    flight.start_anew()
    assert [call[-1] for call in written(flight)] == [0, 2]
    assert flight.issued_again == 0  # none of them can have been met
    assert (flight.has_room, flight.is_left) == (True, False)


def test_the_node_is_left_as_well_when_it_says_so_itself() -> None:
    flight, calls = started(1)
    flight.take(framed([":ring", None, {"version": "v2", "leaving": False}]))
    assert written(flight) == []
    flight.take(framed([":ring", None, {"version": "v2", "leaving": True}]))
    assert written(flight)[0][2] == calls[0][1]
    flight.take(replies(calls, error("busy")))  # which says as well that it was not met
    assert flight.is_left


def test_what_a_busy_node_refuses_waits_and_goes_out_again() -> None:
    flight, calls = started(4)
    flight.take(replies(calls[1:3], error("busy", "too much")))
    assert (flight.is_refused, flight.has_room) == (True, False)
    assert written(flight) == []
    flight.try_again()
    assert [call[-1] for call in written(flight)] == [1, 2]
    assert (flight.is_refused, flight.has_room) == (False, True)
    assert str(flight.busy) == "too much"


def test_a_probe_of_the_node_is_answered() -> None:
    flight, _ = started(0)
    flight.take(framed([":ping", None]))
    assert written(flight) == [[":ping", None, True]]


def test_a_send_that_is_refused_for_good_is_an_error_that_names_the_topic() -> None:
    flight, calls = started(1)
    with pytest.raises(BadTopic, match="topic 't': too long"):
        flight.take(replies(calls, error("bad-topic", "too long")))


@pytest.mark.parametrize(
    "data",
    [
        framed([":send!", 7777, True]),  # an id that nothing has
        framed([":send!", 256, "what"]),
        framed({"a": 1}),
        framed([":message", 1, 2, 3]),
        framed([":error", None, error("busy", "full")]),
        b"\0\3\x93\xc1\xc1",
    ],
)
def test_a_node_that_says_what_no_node_says_is_not_listened_to_any_more(data: bytes) -> None:
    flight, _ = started(1)
    with pytest.raises(RemoteProtocolError):
        flight.take(data)
    assert len(flight) == 1  # for the next connection


def test_words_about_the_connection_do_not_count_as_answers() -> None:
    flight, _ = started(1)
    flight.probe()
    (probe,) = written(flight)
    flight.take(framed([":ping", probe[1], True]))
    assert (flight.answered, len(flight)) == (0, 1)


@pytest.mark.parametrize("leaves", [False, True])
def test_one_that_may_have_been_taken_goes_out_again_and_that_is_counted(leaves: bool) -> None:
    flight, calls = started(3)
    if leaves:
        flight.take(replies(calls[:1], error("draining")))
        flight.output.clear()
    flight.take(replies(calls[1:2], error("unknown-outcome")))
    flight.take(replies(calls[2:], True))
    assert (flight.handed_over, flight.issued_again) == (1, 1)
    if leaves:
        assert flight.is_left
        flight.start_anew()
    assert written(flight) == (calls[:2] if leaves else calls[1:2])
    assert flight.issued_again == 1
