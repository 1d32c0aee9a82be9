"""What must hold of every history: the promises, as far as clients can tell whether they are kept.

What trouble excuses from which of them is in `excuses`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.promises import libraries
from tests.promises.excuses import FELT_S, ON_ITS_WAY, SETTLED_S, TWO_RINGS
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
    Connection,
    History,
    Span,
)
from tests.promises.turns import hears_from, senders_are_served_in_turn

DRAINING: Final = "draining"

ANSWERS: Final = (TRUE, VALUE, TIMED_OUT, CANCELLED, UNKNOWN, LOST, UNANSWERED)
"""Those that are no refusals."""

LATE_S: Final = 0.05
LATE_IN_CLUSTER_S: Final = 0.35
"""Seconds more than its timeout that an answer may take; the latter where another node may have the last word."""

WAY_S: Final = 0.014
"""Seconds to the node and back, in which its clock does not run: some packets take 5 ms, and who reads them may have to
wait for a processor for 2 ms."""

MEET_S: Final = 0.5
"""Seconds without trouble in which those who wait for each other meet."""


def broken(history: History) -> list[str]:
    """Return what does not hold, a line each, which begins with the rule."""
    return [f"{rule.__name__}: {line}" for rule in (*RULES, *libraries.RULES) for line in rule(history)]


def each_call_has_one_answer(history: History) -> Iterator[str]:
    """Every call is answered once, or its connection is lost; and nothing else is."""
    for call in history.calls():
        if call.answers > 1:
            yield f"{call} was answered {call.answers} times"
        if call.answer == UNANSWERED:
            yield f"{call} was never answered"
    for connection in history.connections:
        for line in connection.strange:
            yield f"{connection.client} was told {line}"
        for published in connection.published:
            if published.acked_at == published.failed_at == connection.closed_at == NEVER_S:
                yield f"{published} was never acked"


def connections_last(history: History) -> Iterator[str]:
    """None is lost without a reason: its own worker's death, or that of one which it was just moving to."""
    for each in history.connections:
        at = each.closed_at
        if at == NEVER_S or each.is_cut or history.excuses("connections_last", at, at, each):
            continue
        if not any(trouble.node == each.node for trouble in history.excusing(ON_ITS_WAY, at, at)):
            yield f"a connection of {each.client} was lost at {at:.6f}"


def refusals_have_a_reason(history: History) -> Iterator[str]:
    """Nobody is refused but by a worker that goes; a library may find no node that lets it in."""
    for call in history.calls():
        if call.answer in ANSWERS or (call.connection.library and call.answer == UNREACHABLE):
            continue
        begin, end, rule = call.at, call.answered_at, "refusals_have_a_reason"
        if call.answer != DRAINING or not history.excuses(rule, begin, end, call.connection):
            yield f"{call} was answered {call.answer!r}"


def answers_come_in_time(history: History) -> Iterator[str]:
    """None is early; none is late, unless the cluster had trouble."""
    allowed = WAY_S + (LATE_S if history.nodes == 1 else LATE_IN_CLUSTER_S)
    for call in history.calls():
        due_at = call.at + call.timeout_s
        late = call.answered_at - due_at
        if call.answer == TIMED_OUT and late < 0:
            yield f"{call} timed out {-late:.3f} s early"
        if call.answer in (LOST, UNANSWERED) or late <= allowed or call.connection.library:
            continue
        late -= max(0.0, hears_from(history, call.connection, call.connection.opened_at) - call.at)
        late -= sum(  # of one that takes nothing nothing is read
            max(0.0, min(until, call.answered_at) - max(since, call.at)) for since, until in call.connection.full
        )
        if late <= allowed + history.stalled_s(due_at - allowed, call.answered_at):
            continue  # it is the machine that was late
        if any(each.touches(due_at, call.answered_at) for each in call.connection.stops):
            continue  # it is the client that was late
        spans = (call.at, call.at), (due_at, call.answered_at)
        if not any(history.excuses("answers_come_in_time", *span) for span in spans):
            yield f"{call} was answered {late:.3f} s late: {call.answer}"


def answers_are_true(history: History) -> Iterator[str]:
    """A sender that is told true has met somebody; one that is told otherwise has not, unless that is not known."""
    for call in history.calls():
        if call.answer == UNKNOWN and call.method != ":send!":
            yield f"{call} was told that its outcome is unknown, and has none"
    chances = _chances(history)
    for call, takers in sorted(history.sends(), key=lambda each: each[0].answered_at):
        if call.answer == TRUE and not takers and not _took_a_chance(call, chances):
            yield f"{call} was told true, and nobody had the value"
        if any(each.is_kept for each in takers) and call.answer not in (TRUE, UNKNOWN, LOST, UNANSWERED):
            yield f"{call} was told {call.answer!r}, and {takers[0].connection.client} had the value"


