"""Senders that wait on a topic are served in turn, wherever they are connected.

A value stands in its line from when its node hears of it until it ends, but for the time in which it is on its way to a
listener that does not come to have it: one that ends just then, or takes nothing. Then it may be overtaken.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tests.promises.history import LOST, NEVER_S, TIMED_OUT, UNANSWERED, VALUE, Call, Connection, Given, History, Span

ON_ITS_WAY_S: Final = 0.1
"""Seconds in which a send is with the owner of its topic, and what is handed out there with who gets it, or back."""

SOON_S: Final = 0.03
"""Seconds until a node has heard what a client says, and until a value is with its owner again whose listener had no
room for it."""

OPENS_S: Final = 0.35
"""Seconds in which a worker that replaces another one hears no clients, nor other nodes' calls: others may have to hear
the last of that one, for 0.3 s, before they say what they subscribe to."""


class Turn(NamedTuple):
    """A send, since when a node has it, and until when it was to be had."""

    send: Call
    since: float
    until: float
    taker: Given | None


class Listener(NamedTuple):
    """Somebody for whom a node was to find a value on a topic, from when to when; and when nothing could be written."""

    since: float
    until: float
    is_served: bool  # in the end
    full: Sequence[Span]

    def may_have(self, since: float, begin: float, end: float, within: float) -> bool:
        """Return whether a value that waits since then was perhaps on its way to it at some time from `begin` to `end`,
        and not to stay there; that it ends is known `within` so many seconds where the value was."""
        if self.since > end or (self.is_served and self.until < begin - SOON_S):
            return False
        # It was handed out as soon as both were there.
        has_just_come = max(self.since, since) > begin - 2 * within
        if not self.is_served and has_just_come and begin - within <= self.until <= end + within:
            return True
        return any(first <= min(end, self.until + SOON_S) and last >= begin - SOON_S for first, last in self.full)


def senders_are_served_in_turn(history: History) -> Iterator[str]:
    """A value is given away only when none waits that clearly came before.

    Of two that one connection sent, the first came before, however soon the other followed; and if another connection
    got both of them, it got them in that order.
    """
    listeners = _listeners(history)
    for topic, turns in _turns(history).items():
        told: set[str] = set()
        for first, second in itertools.chain(_overtaken(turns), _out_of_order(turns)):
            name = f"{second.send}"
            if name not in told and not _is_excused(history, listeners.get(topic, ()), first, second):
                told.add(name)
                yield f"{name} was served before {first.send}, which came first"


def _turns(history: History) -> Mapping[str, list[Turn]]:
    """Return those on each topic, as clients spoke. When a node got one that a library sent twice is not known."""
    found: dict[str, list[Turn]] = defaultdict(list)
    for send, takers in history.sends():
        if len(send.copies) != int(send.connection.library):
            continue
        taker = takers[0] if takers else None
        ends = [send.answered_at, send.at + send.timeout_s, taker.at if taker is not None else NEVER_S]
        for copy in send.copies:
            ends += [copy.answered_at, copy.lost_at, copy.mute_at]
        for stop in send.connection.stops:
            if stop.touches(send.answered_at - SOON_S, send.answered_at):
                ends.append(stop.since)  # whenever the answer came meanwhile
        found[send.topic].append(Turn(send, _heard_at(history, send), min(ends), taker))
    return {topic: sorted(turns, key=lambda turn: turn.send.waits_since) for topic, turns in found.items()}


def hears_from(history: History, connection: Connection, opened_at: float) -> float:
    """Return from when on a worker hears the connection that came to it then: later, if it was just starting."""
    reloads = (each for each in history.troubles if each.kind == "reload" and connection.depends_on(each))
    is_new = any(each.touches(opened_at - ON_ITS_WAY_S, opened_at + ON_ITS_WAY_S) for each in reloads)
    return opened_at + OPENS_S if is_new else opened_at


def _heard_at(history: History, send: Call) -> float:
    """Return when a node has heard of a send, as far as that may be late."""
    came_at = send.waits_since
    opened_at = send.copies[-1].opened_at if send.copies else send.connection.opened_at
    heard_at = max(came_at, hears_from(history, send.connection, opened_at))
    for each in history.troubles:
        if each.kind == "reload" and not send.connection.depends_on(each) and each.touches(came_at - OPENS_S, came_at):
            # Its owner may be new. How long it has waited is said when it is sent there, not when it is read.
            heard_at = max(heard_at, came_at + OPENS_S)
    for begin, end in _full(send):
        if begin < send.waits_since + SOON_S and end > heard_at:
            heard_at = end  # who takes nothing is not heard, either
    return heard_at


def _full(call: Call) -> Sequence[Span]:
    if call.connection.library:
        return [span for copy in call.copies for span in copy.full]
    return _when_full(call.connection)


def _when_full(connection: Connection) -> Sequence[Span]:
    """Return when nothing could be written to a client: while it stands still, if what its kernel took is not known."""
    return connection.full if connection.is_whole else [(stop.since, stop.until) for stop in connection.stops]


def _listeners(history: History) -> Mapping[str, list[Listener]]:
    """Return those on each topic."""
    found: dict[str, list[Listener]] = defaultdict(list)
    for call in history.calls():
        if call.method == ":send!":
            continue
        of_topic, ends_at = found[call.topic], call.at + call.timeout_s
        for copy in call.copies:
            until = min(copy.answered_at, copy.lost_at)
            of_topic.append(Listener(copy.at, until, copy.answer == VALUE, copy.full))
            if copy.answer == UNANSWERED:
                of_topic.append(Listener(copy.at, ends_at, False, copy.full))
        if not call.connection.library:
            of_topic.append(Listener(call.at, call.answered_at, call.answer == VALUE, _full(call)))
            if call.answer in (LOST, TIMED_OUT):  # of which its node may not know, or its client have heard later
                of_topic.append(Listener(call.at, ends_at, False, _full(call)))
    for connection in history.connections:
        full = _when_full(connection)
        until = NEVER_S if full and full[-1][1] == NEVER_S else connection.closed_at
        for topic in {*connection.subscriptions, *connection.topics.values()}:
            found[topic].append(Listener(connection.opened_at, until, False, full))
    return found


def _overtaken(turns: list[Turn]) -> Iterator[tuple[Turn, Turn]]:
    """Yield who came before somebody who was served while it went on to wait for a good while."""
    waiting: list[Turn] = []
    for turn in turns:
        send, taker = turn.send, turn.taker
        waiting = [each for each in waiting if each.until > send.at + ON_ITS_WAY_S]
        for first in waiting if taker is not None else ():
            assert taker is not None, "it was served"
            is_of_same = first.send.connection is send.connection and not send.connection.library
            came_before = is_of_same or first.since + ON_ITS_WAY_S < send.at
            if came_before and first.until > taker.at + ON_ITS_WAY_S:
                yield first, turn
        waiting.append(turn)


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


def _is_excused(history: History, listeners: Sequence[Listener], first: Turn, second: Turn) -> bool:
    taker = second.taker
    assert taker is not None, "it was served"
    at = taker.at
    call = taker.connection.calls.get(taker.id) if not taker.is_subscribed else None
    full = _full(call) if call is not None else _when_full(taker.connection)
    # It was handed out when there was no room for it, perhaps.
    begin = max(second.send.at, min((begin for begin, end in full if begin <= at <= end + SOON_S), default=at))
    came = first.send.waits_since
    # It may have come later than it seems, too; and what was on its way then may have met with the trouble there.
    if any(history.excuses("senders_are_served_in_turn", *span) for span in ((begin, at + ON_ITS_WAY_S), (came, came))):
        return True
    within = ON_ITS_WAY_S + history.stalled_s(came, at + ON_ITS_WAY_S)
    if within > ON_ITS_WAY_S and (first.since + within > second.send.at or first.until < at + within):
        return True  # it is the machine that was late
    return any(each.may_have(first.since, begin, at, within) for each in listeners)
