"""What must hold of every history: the promises, as far as clients can tell whether they are kept.

A send whose worker, or whose listener's, was killed or replaced while it was under way may have been taken though its
client was told otherwise, since nothing tells "it is not known" yet; and answers may be late for some time after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.history import LOST, TRUE, UNANSWERED, Call, Connection, Given

LATE_S = 0.05
LATE_IN_CLUSTER_S = 0.35
"""Seconds more than its timeout that an answer may take; the latter where another node may have the last word."""

TROUBLE_S = 2.0
"""Seconds for which trouble is felt."""


Span = tuple[float, float]


@dataclass
class History:
    """What there is to judge, and what troubled the cluster: each from when to when."""

    connections: list[Connection]
    nodes: int
    kills: list[Span]
    reloads: list[Span]
    stops: list[Span]


def broken(history: History) -> list[str]:
    """Return what does not hold, a line each."""
    return [line for rule in RULES for line in rule(history)]


def _within(spans: list[Span], begin: float, end: float) -> bool:
    return any(since <= end and until >= begin for since, until in spans)


def _calls(history: History) -> Iterator[Call]:
    for connection in history.connections:
        yield from connection.calls.values()


def _by_value(history: History) -> dict[str, list[Given]]:
    found: dict[str, list[Given]] = defaultdict(list)
    for connection in history.connections:
        for given in connection.given:
            found[given.value].append(given)
    return found


def each_call_has_one_answer(history: History) -> Iterator[str]:
    """Every call is answered once, or its connection is lost."""
    for call in _calls(history):
        if call.answers > 1:
            yield f"{call} was answered {call.answers} times"
        if call.answer == UNANSWERED:
            yield f"{call} was never answered"


def answers_come_in_time(history: History) -> Iterator[str]:
    """None is late, unless the cluster had trouble."""
    allowed = LATE_S if history.nodes == 1 else LATE_IN_CLUSTER_S
    troubles = history.kills + history.reloads + history.stops
    for call in _calls(history):
        late = call.answered_at - call.at - call.timeout_s
        if late <= allowed or call.answer in (LOST, UNANSWERED):
            continue
        if not _within(troubles, call.at - TROUBLE_S, call.answered_at):
            yield f"{call} was answered {late:.3f} s late: {call.answer}"


def answers_are_true(history: History) -> Iterator[str]:
    """A sender that is told true has met somebody; one that is told otherwise has not."""
    for call, takers in _sends(history):
        if call.answer == TRUE and not takers:
            yield f"{call} was told true, and nobody had the value"
        if _is_untrue(call, takers) and not _is_in_doubt(history, call):
            yield f"{call} was told {call.answer!r}, and {takers[0].connection.client} had the value"


def in_doubt(history: History) -> int:
    """Return how many senders were told that nobody came though somebody had their value, as happens in trouble."""
    return sum(_is_untrue(call, takers) and _is_in_doubt(history, call) for call, takers in _sends(history))


def _sends(history: History) -> Iterator[tuple[Call, list[Given]]]:
    by_value = _by_value(history)
    return ((call, by_value.get(call.value, [])) for call in _calls(history) if call.method == ":send!")


def _is_untrue(call: Call, takers: list[Given]) -> bool:
    return bool(takers) and call.answer not in (TRUE, LOST, UNANSWERED)


def _is_in_doubt(history: History, call: Call) -> bool:
    return _within(history.kills + history.stops, call.at - LATE_S, call.answered_at)


def nothing_comes_twice(history: History) -> Iterator[str]:
    """One of a group takes a value, and no connection gets it twice, unless a worker was killed meanwhile."""
    for value, takers in _by_value(history).items():
        if _within(history.kills, takers[0].at - TROUBLE_S, takers[-1].at):
            continue
        if sum(each.method == ":take!" for each in takers) > 1:
            yield f"{value!r} was taken twice"
        if len({(id(each.connection), each.method, each.id) for each in takers}) < len(takers):
            yield f"{value!r} came twice"


def subscribers_miss_nothing(history: History) -> Iterator[str]:
    """What was published and acked came to all who had subscribed before and stayed.

    In a cluster, a successor of a worker that was killed does not know those of a worker that is being replaced; nor is
    one waited for that stands still.
    """
    by_value = _by_value(history)
    for connection in history.connections:
        for published in connection.published:
            begin, end = published.at - TROUBLE_S, published.acked_at
            both = _within(history.kills, begin, end) and _within(history.reloads, begin, end)
            if end > published.at + TROUBLE_S or (history.nodes > 1 and both) or _within(history.stops, begin, end):
                continue
            had = {id(each.connection) for each in by_value.get(published.value, [])}
            for other in history.connections:
                since = other.subscriptions.get(published.topic)
                had_to = since is not None and since < published.at and other.closed_at > published.acked_at + LATE_S
                if had_to and id(other) not in had:
                    yield f"{other.client} missed {published}"


def order_holds(history: History) -> Iterator[str]:
    """What one connection published to a topic came in that order to each subscriber."""
    place = {
        published.value: (id(connection), published.topic, number)
        for connection in history.connections
        for number, published in enumerate(connection.published)
    }
    for connection in history.connections:
        last: dict[tuple[int, str], int] = {}
        for given in connection.given:
            if given.value in place and not given.method.endswith("!"):
                publisher, topic, number = place[given.value]
                before = last.get((publisher, topic), -1)
                if number < before and not _within(history.kills, given.at - TROUBLE_S, given.at):
                    yield f"{given.value!r} on {topic} came late to {connection.client}"
                last[publisher, topic] = number


RULES = (
    each_call_has_one_answer,
    answers_come_in_time,
    answers_are_true,
    nothing_comes_twice,
    subscribers_miss_nothing,
    order_holds,
)