class Chance(NamedTuple):
    """When somebody may have had a value that nobody knows of, who lost a connection to which it was written."""

    end: float
    begin: float
    is_one: bool  # value alone

    def fits(self, send: Call) -> bool:
        """Return whether it may have been this one's value."""
        return send.at <= self.end and self.begin <= send.answered_at


def _chances(history: History) -> dict[str, list[Chance]]:
    """Return those that there were, by topic; none where it is known what the kernel took, or a client has to say."""
    found: dict[str, list[Chance]] = defaultdict(list)
    for connection in history.connections:
        if connection.is_whole or connection.closed_at == NEVER_S:
            continue
        at, end = connection.closed_at, _taken_until(history, connection)
        # It may have read nothing for as long as something stood still just then.
        begin = min([at, *(stall.since for stall in history.stalls if stall.since <= at <= stall.until)]) - LATE_S
        for topic in {*connection.subscriptions, *connection.topics.values()}:
            found[topic].append(Chance(end, begin, is_one=False))
        for call in connection.calls.values():
            if call.method != ":send!" and call.answer == LOST and not connection.acks:
                found[call.topic].append(Chance(end, call.at, is_one=True))
    return {topic: sorted(chances) for topic, chances in found.items()}


def _taken_until(history: History, connection: Connection) -> float:
    """Return until when its node may take a connection that has ended for one that has not.

    That is until its worker has read all that was said over it, and the end: in trouble that takes as long
    as answers do. One of pub/sub that is owed acks may have ended only its own half, and stays until they are written.
    """
    at = connection.closed_at
    if not connection.is_cut:
        return max(at, connection.taken_until)  # it was its node that ended it
    read_at = at + LATE_S + history.stalled_s(at, at + LATE_S)
    excusing = history.excusing("answers_come_in_time", at, at)
    felt = (each.until + FELT_S for each in excusing if each.since <= read_at)
    return max(read_at, connection.taken_until, *felt)


def _took_a_chance(send: Call, chances: dict[str, list[Chance]]) -> bool:
    """Take the chance that ends first of those that fit a send; return whether there is one.

    If whoever ends first chooses first, as many as possible have one.
    """
    of_topic = chances.get(send.topic, [])
    for chance in of_topic:
        if chance.fits(send):
            if chance.is_one:
                of_topic.remove(chance)
            return True
    return False


def unknown(history: History) -> int:
    """Return how many senders were told that it is not known whether somebody came."""
    return sum(call.answer == UNKNOWN for call in history.calls())


def cancels_are_true(history: History) -> Iterator[str]:
    """A call is cancelled only if its client wants that, and a :cancel is told what became of the call.

    It comes behind the value of a listener, or a client that goes then would lose that; only a second one need not.
    """
    for connection in history.connections:
        unwanted = {each.call.id for each in connection.cancels.values()}
        for call in connection.calls.values():
            if call.answer == CANCELLED and call.id not in unwanted:
                yield f"{call} was cancelled by nobody"
        for cancel in connection.cancels.values():
            if cancel.answer is None and connection.closed_at == NEVER_S:
                yield f"a :cancel of {cancel.call} was never answered"
            if cancel.answer is True and cancel.call.answer not in (CANCELLED, LOST, TIMED_OUT):
                yield f"{cancel.call} was cancelled, and told {cancel.call.answer!r}"
        first = {id(each.call): each for each in reversed(connection.cancels.values())}
        for cancel in first.values():
            if cancel.is_early and cancel.call.answer == VALUE:
                yield f"a :cancel of {cancel.call} was answered before that had its value"


