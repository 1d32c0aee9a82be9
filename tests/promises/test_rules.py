"""Made-up histories: each rule notices what breaks it, and only the trouble that is listed excuses from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.promises import libraries, rules
from tests.promises.excuses import (
    ENDS_UNHEARD,
    EXCUSES,
    GIVEN_UP_S,
    HEARD_LATE,
    ON_ITS_WAY,
    RELAY_STOPPED,
    RELAY_STOPPED_IN_A_RELOAD,
    SETTLED_S,
    STOPPED_IN_A_RELOAD,
    TWO_KILLS,
    TWO_RELOADS,
    TWO_RINGS,
)
from tests.promises.history import (
    CANCELLED,
    LOST,
    NEVER_S,
    TIMED_OUT,
    TRUE,
    UNANSWERED,
    UNKNOWN,
    VALUE,
    Call,
    Cancel,
    Connection,
    Copy,
    Given,
    History,
    Published,
    Stall,
    Stream,
    Trouble,
    full,
    value_of,
)

AT_S: Final = 100.0
"""When what breaks a rule happens."""

LONG_AGO_S: Final = 50.0


def connection(name: str, closed_at: float = NEVER_S) -> Connection:
    return Connection(name, 0.0, [], closed_at=closed_at, node="n1", worker=0)


def call(
    of: Connection, method: str, answer: str, ended_at: float, *, began_at: float = AT_S, lasts: float = 5.0
) -> Call:
    made = Call(of, len(of.calls), f":{method}!", "t", "v" if method == "send" else "", began_at, lasts, answer)
    made.answered_at, made.answers = ended_at, 1
    of.calls[made.id] = made
    return made


def give(of: Connection, at: float = AT_S, method: str = ":recv!", value: str = "v", id: int = 0) -> None:
    of.given.append(Given(at, of, method, id, "t", value))


def publish(of: Connection, *values: str, acked_at: float = AT_S) -> None:
    of.published += [Published(of, "t", value, AT_S, acked_at) for value in values]


def subscriber(closed_at: float = NEVER_S) -> Connection:
    made = connection("subscriber", closed_at)
    made.subscriptions["t"] = 1.0
    return made


# What breaks a rule.


def a_connection_is_lost() -> list[Connection]:
    return [connection("a", AT_S)]


def a_call_is_refused() -> list[Connection]:
    a = connection("a")
    call(a, "recv", "draining", AT_S)
    return [a]


def a_call_fails() -> list[Connection]:
    a = connection("a")
    call(a, "recv", "internal", AT_S)
    return [a]


def an_answer_is_late() -> list[Connection]:
    a = connection("a")
    call(a, "recv", TIMED_OUT, AT_S + 1.0, lasts=0.0)
    return [a]


def a_call_ends_early() -> list[Connection]:
    a = connection("a")
    call(a, "recv", TIMED_OUT, AT_S + 1.0)
    return [a]


def a_call_is_answered_twice() -> list[Connection]:
    a = connection("a")
    call(a, "recv", VALUE, AT_S).answers = 2
    return [a]


def a_call_is_not_answered() -> list[Connection]:
    a = connection("a")
    call(a, "recv", "nothing", NEVER_S)
    return [a]


def true_for_nobody() -> list[Connection]:
    a = connection("a")
    call(a, "send", TRUE, AT_S)
    return [a]


def told_that_nobody_came() -> list[Connection]:
    a, b = connection("a"), connection("b")
    call(a, "send", TIMED_OUT, AT_S + 5.0)
    give(b)
    return [a, b]


def cancelled_by_nobody() -> list[Connection]:
    a = connection("a")
    call(a, "recv", CANCELLED, AT_S)
    return [a]


def cancelled_and_told_otherwise() -> list[Connection]:
    a, b = connection("a"), connection("b")
    give(b)
    a.cancels[-1] = Cancel(call(a, "send", TRUE, AT_S), True)
    return [a, b]


def a_cancel_is_answered_first() -> list[Connection]:
    a, b = connection("a"), connection("b")
    call(b, "send", TRUE, AT_S).value = "v"
    cancelled = call(a, "recv", VALUE, AT_S)
    give(a, value="v")
    a.cancels |= {-1: Cancel(cancelled, False, is_early=True), -2: Cancel(cancelled, False)}
    return [a, b]


def test_a_second_cancel_is_answered_at_once() -> None:
    a, b = a_cancel_is_answered_first()
    a.cancels = dict(zip(a.cancels, reversed(a.cancels.values()), strict=True))
    assert broken([a, b]) == set()


def two_wait_in_vain() -> list[Connection]:
    a, b = connection("a"), connection("b")
    for of, method in ((a, "send"), (b, "recv")):
        call(of, method, TIMED_OUT, AT_S + 0.6, lasts=0.6)
    return [a, b]


def who_came_later_is_served_first() -> list[Connection]:
    a, b, c = (connection(name) for name in "abc")
    for of, value, began_at, served_at in ((a, "first", AT_S - 0.5, AT_S + 0.2), (b, "second", AT_S - 0.2, AT_S)):
        call(of, "send", TRUE, served_at, began_at=began_at).value = value
        give(c, served_at, value=value)
    return [a, b, c]


def a_value_comes_twice() -> list[Connection]:
    a = connection("a")
    give(a)
    give(a)
    return [a]


def two_take_a_value() -> list[Connection]:
    a, b = connection("a"), connection("b")
    give(a, method=":take!")
    give(b, method=":take!")
    return [a, b]


def a_subscriber_misses_something() -> list[Connection]:
    a = connection("a")
    publish(a, "v")
    return [a, subscriber()]


def what_is_published_is_overtaken() -> list[Connection]:
    a, b = connection("a"), connection("b")
    publish(a, "first", "second", acked_at=NEVER_S)
    a.closed_at, a.is_cut = AT_S, True
    for value in ("second", "first"):
        give(b, method="message", value=value)
    return [a, b]


def nobody_acks() -> list[Connection]:
    a = connection("a")
    publish(a, "v", acked_at=NEVER_S)
    return [a]


def a_library_is_late() -> list[Connection]:
    [a] = an_answer_is_late()
    a.library = True
    return [a]


def a_library_keeps_what_it_gave_back() -> list[Connection]:
    a = Connection("a", 0.0, [], library=True, acks=True)
    copy = Copy(AT_S, NEVER_S, answer=VALUE, value="v", is_acked=True, is_cancelled=True)
    call(a, "recv", CANCELLED, AT_S).copies.append(copy)
    a.cancels[-1] = Cancel(a.calls[0], True)
    return [a]


BREACHES: Final[Mapping[str, list[Callable[[], list[Connection]]]]] = {
    "each_call_has_one_answer": [a_call_is_answered_twice, a_call_is_not_answered, nobody_acks],
    "connections_last": [a_connection_is_lost],
    "refusals_have_a_reason": [a_call_is_refused, a_call_fails],
    "answers_come_in_time": [an_answer_is_late, a_call_ends_early],
    "answers_are_true": [told_that_nobody_came, true_for_nobody],
    "cancels_are_true": [cancelled_by_nobody, cancelled_and_told_otherwise, a_cancel_is_answered_first],
    "who_waits_meets": [two_wait_in_vain],
    "senders_are_served_in_turn": [who_came_later_is_served_first],
    "nothing_comes_twice": [a_value_comes_twice, two_take_a_value],
    "subscribers_miss_nothing": [a_subscriber_misses_something],
    "order_holds": [what_is_published_is_overtaken],
    "calls_of_a_library_end_in_time": [a_library_is_late],
    "a_library_keeps_no_value_that_it_gave_back": [a_library_keeps_what_it_gave_back],
}
"""By rule; what the first of them shows is what trouble may excuse."""

SHOWN_ELSEWHERE: Final = {"nodes_agree"} | {rule.__name__ for rule in libraries.RULES} - BREACHES.keys()
"""What only a simulated run knows enough of."""

KINDS: Final = sorted({kind for row in EXCUSES.values() for kind in row} | {"half open", "agent"})


def broken(connections: list[Connection], *troubles: Trouble, stalls: tuple[Stall, ...] = ()) -> set[str]:
    return {line.split(":")[0] for line in rules.broken(History(connections, 1, [*troubles], stalls=[*stalls]))}


def trouble(kind: str, at: float) -> list[Trouble]:
    if kind == TWO_RELOADS:
        return [Trouble("reload", node, at, at) for node in ("n1", "n2")]
    if kind == ENDS_UNHEARD:
        return [Trouble("leave", "n1", at, at), Trouble("stop", "n2", at, at, 0)]
    if kind == STOPPED_IN_A_RELOAD:
        return [Trouble("reload", "n1", at, at), Trouble("stop", "n1", at - 2 * GIVEN_UP_S, at)]
    if kind == RELAY_STOPPED_IN_A_RELOAD:
        return [Trouble("reload", "n1", at, at), Trouble(RELAY_STOPPED, "n1", at - 2 * GIVEN_UP_S, at)]
    if kind == TWO_KILLS:
        return [Trouble("kill", "n1", at, at, worker) for worker in (0, 1)]
    if kind == HEARD_LATE:
        return [Trouble("kill", "n1", at, at, 0), Trouble("stop", "n1", at, at)]
    return [Trouble(kind, "n1", at, at, 0)]


@pytest.mark.parametrize(
    ("rule", "breach"), [(rule, breach) for rule, breaches in BREACHES.items() for breach in breaches]
)
def test_each_rule_notices_what_breaks_it(rule: str, breach: Callable[[], list[Connection]]) -> None:
    assert broken(breach()) == {rule}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", BREACHES)
def test_only_the_trouble_that_is_listed_excuses_and_only_when_it_is_felt(rule: str, kind: str) -> None:
    breach, *never_excused = BREACHES[rule]
    listed = {*EXCUSES.get(rule, {}), *(EXCUSES[ON_ITS_WAY] if rule == "connections_last" else ())}
    is_excuse = not listed.isdisjoint({kind, *(each.kind for each in trouble(kind, AT_S))})
    assert broken(breach(), *trouble(kind, AT_S)) == (set() if is_excuse else {rule})
    assert broken(breach(), *trouble(kind, AT_S - LONG_AGO_S)) == {rule}
    for each in never_excused:
        if rule != "nothing_comes_twice":
            assert rule in broken(each(), *trouble(kind, AT_S))


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_go_by_two_rings_only_as_long_as_something_is_wrong_with_one_of_them(kind: str) -> None:
    is_excuse = any(each.kind in EXCUSES["nodes_agree"] for each in trouble(kind, AT_S))
    for lasts_s, is_noticed in ((SETTLED_S, False), (SETTLED_S + 0.01, True)):
        two = Trouble(TWO_RINGS, "n1", AT_S, AT_S + lasts_s)
        assert broken([], two) == ({"nodes_agree"} if is_noticed else set())
        assert broken([], two, *trouble(kind, AT_S)) == ({"nodes_agree"} if is_noticed and not is_excuse else set())
        assert broken([], two, *trouble(kind, AT_S - LONG_AGO_S)) == ({"nodes_agree"} if is_noticed else set())


IN_TURN: Final = "senders_are_served_in_turn"


@pytest.mark.parametrize(
    ("came_s", "waited_s", "holds"), [(0.11, 0.11, False), (0.09, 0.11, True), (0.11, 0.09, True), (-0.3, 0.5, True)]
)
def test_who_clearly_came_first_and_waited_for_long_was_to_be_served_first(
    came_s: float, waited_s: float, holds: bool
) -> None:
    a, b, c = who_came_later_is_served_first()
    b.calls[0].at = a.calls[0].at + came_s
    a.calls[0].answered_at = c.given[0].at = AT_S + waited_s
    assert broken([a, b, c]) == (set() if holds else {IN_TURN})


@pytest.mark.parametrize("answer", [TIMED_OUT, UNKNOWN])
def test_who_is_never_served_waits_in_turn_as_well(answer: str) -> None:
    a, b, c = who_came_later_is_served_first()
    a.calls[0].answer, a.calls[0].timeout_s = answer, 0.7
    del c.given[0]
    assert broken([a, b, c]) == {IN_TURN}


@pytest.mark.parametrize(
    ("waited_s", "by_one", "holds"), [(0.01, True, False), (0.01, False, True), (0.11, False, False)]
)
def test_what_one_connection_sent_comes_in_that_order_to_another(waited_s: float, by_one: bool, holds: bool) -> None:
    a, b, c = (connection(name) for name in "abc")
    for value, served_at in (("first", AT_S + waited_s), ("second", AT_S)):
        call(a, "send", TRUE, served_at).value = value
    give(b, AT_S, value="second")
    give(b if by_one else c, AT_S + waited_s, value="first")
    assert broken([a, b, c]) == (set() if holds else {IN_TURN})


@pytest.mark.parametrize(
    ("began_s", "ended_s", "answer", "holds"),
    [
        (-0.1, 0.05, TIMED_OUT, True),
        (-0.1, 0.05, CANCELLED, True),
        (-0.1, 0.05, LOST, True),
        (-0.1, 0.05, VALUE, False),
        (-0.1, 0.2, LOST, False),
        (-0.3, 0.05, LOST, False),
        (-0.3, -0.2, LOST, False),
    ],
)
def test_what_was_on_its_way_to_a_listener_that_ended_may_be_overtaken(
    began_s: float, ended_s: float, answer: str, holds: bool
) -> None:
    a, b, c = who_came_later_is_served_first()
    lost = connection("lost", AT_S + ended_s if answer == LOST else NEVER_S)
    lost.is_cut = True
    ended = call(lost, "recv", answer, AT_S + ended_s, began_at=AT_S + began_s, lasts=ended_s - began_s - 0.01)
    if answer == CANCELLED:
        lost.cancels[-1] = Cancel(ended, True)
    assert broken([a, b, c, lost]) == (set() if holds else {IN_TURN})
    ended.topic = "u"
    assert broken([a, b, c, lost]) == {IN_TURN}


@pytest.mark.parametrize(("ended_s", "holds"), [(0.05, True), (0.15, False)])
def test_a_listener_whose_client_stands_still_ended_when_its_time_was_over(ended_s: float, holds: bool) -> None:
    a, b, c = who_came_later_is_served_first()
    d = connection("d")
    call(d, "recv", TIMED_OUT, AT_S + 2.0, began_at=AT_S - 0.1, lasts=ended_s + 0.1)
    d.stops.append(Trouble("slow client", "d", AT_S, AT_S + 2.0))
    assert broken([a, b, c, d]) == (set() if holds else {IN_TURN})


@pytest.mark.parametrize("copies", [0, 1, 2])
def test_when_a_node_has_what_a_library_sends_is_known_if_it_does_so_once(copies: int) -> None:
    a, b, c = who_came_later_is_served_first()
    a.library = True
    a.calls[0].copies += [Copy(AT_S - 0.5, NEVER_S, answer=TRUE, answered_at=AT_S + 0.2) for _ in range(copies)]
    assert broken([a, b, c]) == ({IN_TURN} if copies == 1 else set())


def what_is_published_comes_again(*, in_order: bool) -> list[Connection]:
    a, b = connection("a"), connection("b")
    publish(a, "first", "second", acked_at=NEVER_S)
    a.closed_at, a.is_cut = AT_S, True
    once = ("first", "second") if in_order else ("second", "first")
    for value in (*once, "first", "second"):
        give(b, method="message", value=value)
    return [a, b]


def test_what_comes_once_more_comes_out_of_no_order_if_it_came_in_its_place() -> None:
    assert broken(what_is_published_comes_again(in_order=True)) == {"nothing_comes_twice"}
    assert broken(what_is_published_comes_again(in_order=True), *trouble("link reset", AT_S)) == set()
    assert broken(what_is_published_comes_again(in_order=False), *trouble("link reset", AT_S)) == {"order_holds"}


@pytest.mark.parametrize(("acked_s", "excused"), [(0.05, True), (0.06, False)])
def test_what_is_on_its_way_to_a_node_that_dies_is_lost(acked_s: float, excused: bool) -> None:
    death = Trouble("death", "n1", AT_S + acked_s, AT_S + acked_s)
    assert broken(a_subscriber_misses_something(), death) == (set() if excused else {"subscribers_miss_nothing"})


@pytest.mark.parametrize(("lost_at", "has_reason"), [(AT_S + 0.01, True), (AT_S + 0.03, False), (AT_S - 1.0, False)])
def test_a_library_does_not_know_what_became_of_a_send_whose_connection_was_lost(
    lost_at: float, has_reason: bool
) -> None:
    a = Connection("a", 0.0, [], library=True, losses=[lost_at])
    call(a, "send", UNKNOWN, AT_S + 0.04, lasts=0.001).copies.append(Copy(AT_S + 0.02, NEVER_S, answer=TIMED_OUT))
    assert broken([a]) == (set() if has_reason else {"a_library_says_unknown_for_a_reason"})


@pytest.mark.parametrize(("answer", "waited"), [(TIMED_OUT, True), (VALUE, False), (UNANSWERED, False)])
def test_a_call_of_a_library_waits_in_vain_only_if_a_node_says_so(answer: str, waited: bool) -> None:
    a, b = two_wait_in_vain()
    b.calls[0].copies.append(Copy(AT_S, NEVER_S, answer=answer))
    assert broken([a, b]) == ({"who_waits_meets"} if waited else set())


@pytest.mark.parametrize(("at", "acked_at"), [(AT_S - 1, NEVER_S), (AT_S - 1, AT_S + 0.5), (AT_S + 0.5, NEVER_S)])
def test_what_is_to_follow_an_ack_is_lost_with_the_connection(at: float, acked_at: float) -> None:
    a, b = a_subscriber_misses_something()
    b.published.append(Published(b, "u", "own", at, acked_at))
    b.closed_at, b.is_cut = AT_S + 1.0, True
    waits = at <= AT_S and acked_at > b.closed_at
    assert broken([a, b]) == (set() if waits else {"subscribers_miss_nothing"})


def test_a_call_of_a_subscriber_takes_nothing_from_its_subscription() -> None:
    a, b = a_subscriber_misses_something()
    give(b, method=":recv!")
    assert broken([a, b]) == {"subscribers_miss_nothing"}


def test_a_library_may_publish_again_what_a_call_takes_as_bytes() -> None:
    a, b = connection("a"), connection("b")
    a.resent.add("v")
    for _ in range(2):
        give(b, method=":take!", value=value_of(b"v"))
    assert broken([a, b]) == set()


def test_the_rules_are_those_whose_breach_is_shown() -> None:
    names = {rule.__name__ for rule in (*rules.RULES, *libraries.RULES)}
    assert names - BREACHES.keys() == SHOWN_ELSEWHERE


@pytest.mark.parametrize(
    ("node", "worker", "ago_s", "excused"),
    [("n1", 0, 1.9, True), ("n1", 1, 0.04, True), ("n1", 1, 0.06, False), ("n2", 0, 0.0, False)],
)
def test_a_death_costs_the_connections_of_that_worker_and_those_on_their_way(
    node: str, worker: int, ago_s: float, excused: bool
) -> None:
    kill = Trouble("kill", node, AT_S - ago_s, AT_S - ago_s, worker)
    assert broken(a_connection_is_lost(), kill) == (set() if excused else {"connections_last"})


@pytest.mark.parametrize(
    ("node", "goes_on_s", "excused"), [("n1", 0.04, True), ("n1", 0.06, False), ("n2", 0.04, False)]
)
def test_a_worker_that_stands_still_closes_what_was_on_its_way_to_a_dead_one_once_it_goes_on(
    node: str, goes_on_s: float, excused: bool
) -> None:
    kill = Trouble("kill", "n1", AT_S - 0.5, AT_S - 0.5, 1)
    stop = Trouble("stop", node, AT_S - 0.7, AT_S - goes_on_s)
    assert broken(a_connection_is_lost(), kill, stop) == (set() if excused else {"connections_last"})


@pytest.mark.parametrize(("node", "seconds", "excused"), [("n1", 0.4, True), ("n1", 0.2, False), ("n2", 0.4, False)])
def test_a_value_may_come_twice_if_a_worker_stood_still_for_long_while_its_own_node_was_reloaded(
    node: str, seconds: float, excused: bool
) -> None:
    reload, stop = Trouble("reload", "n1", AT_S - 0.1, AT_S + 0.1), Trouble("stop", node, AT_S - seconds, AT_S)
    assert broken(a_value_comes_twice(), reload, stop) == (set() if excused else {"nothing_comes_twice"})


@pytest.mark.parametrize(
    ("kind", "node", "seconds", "excused"),
    [
        (RELAY_STOPPED, "n1", 0.4, True),
        (RELAY_STOPPED, "n1", 0.2, False),
        (RELAY_STOPPED, "n2", 0.4, False),
        ("stop", "n2", 0.4, False),
    ],
)
def test_who_is_replaced_is_overtaken_if_one_stood_still_for_long_through_which_others_are_linked_to_its_node(
    kind: str, node: str, seconds: float, excused: bool
) -> None:
    reload, stop = Trouble("reload", "n1", AT_S - 0.1, AT_S + 0.1), Trouble(kind, node, AT_S - seconds, AT_S)
    assert broken(what_is_published_is_overtaken(), reload, stop) == (set() if excused else {"order_holds"})
    assert broken(what_is_published_is_overtaken(), stop) == {"order_holds"}
    assert broken(a_value_comes_twice(), reload, stop) == {"nothing_comes_twice"}


def test_a_client_that_stands_still_is_late_by_itself() -> None:
    [a] = an_answer_is_late()
    a.stops.append(Trouble("slow client", "a", AT_S + 0.5, AT_S + 0.9))
    assert broken([a]) == set()


@pytest.mark.parametrize(("full_s", "excused"), [(0.95, True), (0.5, False)])
def test_what_a_client_that_takes_nothing_says_is_heard_later(full_s: float, excused: bool) -> None:
    [a] = an_answer_is_late()
    a.full.append((AT_S - 1.0, AT_S + full_s))
    assert broken([a]) == (set() if excused else {"answers_come_in_time"})


@pytest.mark.parametrize(
    ("opened_s", "reloaded_s", "excused"),
    [(-0.01, -0.05, True), (-0.01, -0.2, False), (-0.9, -0.9, False), (-10.0, -0.01, False)],
)
def test_so_is_the_answer_of_a_worker_that_had_yet_to_open(opened_s: float, reloaded_s: float, excused: bool) -> None:
    a = connection("a")
    a.opened_at = AT_S + opened_s
    call(a, "recv", TIMED_OUT, AT_S + 1.3, lasts=1.0)
    reload = Trouble("reload", "n1", AT_S + reloaded_s, AT_S + reloaded_s + 0.01)
    assert broken([a], reload) == (set() if excused else {"answers_come_in_time"})
    assert broken([a]) == {"answers_come_in_time"}


@pytest.mark.parametrize(("seconds", "excused"), [(1.0, True), (0.9, False)])
def test_an_answer_may_be_as_late_as_the_machine_was(seconds: float, excused: bool) -> None:
    stalls = (Stall(AT_S, AT_S + 1.0, seconds),)
    assert broken(an_answer_is_late(), stalls=stalls) == (set() if excused else {"answers_come_in_time"})
    [a, b] = two_wait_in_vain()
    assert broken([a, b], stalls=stalls) == set()
    assert broken(who_came_later_is_served_first(), stalls=stalls) == set()


@pytest.mark.parametrize(
    ("is_whole", "acks", "lost_at", "is_true"),
    [
        (False, False, AT_S, True),
        (True, False, AT_S, False),
        (False, True, AT_S, False),
        (False, False, AT_S - 1.0, False),
    ],
)
def test_who_was_lost_while_it_waited_may_have_had_a_value(
    is_whole: bool, acks: bool, lost_at: float, is_true: bool
) -> None:
    [a] = true_for_nobody()
    lost = connection("lost", lost_at)
    lost.is_whole, lost.acks, lost.is_cut = is_whole, acks, True
    call(lost, "recv", LOST, lost_at, began_at=AT_S - 2.0)
    assert broken([a, lost]) == (set() if is_true else {"answers_are_true"})
    again = connection("again")
    call(again, "send", TRUE, AT_S).value = "another"
    assert broken([a, lost, again]) == {"answers_are_true"}, "one had one value at most"


@pytest.mark.parametrize(
    ("is_cut", "lost_s", "killed_s", "is_true"),
    [
        (True, -0.04, NEVER_S, True),
        (True, -0.06, NEVER_S, False),
        (True, -1.0, -1.1, True),
        (True, -1.0, -0.9, False),
        (True, -1.0, -4.0, False),
        (False, -1.0, -1.1, False),
    ],
)
@pytest.mark.parametrize("subscribes", ["subscriptions", "topics", "no"])
def test_so_may_one_whose_node_had_not_read_that_it_was_gone(
    subscribes: str, is_cut: bool, lost_s: float, killed_s: float, is_true: bool
) -> None:
    [a] = true_for_nobody()
    lost = subscriber(AT_S + lost_s)
    lost.is_whole, lost.is_cut = False, is_cut
    if subscribes != "subscriptions":
        lost.subscriptions.clear()
    if subscribes == "topics":
        lost.topics[0] = "t"
    kill = Trouble("kill", "n1", AT_S + killed_s, AT_S + killed_s + 0.3)
    assert broken([a, lost], kill) == (set() if is_true and subscribes != "no" else {"answers_are_true"})


@pytest.mark.parametrize(("stalled_s", "is_true"), [(0.3, True), (0.2, False)])
def test_so_may_one_that_did_not_come_to_read_it_before_it_was_lost(stalled_s: float, is_true: bool) -> None:
    [a] = true_for_nobody()
    lost = subscriber(AT_S + 0.3)
    lost.is_whole, lost.is_cut = False, True
    assert broken([a, lost]) == {"answers_are_true"}
    stall = Stall(AT_S + 0.3 - stalled_s, AT_S + 0.3, stalled_s)
    assert broken([a, lost], stalls=(stall,)) == (set() if is_true else {"answers_are_true"})


@pytest.mark.parametrize(("came", "got", "holds"), [(1, ["v"], True), (0, ["v"], False), (2, ["v"], False)])
def test_a_stream_misses_what_a_kernel_took_for_a_connection_that_was_gone_without_a_word(
    came: int, got: list[str], holds: bool
) -> None:
    a, b = connection("a"), subscriber(AT_S)
    call(a, "send", TRUE, AT_S).value = "v2"
    b.is_cut, b.came = True, came
    for value in ("v", "v2"):
        give(b, method="message", value=value)
    history = History([a, b], 1, [], [Stream("b", [b], [], got)])
    assert {line.split(":")[0] for line in rules.broken(history)} == (set() if holds else {"streams_yield_what_came"})


@pytest.mark.parametrize(
    ("got", "holds"),
    [
        (["v", "v2", "v3"], True),
        (["v", "v2", "v2", "v3"], True),
        (["v", "v3"], False),
        (["v", "v2", "v2"], False),
        (["v", "v2", "v2", "v2", "v3"], False),
    ],
)
def test_a_value_that_came_over_two_connections_may_be_lost_with_the_first(got: list[str], holds: bool) -> None:
    first, second = subscriber(AT_S), subscriber()
    first.is_cut = True
    for each, values in ((first, ("v", "v2")), (second, ("v2", "v3"))):
        for value in values:
            give(each, method="message", value=value)
    history = History([], 1, [], [Stream("b", [first, second], [], got, gaps=1)])
    assert {line.split(":")[0] for line in rules.broken(history)} == (set() if holds else {"streams_yield_what_came"})


@pytest.mark.parametrize(("gaps", "holds"), [(0, False), (1, True), (3, True), (4, False)])
def test_a_program_is_told_of_a_gap_for_each_connection_that_has_all_its_topics(gaps: int, holds: bool) -> None:
    connections = [subscriber() for _ in range(4)]  # of which the last but one had half of them
    for each in (*connections[:2], connections[3]):
        each.subscriptions["t2"] = 1.0
    history = History([], 1, [], [Stream("b", connections, [], [], gaps=gaps)])
    assert {line.split(":")[0] for line in rules.broken(history)} == (set() if holds else {"streams_yield_what_came"})


def test_what_had_been_handed_out_before_one_subscribed_may_come_again_if_it_is_in_doubt() -> None:
    a, b = what_is_published_is_overtaken()
    b.subscriptions["t"] = AT_S + 0.1
    kill = Trouble("kill", "n1", AT_S, AT_S, 0)
    assert broken([a, b], kill) == set()
    assert broken([a, b]) == {"order_holds"}
    b.subscriptions["t"] = 0.0
    assert broken([a, b], kill) == {"order_holds"}


@pytest.mark.parametrize(("killed_s", "excused"), [(3.0, True), (5.001, True), (5.1, False)])
def test_what_a_worker_handed_out_is_in_doubt_from_when_it_stood_still_if_it_is_killed_before_it_goes_on(
    killed_s: float, excused: bool
) -> None:
    stop, kill = Trouble("stop", "n1", AT_S, AT_S + 5.0, 0), Trouble("kill", "n1", AT_S + killed_s, AT_S + killed_s, 0)
    assert broken(two_take_a_value(), stop, kill) == (set() if excused else {"nothing_comes_twice"})
    assert broken(two_take_a_value(), stop) == broken(two_take_a_value(), kill) == {"nothing_comes_twice"}
    other = Trouble("kill", "n2", AT_S + killed_s, AT_S + killed_s, 0)
    assert broken(two_take_a_value(), stop, other) == {"nothing_comes_twice"}


def test_whose_listener_had_no_room_may_be_overtaken_by_what_followed_at_once() -> None:
    a, b = connection("a"), connection("b")
    for value, served_at in (("first", AT_S + 0.01), ("second", AT_S)):
        call(a, "send", TRUE, served_at).value = value
        call(b, "recv", VALUE, served_at)
    for value, served_at in (("second", AT_S), ("first", AT_S + 0.01)):
        give(b, served_at, value=value)
    assert broken([a, b]) == {IN_TURN}
    b.full = [(AT_S - 0.01, AT_S)]
    assert broken([a, b]) == set()
    b.full = [(AT_S - 0.05, AT_S - 0.04)]
    assert broken([a, b]) == {IN_TURN}


@pytest.mark.parametrize(
    ("full_s", "began_s", "ended_s", "answer", "holds"),
    [
        ((-0.3, 0.5), -0.4, 0.5, LOST, True),
        ((-0.3, NEVER_S), -0.4, -0.2, TIMED_OUT, True),  # its value was on its way, which has no time
        ((-0.3, -0.02), -0.4, 0.5, VALUE, True),
        ((-0.3, -0.05), -0.4, 0.5, VALUE, False),
        ((0.05, 0.5), -0.4, 0.5, LOST, False),
        ((-0.3, 0.5), 0.05, 0.5, LOST, False),
        ((-0.3, 0.5), -0.4, -0.1, VALUE, False),
        ((-0.1, 0.5), -0.4, -0.2, TIMED_OUT, False),
    ],
)
def test_what_is_on_its_way_to_a_listener_that_takes_nothing_may_be_overtaken(
    full_s: tuple[float, float], began_s: float, ended_s: float, answer: str, holds: bool
) -> None:
    a, b, c = who_came_later_is_served_first()
    idle = connection("idle", AT_S + ended_s if answer == LOST else NEVER_S)
    idle.is_cut = True
    call(idle, "recv", answer, AT_S + ended_s, began_at=AT_S + began_s, lasts=ended_s - began_s - 0.01)
    span = AT_S + full_s[0], AT_S + full_s[1]
    idle.full = [span]
    assert broken([a, b, c, idle]) == (set() if holds else {IN_TURN})
    idle.full = []
    assert broken([a, b, c, idle]) == {IN_TURN}
    idle.stops.append(Trouble("slow client", "idle", *span))
    assert broken([a, b, c, idle]) == {IN_TURN}
    idle.is_whole = False
    assert broken([a, b, c, idle]) == (set() if holds else {IN_TURN}), "it may have taken nothing then"


def test_what_a_library_is_given_over_a_connection_that_takes_nothing_is_on_its_way_until_its_time_is_over() -> None:
    a, b, c = who_came_later_is_served_first()
    d = Connection("d", 0.0, [], library=True)
    copy = Copy(AT_S - 0.4, NEVER_S, AT_S - 0.3, full=[(AT_S - 0.3, NEVER_S)])
    call(d, "recv", TIMED_OUT, AT_S - 0.2, began_at=AT_S - 0.4, lasts=0.2).copies.append(copy)
    assert broken([a, b, c, d]) == set()
    copy.full.clear()
    assert broken([a, b, c, d]) == {IN_TURN}


@pytest.mark.parametrize(("since_s", "holds"), [(-0.15, True), (-0.02, False)])
def test_who_was_served_by_somebody_that_took_nothing_may_have_been_so_before(since_s: float, holds: bool) -> None:
    a, b, c = who_came_later_is_served_first()
    c.full = [(AT_S + since_s, AT_S)]
    lost = connection("lost", AT_S - 0.2)
    lost.is_cut = True
    call(lost, "recv", LOST, AT_S - 0.2, began_at=AT_S - 0.25)
    assert broken([a, b, c, lost]) == (set() if holds else {IN_TURN}), "the first was on its way to another one then"


@pytest.mark.parametrize(("stood_still_until", "holds"), [(AT_S + 0.6, True), (AT_S + 0.4, False)])
def test_who_stood_still_may_have_been_answered_since(stood_still_until: float, holds: bool) -> None:
    a, b, c = who_came_later_is_served_first()
    first = a.calls[0]
    first.answer, first.answered_at = CANCELLED, AT_S + 0.6
    a.cancels[-1] = Cancel(first, True)
    del c.given[0]
    a.stops.append(Trouble("slow client", "a", AT_S - 0.4, stood_still_until))
    assert broken([a, b, c]) == (set() if holds else {IN_TURN})


@pytest.mark.parametrize(
    ("node", "opened_s", "holds"),
    [("n1", -0.5, True), ("n1", -0.64, True), ("n1", -0.66, False), ("", -0.5, True)],
)
def test_who_came_to_a_worker_that_replaces_another_one_is_heard_once_that_has_opened(
    node: str, opened_s: float, holds: bool
) -> None:
    a, b, c = who_came_later_is_served_first()
    a.node, a.opened_at = node, AT_S + opened_s
    reload = Trouble("reload", "n1", AT_S - 1.0, AT_S + 1.0)
    assert broken([a, b, c], reload) == (set() if holds else {IN_TURN})
    reload.until = a.opened_at - 0.2
    assert broken([a, b, c], reload) == {IN_TURN}
    a.opened_at, a.library = 0.0, True
    reload.until = AT_S + 1.0
    copy = Copy(AT_S - 0.5, NEVER_S, opened_at=AT_S + opened_s, answer=TRUE, answered_at=AT_S + 0.2)
    a.calls[0].copies.append(copy)
    assert broken([a, b, c], reload) == (set() if holds else {IN_TURN})


@pytest.mark.parametrize(("ended_s", "holds"), [(1.0, True), (-0.84, True), (-0.86, False)])
def test_so_is_what_comes_to_it_from_another_node(ended_s: float, holds: bool) -> None:
    a, b, c = who_came_later_is_served_first()
    a.node = "n2"
    assert broken([a, b, c], Trouble("reload", "n1", AT_S - 1.0, AT_S + ended_s)) == (set() if holds else {IN_TURN})


@pytest.mark.parametrize(
    ("begins_s", "ends_s", "holds"), [(-0.48, -0.25, True), (-0.46, 0, False), (-0.6, -0.31, False)]
)
def test_who_takes_nothing_is_not_heard(begins_s: float, ends_s: float, holds: bool) -> None:
    a, b, c = who_came_later_is_served_first()
    a.full = [(AT_S + begins_s, AT_S + ends_s)]
    assert broken([a, b, c]) == (set() if holds else {IN_TURN})


def test_what_is_sent_by_one_library_may_go_several_ways() -> None:
    a, b = connection("a"), connection("b")
    for value, served_at in (("first", AT_S + 0.2), ("second", AT_S)):
        call(a, "send", TRUE, served_at, began_at=AT_S - 0.01).value = value
        give(b, served_at, value=value)
    assert broken([a, b]) == {IN_TURN}
    a.library = True
    for each in a.calls.values():
        each.copies.append(Copy(each.at, NEVER_S, answer=TRUE, answered_at=each.answered_at))
    assert broken([a, b]) == set()


@pytest.mark.parametrize("kind", ["link reset", "link half open", "death"])
@pytest.mark.parametrize("before", ["stop", "part"])
def test_what_was_not_heard_before_a_link_was_lost_is_in_doubt(before: str, kind: str) -> None:
    unheard, lost = Trouble(before, "n1", AT_S, AT_S + 2.0), Trouble(kind, "n2", AT_S + 1.5, AT_S + 1.5)
    assert broken(a_value_comes_twice(), unheard, lost) == set()
    assert broken(a_value_comes_twice(), unheard) == broken(a_value_comes_twice(), lost) == {"nothing_comes_twice"}
    unheard.until = AT_S + 1.0
    assert broken(a_value_comes_twice(), unheard, lost) == {"nothing_comes_twice"}


@pytest.mark.parametrize(("late_s", "holds"), [(0.063, True), (0.065, False)])
def test_an_answer_takes_its_way(late_s: float, holds: bool) -> None:
    [a] = an_answer_is_late()
    a.calls[0].answered_at = AT_S + late_s
    assert broken([a]) == (set() if holds else {"answers_come_in_time"})


@pytest.mark.parametrize(
    ("taken", "spans"),
    [
        ([(1.0, b"a"), (2.0, b"b")], []),
        ([(1.0, b"a"), (1.0, b""), (2.0, b"b")], [(1.0, 2.0)]),
        ([(1.0, b""), (2.0, b"b"), (2.0, b""), (3.0, b""), (4.0, b"c"), (5.0, b"d")], [(1.0, 4.0)]),
        ([(1.0, b"a"), (1.0, b"")], [(1.0, 9.0)]),
    ],
)
def test_a_kernel_takes_no_more_until_it_takes_all(
    taken: list[tuple[float, bytes]], spans: list[tuple[float, float]]
) -> None:
    assert [*full(taken, 9.0)] == spans


def test_who_came_while_its_worker_stood_still_may_have_been_heard_later() -> None:
    a, b, c = who_came_later_is_served_first()
    assert broken([a, b, c], Trouble("stop", "n1", a.calls[0].at, a.calls[0].at, 0)) == set()


def test_what_a_killed_worker_had_said_to_who_was_parted_from_it_arrives_once_they_are_not() -> None:
    part, kill = Trouble("part", "n1", AT_S - 2.0, AT_S - 0.1), Trouble("kill", "n2", AT_S - 1.5, AT_S - 1.5, 0)
    assert broken(two_take_a_value(), part, kill) == set()
    assert broken(two_take_a_value(), part) == broken(two_take_a_value(), kill) == {"nothing_comes_twice"}
    before = Trouble("kill", "n2", AT_S - 2.5, AT_S - 2.5, 0)
    assert broken(two_take_a_value(), part, before) == {"nothing_comes_twice"}


@pytest.mark.parametrize(("parted_s", "holds"), [(0.04, True), (0.06, False)])
def test_what_was_on_its_way_as_nodes_were_parted_is_in_doubt_if_a_worker_dies(parted_s: float, holds: bool) -> None:
    part, kill = Trouble("part", "n1", AT_S + parted_s, AT_S + 2.0), Trouble("kill", "n2", AT_S + 1.5, AT_S + 1.5, 0)
    assert broken(a_value_comes_twice(), part, kill) == (set() if holds else {"nothing_comes_twice"})


@pytest.mark.parametrize("kind", ["leave", "reload"])
@pytest.mark.parametrize(("lasts_s", "holds"), [(1.0, True), (0.9, False)])
def test_a_worker_that_leaves_ends_before_it_hears_of_a_node_that_is_parted_for_long(
    kind: str, lasts_s: float, holds: bool
) -> None:
    part, leave = Trouble("part", "n1", AT_S, AT_S + lasts_s), Trouble(kind, "n2", AT_S + 0.1, AT_S + 1.5)
    assert broken(a_value_comes_twice(), part, leave) == (set() if holds else {"nothing_comes_twice"})


def test_what_a_killed_worker_had_said_to_who_was_parted_from_it_comes_late() -> None:
    part, kill = Trouble("part", "n1", AT_S - 2.0, AT_S - 0.1), Trouble("kill", "n2", AT_S - 1.5, AT_S - 1.5, 0)
    assert broken(what_is_published_is_overtaken(), part, kill) == set()
    assert broken(what_is_published_is_overtaken(), part) == {"order_holds"}


@pytest.mark.parametrize("subscribes", [True, False])
@pytest.mark.parametrize(("topic", "holds"), [("t", True), ("t2", False)])
def test_a_value_on_its_way_to_somebody_whose_kernel_takes_nothing_is_not_given_to_who_comes(
    topic: str, holds: bool, subscribes: bool
) -> None:
    slow = connection("slow")
    if subscribes:
        slow.subscriptions[topic] = 1.0
    else:
        call(slow, "recv", TIMED_OUT, AT_S - 0.2, began_at=AT_S - 0.3, lasts=0.1).topic = topic
    slow.full.append((AT_S - 0.1, NEVER_S))
    assert broken([*two_wait_in_vain(), slow]) == (set() if holds else {"who_waits_meets"})
