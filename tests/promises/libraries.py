"""What our client libraries promise besides, to the programs that use them, whatever becomes of connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from skywalker.clients.call import GRACE_S
from tests.promises.history import (
    CANCELLED,
    LOST,
    NEVER_S,
    TIMED_OUT,
    TRUE,
    UNANSWERED,
    UNKNOWN,
    UNREACHABLE,
    VALUE,
    Call,
    History,
    Stream,
)

LATE_S: Final = 0.1
"""Seconds for a process to do what is due."""

KINDS_OF_SILENCE: Final = (
    *("kill", "stop", "suspend", "reload", "part", "link half open", "link reset", "no descriptors", "death", "leave"),
)
"""Trouble in which a node may say nothing for as long as a library waits for it."""


def _calls(history: History) -> Iterator[Call]:
    return (call for call in history.calls() if call.connection.library and call.answer not in (LOST, UNANSWERED))


def _stands_still(call: Call, begin: float, end: float) -> bool:
    return any(each.touches(begin, end) for each in call.connection.stops)


def calls_of_a_library_end_well(history: History) -> Iterator[str]:
    """What only concerns connections, as that a node drains, is no answer to a program."""
    for call in _calls(history):
        if call.answer not in (TRUE, VALUE, TIMED_OUT, CANCELLED, UNKNOWN, UNREACHABLE):
            yield f"{call} ended with {call.answer!r}"


def calls_of_a_library_end_in_time(history: History) -> Iterator[str]:
    """They do so half a second after their time, even if no node is there or none says anything."""
    for call in _calls(history):
        due_at = call.at + call.timeout_s
        late = call.answered_at - due_at
        allowed = GRACE_S + LATE_S + history.stalled_s(due_at, call.answered_at)
        if late > allowed and not _stands_still(call, due_at, call.answered_at):
            yield f"{call} ended {late:.3f} s late: {call.answer}"


def a_library_says_unknown_for_a_reason(history: History) -> Iterator[str]:
    """A node said so, or a connection that had the send was lost, or its node was silent."""
    for call in _calls(history):
        if call.answer != UNKNOWN or not call.connection.is_whole:
            continue
        due_at = call.at + call.timeout_s
        is_lost = any(min(each.lost_at, each.mute_at) <= call.answered_at for each in call.copies)
        is_told = any(each.answer == UNKNOWN for each in call.copies)
        is_silent = call.answered_at >= due_at + GRACE_S and (
            _stands_still(call, call.at, call.answered_at)
            or any(each.kind in KINDS_OF_SILENCE for each in history.troubles if each.touches(call.at - 2, due_at + 2))
        )
        # It wrote to a connection that was lost just then, and heard of that after; no kernel took what it wrote.
        first = call.copies[0].at if call.copies else call.answered_at
        is_refused = any(call.at - LATE_S <= lost_at <= first for lost_at in call.connection.losses)
        if not (is_lost or is_told or is_silent or is_refused):
            yield f"{call} is told that nobody knows, for no reason"


def without_resend_nothing_is_sent_twice(history: History) -> Iterator[str]:
    """A send that was given to a node whose connection is lost then is unknown at once."""
    for call in _calls(history):
        if call.method != ":send!" or call.connection.resends:
            continue
        for copy in call.copies:
            late = call.answered_at - copy.lost_at
            is_open = copy.answer == UNANSWERED and copy.lost_at < call.at + call.timeout_s
            if is_open and late > LATE_S and not _stands_still(call, copy.lost_at, call.answered_at):
                yield f"{call} ended {late:.3f} s after its connection was lost: {call.answer}"


def a_library_returns_what_it_was_given(history: History) -> Iterator[str]:
    """A listener's call returns the value that a node gave for it, if it came in time over what was not lost."""
    for call in _calls(history):
        values = {copy.value for copy in call.copies if copy.answer == VALUE}
        is_known = call.connection.is_whole and call.method != ":send!"
        if call.answer == VALUE and is_known and call.got not in values:
            yield f"{call} returned {call.got!r}, which no node gave it"
        for copy in call.copies:
            in_time = copy.answered_at + LATE_S < min(call.answered_at, copy.lost_at, copy.mute_at)
            is_given_back = call.connection.acks and copy.is_cancelled
            is_wrong = copy.answer == VALUE and call.answer != VALUE and not is_given_back
            if is_wrong and in_time and not _stands_still(call, copy.answered_at, call.answered_at):
                yield f"{call} was given {copy.value!r}, and ended with {call.answer!r}"


def a_library_keeps_no_value_that_it_gave_back(history: History) -> Iterator[str]:
    """A :cancel gives a value back that is on its way and not acknowledged: nobody acknowledges it, or returns it."""
    for call in _calls(history):
        for copy in call.copies:
            if copy.is_acked and copy.is_cancelled:
                yield f"{call} was cancelled, and {copy.value!r} acknowledged that it gave back"


def streams_yield_what_came(history: History) -> Iterator[str]:
    """A subscription yields what its connections brought, in that order; it misses only what was lost with one."""
    for stream in history.streams:
        *earlier, last = [[given.value for given in each.given[: each.came]] for each in stream.connections] or [[]]
        starts = {0}  # in what it got, of what the next connection brought: a value may have come over two
        for values in earlier:
            starts = {end for start in starts for end in _ends(values, stream.got, start)}
        rests = [start for start in starts if len(stream.got) in _ends(last, stream.got, start)]
        if not rests:
            longest = max(_ends(last, stream.got, start).stop for start in starts)
            yield f"the stream of {stream.client} yielded {stream.got[longest - 1]!r} out of turn"
        elif len(stream.got) - min(rests) < len(last) and stream.ended_at == NEVER_S:
            yield f"the stream of {stream.client} stopped before {last[len(stream.got) - min(rests)]!r}"
        yield from _untold(stream)


def _ends(values: list[str], got: list[str], start: int) -> range:
    """Return where that may end in what a stream got which it got from `start` on of these values."""
    count = 0
    for value in values:
        if start + count == len(got) or got[start + count] != value:
            break
        count += 1
    return range(start, start + count + 1)


def _untold(stream: Stream) -> Iterator[str]:
    """A program is told that something may be missing each time that it listens again, to all that it did before."""
    topics = {topic for each in stream.connections for topic in each.subscriptions}
    if stream.ended_at == NEVER_S and topics and stream.connections[-1].subscriptions.keys() != topics:
        yield f"{stream.client} listens to {len(stream.connections[-1].subscriptions)} topics of {len(topics)}"
    again = sum(bool(each.subscriptions) for each in stream.connections) - 1
    wholly = sum(bool(topics) and each.subscriptions.keys() == topics for each in stream.connections) - 1
    if stream.gaps < wholly - 1 or stream.gaps > max(again, 0):
        times = f"listened again {again} times, {wholly} of them to all"
        yield f"{stream.client} was told of {stream.gaps} gaps, and {times}"


RULES: Final = (
    calls_of_a_library_end_well,
    calls_of_a_library_end_in_time,
    a_library_says_unknown_for_a_reason,
    without_resend_nothing_is_sent_twice,
    a_library_returns_what_it_was_given,
    a_library_keeps_no_value_that_it_gave_back,
    streams_yield_what_came,
)