def who_waits_meets(history: History) -> Iterator[str]:
    """A sender and a listener that wait on one topic for some quiet time do not both wait in vain.

    Unless its value is on its way meanwhile to another listener, or a subscriber, whose kernel takes nothing.
    """
    in_vain: dict[str, list[Call]] = defaultdict(list)
    for call in history.calls():
        # One whose node had a value for it met somebody, though its library never heard of that.
        waited = not call.copies or call.copies[-1].answer == TIMED_OUT
        if call.answer == TIMED_OUT and call.timeout_s > MEET_S and waited:
            in_vain[call.topic].append(call)
    full: dict[str, list[Span]] = defaultdict(list)
    for connection in (*history.connections, *(each for stream in history.streams for each in stream.connections)):
        listening = {call.topic for call in connection.calls.values() if call.method != ":send!"}
        for topic in listening | connection.subscriptions.keys():
            full[topic] += connection.full
    for call in history.calls():
        if call.method != ":send!":
            full[call.topic] += [span for copy in call.copies for span in copy.full]
    for calls in in_vain.values():
        senders = [call for call in calls if call.method == ":send!"]
        for listener in (call for call in calls if call.method != ":send!"):
            for sender in senders:
                begin = max(sender.waits_since, listener.waits_since)
                end = min(sender.at + sender.timeout_s, listener.at + listener.timeout_s)
                within = MEET_S + history.stalled_s(begin, end)
                if any(since <= end and until >= begin for since, until in full[sender.topic]):
                    continue
                if end - begin > within and history.quiet_s("who_waits_meets", begin, end) > within:
                    yield f"{sender} and {listener} did not meet"


def nothing_comes_twice(history: History) -> Iterator[str]:
    """One of a group takes a value, and no call or subscription gets it twice, unless it was in doubt."""
    for value, takers in history.takers.items():
        first = takers[0]
        if value in history.resent or not first.is_sure:
            continue
        if history.excuses("nothing_comes_twice", first.at, first.at):
            continue
        if sum(each.method == ":take!" for each in takers) > 1:
            yield f"{value!r} was taken twice"
        if len({(id(each.connection), each.method, each.id) for each in takers}) < len(takers):
            yield f"{value!r} came twice"


def subscribers_miss_nothing(history: History) -> Iterator[str]:
    """What was published and acked came to all who had subscribed before and stayed.

    One that stands still, or is cut off, is not waited for.
    """
    for connection in history.connections:
        for published in connection.published:
            begin, end = published.at, published.acked_at
            if end == NEVER_S or history.excuses("subscribers_miss_nothing", begin, end):
                continue
            had = {id(each.connection) for each in history.takers.get(published.value, []) if each.is_subscribed}
            for other in history.connections:
                since = other.subscriptions.get(published.topic, NEVER_S)
                stayed = other.closed_at == NEVER_S or (
                    other.is_whole
                    and other.closed_at > published.acked_at + LATE_S
                    and not other.reads_slowly
                    and not any(each.touches(published.at, other.closed_at) for each in other.stops)
                    and not any(own.at <= end and own.acked_at > other.closed_at for own in other.published)
                )  # one that reads nothing, or waits for an ack, and is lost then, loses what was to follow
                if since < published.at and stayed and id(other) not in had:
                    yield f"{other.client} missed {published}"


def order_holds(history: History) -> Iterator[str]:
    """What one connection published to a topic came in that order to each subscriber, when it first came.

    What comes once more came in its place, too, and is a matter of nothing_comes_twice; so did what had been handed out
    before one subscribed, and is again because it is in doubt.
    """
    place = {
        published.value: (id(connection), published, number)
        for connection in history.connections
        for number, published in enumerate(connection.published)
    }
    for connection in history.connections:
        last: dict[tuple[int, str], int] = {}
        had: set[tuple[int, str]] = set()
        for given in connection.given:
            came = given.id, given.value
            if given.value in place and given.is_subscribed and came not in had:
                had.add(came)
                publisher, published, number = place[given.value]
                topic = published.topic
                before = last.get((publisher, topic), -1)
                was_early = published.at < connection.subscriptions.get(topic, 0.0)
                if number < before and (
                    given.value in history.resent
                    or (was_early and history.excuses("nothing_comes_twice", given.at, given.at))
                ):
                    continue  # it came in its place, too
                if number < before and not history.excuses("order_holds", given.at, given.at):
                    yield f"{given.value!r} on {topic} came late to {connection.client}"
                last[publisher, topic] = number


def nodes_agree(history: History) -> Iterator[str]:
    """Nodes that are there go by one ring, whatever they are told of each other, and whichever process of them dies."""
    for each in history.troubles:
        is_long = each.kind == TWO_RINGS and each.until - each.since > SETTLED_S
        if is_long and not history.excuses("nodes_agree", each.since, each.until):
            yield f"there were two rings from {each.since:.6f} to {each.until:.6f}"


RULES = (
    each_call_has_one_answer,
    connections_last,
    refusals_have_a_reason,
    answers_come_in_time,
    answers_are_true,
    cancels_are_true,
    who_waits_meets,
    senders_are_served_in_turn,
    nothing_comes_twice,
    subscribers_miss_nothing,
    order_holds,
    nodes_agree,
)
