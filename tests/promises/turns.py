"""Senders that wait on a topic are served in turn, wherever they are connected."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tests.promises.history import CANCELLED, LOST, NEVER_S, TIMED_OUT, Call, Connection, Given, History, chokes

ON_ITS_WAY_S: Final = 0.1
"""Seconds in which a send is with the owner of its topic, and what is handed out there with who gets it, or back."""

GIVEN_BACK_S: Final = 0.03
"""Seconds until a value is with its owner again whose listener had no room for it."""


class Turn(NamedTuple):
    """A send, since when a node has it, and until when it was to be had."""

    send: Call
    since: float
    until: float
    taker: Given | None


class Gone(NamedTuple):
    """A listener that ended without a value: one that was on its way to it waits again, and may be overtaken."""

    at: float
    since: float
    connection: Connection


def senders_are_served_in_turn(history: History) -> Iterator[str]:
    """A value is given away only when none waits that clearly came before.

    Of two that one connection sent, the first came before, however soon the other followed; and if another connection
    got both of them, it got them in that order.
    """
    gone, full = _gone(history), _full(history)
    for topic, turns in _turns(history).items():
        overtaken = [(first, second, False) for first, second in _overtaken(turns)]
        overtaken += [(first, second, True) for first, second in _out_of_order(turns)]
        for first, second, soon_after in overtaken:
            if not _is_excused(history, gone.get(topic, ()), first, second) and not (
                soon_after and _had_no_room(full.get(topic, ()), second)
            ):
                yield f"{second.send} was served before {first.send}, which came first"


def _turns(history: History) -> Mapping[str, list[Turn]]:
    """Return those on each topic, as nodes got them. When one did that a library sent twice is not known."""
    found: dict[str, list[Turn]] = defaultdict(list)
    for send, takers in history.sends():
        if len(send.copies) != int(send.connection.library):
            continue
        taker = takers[0] if takers else None
        ends = [send.answered_at, send.at + send.timeout_s, taker.at if taker is not None else NEVER_S]
        for copy in send.copies:
            ends += [copy.answered_at, copy.lost_at, copy.mute_at]
        found[send.topic].append(Turn(send, send.waits_since, min(ends), taker))
    return {topic: sorted(turns, key=lambda turn: turn.since) for topic, turns in found.items()}


def _gone(history: History) -> Mapping[str, list[Gone]]:
    """Return the listeners on each topic that ended without a value, in the order in which they did."""
    found: dict[str, list[Gone]] = defaultdict(list)
    for call in history.calls():
        if call.method != ":send!" and call.answer in (CANCELLED, LOST, TIMED_OUT):
            found[call.topic].append(Gone(call.answered_at, call.at, call.connection))
    for connection in history.connections:
        for topic in {*connection.subscriptions, *connection.topics.values()}:
            found[topic].append(Gone(connection.closed_at, connection.opened_at, connection))
    return {topic: sorted(gone, key=lambda each: each.at) for topic, gone in found.items()}


def _full(history: History) -> Mapping[str, list[float]]:
    """Return when somebody who listens on each topic was so full that a value on its way there had to go back."""
    found: dict[str, list[float]] = defaultdict(list)
    for connection in history.connections:
        topics = {call.topic for call in connection.calls.values() if call.method != ":send!"}
        if topics and not connection.library:
            at = [*chokes(connection.taken)]
            for topic in topics:
                found[topic] += at
    return {topic: sorted(at) for topic, at in found.items()}


def _had_no_room(full: Sequence[float], second: Turn) -> bool:
    assert second.taker is not None, "it was served"
    place = bisect_left(full, second.taker.at - GIVEN_BACK_S)
    return place < len(full) and full[place] <= second.taker.at


def _overtaken(turns: list[Turn]) -> Iterator[tuple[Turn, Turn]]:
    """Yield who came before somebody who was served while it went on to wait for a good while."""
    waits: dict[int | None, Turn] = {}  # of each connection, and of all, who does so for longest

    def wait(who: int | None, turn: Turn) -> None:
        if who not in waits or turn.until > waits[who].until:
            waits[who] = turn

    clearly = 0
    for turn in turns:
        while turns[clearly].since + ON_ITS_WAY_S < turn.send.at:
            wait(None, turns[clearly])
            clearly += 1
        own = id(turn.send.connection)
        for first in (waits.get(None), waits.get(own)):
            if first is not None and turn.taker is not None and first.until > turn.taker.at + ON_ITS_WAY_S:
                yield first, turn
        wait(own, turn)


def _out_of_order(turns: list[Turn]) -> Iterator[tuple[Turn, Turn]]:
    """Yield who came to a connection after what its own connection sent later. That of a library stands for several."""
    ways: dict[tuple[int, int], list[tuple[Given, Turn]]] = defaultdict(list)
    for turn in turns:
        if turn.taker is not None and not (turn.send.connection.library or turn.taker.connection.library):
            ways[id(turn.send.connection), id(turn.taker.connection)].append((turn.taker, turn))
    for way in ways.values():
        places = {id(given): place for place, given in enumerate(way[0][0].connection.given)}
        came = [turn for _, turn in sorted(way, key=lambda each: places[id(each[0])])]
        for before, turn in itertools.pairwise(came):
            if turn.send.id < before.send.id:
                yield turn, before


def _is_excused(history: History, gone: Sequence[Gone], first: Turn, second: Turn) -> bool:
    assert second.taker is not None, "it was served"
    at = second.taker.at
    if any(history.excuses("senders_are_served_in_turn", each, each) for each in (at, first.since)):
        return True  # it may have come later than it seems, too
    within = ON_ITS_WAY_S + history.stalled_s(first.since, at + ON_ITS_WAY_S)
    if within > ON_ITS_WAY_S and (first.since + within > second.send.at or first.until < at + within):
        return True  # it is the machine that was late
    for each in gone[bisect_left(gone, at - within, key=lambda each: each.at) :]:
        if each.at > at + within:
            break
        # The value was handed out as soon as both were there; only who reads too slowly has it on its way for longer.
        if max(each.since, first.since) > at - 2 * within or any(
            stop.touches(first.since, at) for stop in each.connection.stops
        ):
            return True
    return False
