from __future__ import annotations

import dataclasses
import itertools
import math
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skywalker.deadlines import Deadlines
from skywalker.junction import Call as JunctionCall
from skywalker.junction import Junction
from tests.calls import Listener, Send
from tests.helpers import eventually
from tests.history import (
    Call,
    History,
    Kind,
    Outcome,
    Recorder,
    Rule,
    check,
)
from tests.history import _Span as Span
from tests.history import _without_partner as without_partner

# Histories of the real junction, in simulated time.

LATENCY_S = 0.001


@dataclasses.dataclass(eq=False)
class SimulatedCall:
    """A call as its client sees it, and whether the node has it."""

    id: str
    kind: Kind
    topic: str
    group: str | None
    connection: str
    timeout: float
    start: float
    value: str | None
    outcome: Outcome = Outcome.UNANSWERED
    end: float = math.inf


class SimulatedSend(Send):
    def __init__(self, node: SimulatedNode, call: SimulatedCall) -> None:
        super().__init__(call.topic.encode(), node.now, str(call.value).encode())
        self.node = node
        self.call = call

    def met(self) -> None:
        self.node.answer(self.call, Outcome.TRUE)

    def missed(self) -> None:
        self.node.junction.resume(self)


class SimulatedListener(Listener):
    def __init__(self, node: SimulatedNode, call: SimulatedCall) -> None:
        super().__init__(call.topic.encode(), node.now, call.group and call.group.encode())
        self.node = node
        self.call = call

    def give(self, send: JunctionCall) -> bool:
        assert isinstance(send, SimulatedSend)
        if self.call.connection in self.node.closed:
            return False
        self.node.written.append((send, self))
        return True


@dataclasses.dataclass(frozen=True)
class Step:
    """One thing that happens to a node."""

    pause: float
    kind: Kind | None  # None: the connection is lost
    topic: str
    group: str
    connection: str
    timeout: float
    writes_fail: bool


class SimulatedNode:
    """A junction with deadlines and connections, all of whose calls are recorded."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.junction = Junction()
        self.deadlines = Deadlines()
        self.waiters: list[SimulatedSend | SimulatedListener] = []
        self.closed: dict[str, float] = {}
        self.written: list[tuple[SimulatedSend, SimulatedListener]] = []

    def step(self, step: Step) -> None:
        self.pass_time(step.pause)
        # A connection that was lost is another one after that.
        connection = f"{step.connection}{sum(each.startswith(step.connection) for each in self.closed)}"
        if step.kind is None:
            self.close(connection)
        else:
            self.call(step, connection)
        self.settle(step.writes_fail)

    def call(self, step: Step, connection: str) -> None:
        assert step.kind is not None
        number = len(self.waiters)
        group = step.group if step.kind is Kind.TAKE else None
        value = f"value {number}" if step.kind is Kind.SEND else None
        start = self.now - LATENCY_S
        call = SimulatedCall(str(number), step.kind, step.topic, group, connection, step.timeout, start, value)
        waiter: SimulatedSend | SimulatedListener
        if step.kind is Kind.SEND:
            waiter = SimulatedSend(self, call)
            found = self.junction.send(waiter)
        else:
            waiter = SimulatedListener(self, call)
            found = self.junction.listen(waiter)
        self.waiters.append(waiter)
        if not found:
            self.junction.wait(waiter)
        self.deadlines.add(waiter, self.now + step.timeout)

    def settle(self, writes_fail: bool) -> None:
        """Write values out, or fail to, and tell the junction."""
        while self.written:
            send, listener = self.written.pop(0)
            if writes_fail:
                self.close(listener.call.connection)
                writes_fail = False
            if listener.call.connection in self.closed:
                self.junction.lost(send)
            else:
                listener.call.value = send.value.decode()
                self.answer(listener.call, Outcome.VALUE)
                self.junction.confirm(send)

    def close(self, connection: str) -> None:
        self.closed[connection] = self.now
        for waiter in self.waiters:
            if waiter.call.connection == connection and waiter.call.outcome is Outcome.UNANSWERED:
                self.junction.withdraw(waiter)
                if isinstance(waiter, Send):
                    waiter.answered = True
                self.answer(waiter.call, Outcome.LOST)

    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while (wait := self.deadlines.wait(self.now)) is not None and self.now + wait < until:
            self.now += max(wait, 1e-6)
            for waiter in self.deadlines.due(self.now):
                if self.junction.withdraw(waiter):
                    self.answer(waiter.call, Outcome.TIMEOUT)
        self.now = until

    def answer(self, call: SimulatedCall, outcome: Outcome) -> None:
        if call.outcome is Outcome.UNANSWERED:
            call.outcome = outcome
            call.end = self.now + LATENCY_S

    def history(self) -> History:
        calls = [Call(**vars(waiter.call)) for waiter in self.waiters]
        return History(calls, {connection: [at] for connection, at in self.closed.items()}, end=self.now)


def steps(*, calm: bool) -> st.SearchStrategy[list[Step]]:
    return st.lists(
        st.builds(
            Step,
            pause=st.sampled_from([0.0, 0.0, 0.01, 0.3]),
            kind=st.sampled_from([*Kind, *Kind] if calm else [*Kind, *Kind, None]),
            topic=st.sampled_from(["a", "a", "b"]),
            group=st.sampled_from(["g", "h"]),
            connection=st.sampled_from("xyz"),
            timeout=st.sampled_from([0.0, 0.05, 0.5, 5.0]),
            writes_fail=st.just(False) if calm else st.sampled_from([False, False, True]),
        ),
        max_size=30,
    )


def simulate(steps: list[Step]) -> History:
    node = SimulatedNode()
    for step in steps:
        node.step(step)
    node.pass_time(10.0)
    assert len(node.junction) == 0
    return node.history()


def rules_broken(history: History) -> set[Rule]:
    return {violation.rule for violation in check(history)}


@settings(max_examples=500)
@given(steps(calm=False))
def test_what_the_junction_does_breaks_no_rule(steps: list[Step]) -> None:
    assert check(simulate(steps)) == []


@settings(max_examples=500)
@given(st.data(), steps(calm=True))
def test_one_untrue_record_in_what_the_junction_did_is_found(data: st.DataObject, steps: list[Step]) -> None:
    history = simulate(steps)
    spoilt = [(rule, spoil) for rule, find in SPOILERS for spoil in find(history)]
    assume(spoilt)
    rule, calls = data.draw(st.sampled_from(spoilt))
    assert rule in rules_broken(dataclasses.replace(history, calls=calls))


Spoilt = list[list[Call]]


def _changed(history: History, which: Callable[[Call], bool], **changes: Any) -> Spoilt:
    """Return the histories in which one of those calls is another."""
    return [
        [dataclasses.replace(each, **changes) if each is call else each for each in history.calls]
        for call in history.calls
        if which(call)
    ]


def _added(history: History, which: Callable[[Call], bool], **changes: Any) -> Spoilt:
    """Return the histories with one of those calls twice."""
    return [[*history.calls, dataclasses.replace(call, **changes)] for call in history.calls if which(call)]


def _value_vanished(history: History) -> Spoilt:
    """Return the histories in which everybody that got one value timed out instead."""
    values = {call.value for call in history.calls if call.outcome is Outcome.VALUE}
    return [
        [
            dataclasses.replace(call, outcome=Outcome.TIMEOUT, value=None, end=call.start + call.timeout)
            if call.kind is not Kind.SEND and call.value == value
            else call
            for call in history.calls
        ]
        for value in values
    ]


def _answered(call: Call) -> bool:
    return call.outcome in (Outcome.TRUE, Outcome.VALUE, Outcome.TIMEOUT)


SPOILERS: list[tuple[Rule, Callable[[History], Spoilt]]] = [
    (Rule.TRUE_FOR_NOBODY, _value_vanished),
    (Rule.NEVER_SENT, lambda h: _changed(h, lambda call: call.outcome is Outcome.VALUE, value="another")),
    (Rule.NEVER_SENT, lambda h: _changed(h, lambda call: call.outcome is Outcome.VALUE, topic="another")),
    (Rule.NOT_TOGETHER, lambda h: _changed(h, lambda call: call.outcome is Outcome.VALUE, start=0.0, end=1.0)),
    (Rule.NOT_TOGETHER, lambda h: _changed(h, lambda call: call.outcome is Outcome.VALUE, start=2e3, end=2e3)),
    (Rule.ONE_SIDED, lambda h: _changed(h, lambda call: call.outcome is Outcome.TRUE, outcome=Outcome.TIMEOUT)),
    (Rule.ONE_SIDED, lambda h: _changed(h, lambda call: call.outcome is Outcome.TRUE, outcome=Outcome.ERROR)),
    (
        Rule.TWO_TAKERS,
        lambda h: _added(h, lambda call: call.kind is Kind.TAKE and call.outcome is Outcome.VALUE, id="another"),
    ),
    (Rule.ANSWERED_TWICE, lambda h: _added(h, _answered)),
    (Rule.ANSWERED_LATE, lambda h: _changed(h, _answered, end=2000.0)),
    (Rule.NOT_ANSWERED, lambda h: _changed(h, _answered, outcome=Outcome.UNANSWERED, end=math.inf)),
    (Rule.NOT_ANSWERED, lambda h: _changed(h, _answered, outcome=Outcome.LOST)),
    (Rule.TIMED_OUT_EARLY, lambda h: _changed(h, lambda call: call.outcome is Outcome.TIMEOUT, timeout=9.0)),
]


# Each rule by itself, and what excuses from it.


def call(kind: Kind, outcome: Outcome, **fields: Any) -> Call:
    """Return a call on topic `a` from 1.0 to 2.0 that could have taken longer."""
    id = fields.pop("id", f"{kind}-{next(_ids)}")
    defaults: dict[str, Any] = {"topic": "a", "connection": id, "start": 1.0, "timeout": 5.0, "end": 2.0}
    return Call(**defaults | fields, id=id, kind=kind, outcome=outcome)


_ids = itertools.count()


def sent(outcome: Outcome = Outcome.TRUE, value: str = "v", **fields: Any) -> Call:
    return call(Kind.SEND, outcome, value=value, **fields)


def received(outcome: Outcome = Outcome.VALUE, value: str | None = "v", **fields: Any) -> Call:
    return call(Kind.RECV, outcome, value=value if outcome is Outcome.VALUE else None, **fields)


def taken(outcome: Outcome = Outcome.VALUE, value: str | None = "v", group: str = "g", **fields: Any) -> Call:
    return call(Kind.TAKE, outcome, value=value if outcome is Outcome.VALUE else None, group=group, **fields)


NOBODY_KNOWS = (Outcome.LOST, Outcome.UNANSWERED)


@pytest.mark.parametrize("outcome", NOBODY_KNOWS)
def test_a_listener_that_was_lost_may_have_got_a_value(outcome: Outcome) -> None:
    listener = received(outcome, connection="cut")
    history = History([sent(), listener], disturbed={"cut": [1.5]})
    assert check(history) == []


def test_a_listener_that_was_lost_may_have_got_one_value_only() -> None:
    calls = [sent(value="1"), sent(value="2"), received(Outcome.LOST, connection="cut")]
    (violation,) = check(History(calls, disturbed={"cut": [1.5]}))
    assert violation.rule is Rule.TRUE_FOR_NOBODY


@pytest.mark.parametrize(("start", "end"), [(0.0, 0.9), (2.1, 3.0)])
def test_a_listener_that_was_lost_before_or_came_after_did_not_get_the_value(start: float, end: float) -> None:
    calls = [sent(), received(Outcome.LOST, start=start, end=end, connection="cut")]
    assert rules_broken(History(calls, disturbed={"cut": [end]})) == {Rule.TRUE_FOR_NOBODY}


def test_a_listener_may_have_got_a_value_each_time_its_connection_was_lost_and_another_at_last() -> None:
    listener = received(value="3", start=0.0, end=4.0, connection="cut")
    sends = [sent(value="1", start=0.1, end=1.1), sent(value="2", start=1.1, end=2.1), sent(value="3", end=4.0)]
    assert check(History([listener, *sends], disturbed={"cut": [1.0, 2.0]})) == []
    one_cut = History([listener, *sends], disturbed={"cut": [1.0]})
    assert [str(violation.calls[0].value) for violation in check(one_cut)] == ["2"]


def test_a_listener_on_another_topic_is_not_one_that_may_have_got_it() -> None:
    calls = [sent(), received(Outcome.LOST, topic="b", connection="cut")]
    assert rules_broken(History(calls, disturbed={"cut": [1.5]})) == {Rule.TRUE_FOR_NOBODY}


def test_a_value_got_by_many_receivers_and_one_taker_of_each_group_is_fine() -> None:
    assert check(History([sent(), received(), received(), taken(group="g"), taken(group="h")])) == []


def test_a_value_got_by_two_takers_of_a_group_is_not() -> None:
    send, one, other = sent(), taken(), taken()
    (violation,) = check(History([send, one, other]))
    assert violation == (Rule.TWO_TAKERS, (send, one, other))


def test_a_taker_that_acknowledges_may_not_have_been_the_last() -> None:
    assert check(History([sent(), taken(at_least_once=True), taken()])) == []


def test_a_sender_that_waits_for_an_acknowledgement_may_time_out_although_its_value_was_got() -> None:
    assert check(History([sent(Outcome.TIMEOUT, timeout=1.0), taken(at_least_once=True)])) == []


def test_a_value_may_come_twice_if_a_worker_died_or_its_senders_connection_broke_meanwhile() -> None:
    send = sent(connection="cut")
    calls = [send, taken(), taken()]
    assert check(History(calls, deaths=[1.5])) == []
    assert check(History(calls, disturbed={"cut": [1.5]})) == []
    assert rules_broken(History(calls, deaths=[2.5], disturbed={"cut": [0.5]})) == {Rule.TWO_TAKERS}


def test_a_value_never_comes_before_it_is_sent_whatever_died() -> None:
    calls = [sent(start=3.0, end=4.0), received()]
    assert rules_broken(History(calls, deaths=[3.5])) == {Rule.NOT_TOGETHER}


@pytest.mark.parametrize("outcome", NOBODY_KNOWS)
def test_a_sender_that_is_gone_was_told_nothing_untrue(outcome: Outcome) -> None:
    calls = [sent(outcome, connection="cut"), received(start=2.5, end=3.0)]
    assert check(History(calls, disturbed={"cut": [2.0]})) == []


def test_nor_was_one_that_was_told_that_it_is_unknown() -> None:
    assert check(History([sent(Outcome.UNKNOWN, timeout=1.0), received()])) == []
    assert check(History([sent(Outcome.UNKNOWN, timeout=1.0)])) == []
    assert rules_broken(History([sent(Outcome.UNKNOWN, timeout=0.5)])) == {Rule.ANSWERED_LATE}


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.ERROR])
def test_a_sender_told_that_nobody_came_while_somebody_got_its_value_is_found(outcome: Outcome) -> None:
    assert rules_broken(History([sent(outcome, timeout=1.0), received()])) == {Rule.ONE_SIDED}


def test_an_answer_may_be_late_by_the_tolerance() -> None:
    history = History([received(Outcome.TIMEOUT, timeout=0.9)])
    assert check(history, tolerance=0.11) == []
    assert [violation.rule for violation in check(history, tolerance=0.09)] == [Rule.ANSWERED_LATE]


def test_an_answer_over_a_connection_that_stalled_may_be_late() -> None:
    late = received(Outcome.TIMEOUT, timeout=0.5, connection="stalled")
    assert check(History([late], disturbed={"stalled": [0.5, 1.9]})) == []
    assert rules_broken(History([late], disturbed={"stalled": [0.5, 0.9]})) == {Rule.ANSWERED_LATE}


def test_a_call_that_had_time_left_when_recording_ended_needs_no_answer() -> None:
    waiting = received(Outcome.UNANSWERED, start=1.0, timeout=5.0, end=math.inf)
    assert check(History([waiting], end=5.9)) == []
    assert rules_broken(History([waiting], end=6.1)) == {Rule.NOT_ANSWERED}


def test_a_connection_that_broke_though_nobody_touched_it_is_found() -> None:
    lost = received(Outcome.LOST)
    assert rules_broken(History([lost], end=1.5)) == {Rule.NOT_ANSWERED}
    assert check(History([lost], disturbed={lost.connection: [1.5]})) == []


def test_a_sender_and_a_listener_that_timed_out_side_by_side_missed_each_other() -> None:
    send = sent(Outcome.TIMEOUT, start=1.0, end=2.0, timeout=1.0)
    listener = taken(Outcome.TIMEOUT, start=1.5, end=2.5, timeout=1.0)
    for calls in ([send, listener], [listener, send]):
        history = History(calls)
        assert [violation.rule for violation in check(history, missed_after=0.4)] == [Rule.MISSED]
        assert check(history, missed_after=0.6) == []


def test_those_who_met_somebody_or_waited_elsewhere_or_were_disturbed_missed_nobody() -> None:
    send = sent(Outcome.TIMEOUT, start=1.0, end=3.0, timeout=2.0)
    others = [sent(Outcome.TIMEOUT, value="2", start=1.0, end=3.0, timeout=2.0)]
    others.append(received(Outcome.TIMEOUT, topic="b", start=1.0, end=3.0, timeout=2.0))
    others.append(received(Outcome.TIMEOUT, connection="cut", start=1.0, end=3.0, timeout=2.0))
    others.append(received(Outcome.ERROR, code="cancelled", start=1.0, end=3.0, timeout=2.0))
    assert check(History([send, *others], disturbed={"cut": [2.0]})) == []


def test_a_miss_is_seen_behind_many_short_waits() -> None:
    long = sent(Outcome.TIMEOUT, start=0.0, end=100.0, timeout=100.0)
    short = [sent(Outcome.TIMEOUT, value=f"{n}", start=n, end=n + 0.1, timeout=0.1) for n in range(1, 90)]
    listener = received(Outcome.TIMEOUT, start=95.0, end=96.0, timeout=1.0)
    (violation,) = check(History([long, *short, listener]))
    assert violation == (Rule.MISSED, (listener, long))


def test_a_violation_says_in_words_what_happened_to_whom() -> None:
    (violation,) = check(History([sent(id="c7", connection="c7/2", topic="orders")]))
    text = str(violation)
    for part in ("told true", "send c7 on 'orders'", "'v'", "at 1.000 for 5 s", "connection c7/2", "true at 2.000"):
        assert part in text


def test_a_value_that_is_sent_twice_makes_a_history_useless() -> None:
    with pytest.raises(ValueError, match="sent but once"):
        check(History([sent(), sent()]))


# Pairing, against all ways to pair.

spans = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)).map(lambda s: (s[0], s[0] + s[1])), max_size=5)


def most_pairs(sends: list[tuple[int, int]], chances: list[tuple[int, int]]) -> int:
    if not sends:
        return 0
    (start, end), *others = sends
    best = most_pairs(others, chances)
    for index, (other_start, other_end) in enumerate(chances):
        if other_start <= end and start <= other_end:
            best = max(best, 1 + most_pairs(others, chances[:index] + chances[index + 1 :]))
    return best


@given(spans, spans)
def test_as_few_sends_as_possible_are_left_alone(sends: list[tuple[int, int]], chances: list[tuple[int, int]]) -> None:
    some_call = sent()
    alone = without_partner([Span(b, a, some_call) for a, b in sends], [Span(b, a, some_call) for a, b in chances])
    assert len(alone) == len(sends) - most_pairs(sends, chances)


# Size. Each takes a few seconds, and days if time went with the square of the calls.


def meetings(count: int) -> list[Call]:
    """Return the calls of senders and takers of one busy topic, most of which meet."""
    calls = []
    for number in range(count // 2):
        at, who = number * 0.001, f"c{number % 100}"
        times = {"start": at, "end": at + 0.5, "timeout": 5.0, "topic": "a", "connection": who}
        calls.append(Call(id=f"s{number}", kind=Kind.SEND, value=number, outcome=Outcome.TRUE, **times))
        taker = Call(id=f"t{number}", kind=Kind.TAKE, group="g", value=number, outcome=Outcome.VALUE, **times)
        calls.append(taker)
    return calls


@pytest.mark.timeout(90)
def test_a_long_history_of_one_topic_is_checked() -> None:
    calls = meetings(200_000)
    assert check(History(calls)) == []
    # The worst: all senders met listeners that were lost, in one crowd.
    lost = [
        dataclasses.replace(call, outcome=Outcome.LOST, value=None) if call.kind is Kind.TAKE else call
        for call in calls
    ]
    disturbed = {f"c{number}": [999.0] for number in range(100)}
    assert check(History(lost, disturbed)) == []
    late = [dataclasses.replace(call, outcome=Outcome.TIMEOUT, end=call.start + 5.0) for call in calls]
    assert rules_broken(History(late)) == {Rule.MISSED}


# Recording.


def record(path: Path, client: str, count: int) -> None:
    with path.open("ab", buffering=0) as file:
        recorder = Recorder(file, client)
        for number in range(count):
            value = f"{client} {number}"
            id = recorder.call(Kind.SEND, "a", connection=client, timeout=5.0, value=value)
            recorder.answer(id, Outcome.TRUE)
            id = recorder.call(Kind.TAKE, "a", connection=client, timeout=5.0, group="g")
            recorder.answer(id, Outcome.VALUE, value=value)


def test_what_was_recorded_reads_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "one"
    times = itertools.count(10.0, 0.5)
    with path.open("ab", buffering=0) as file:
        recorder = Recorder(file, "one", clock=lambda: next(times))
        first = recorder.call(Kind.TAKE, "a", connection="c", timeout=5.0, group="g", at_least_once=True, worker="w")
        second = recorder.call(Kind.SEND, "b", connection="d", timeout=3.0, value="v")
        recorder.answer(first, Outcome.ERROR, code="busy")
        recorder.disturbed("d")
        recorder.death()
    with path.open("rb") as file:
        history = History.read([file], end=99.0)
    take = Call(first, Kind.TAKE, "a", "c", 10.0, 5.0, "one", "w", "g", None, True, Outcome.ERROR, "busy", 11.0)
    send = Call(second, Kind.SEND, "b", "d", 10.5, 3.0, "one", "", None, "v")
    assert sorted(history.calls, key=lambda call: call.start) == [take, send]
    assert (history.disturbed, history.deaths, history.end) == ({"d": [11.5]}, [12.0], 99.0)


def test_a_call_that_was_answered_twice_reads_so(tmp_path: Path) -> None:
    path = tmp_path / "one"
    with path.open("ab", buffering=0) as file:
        recorder = Recorder(file, "one")
        id = recorder.call(Kind.SEND, "a", connection="c", timeout=0.0, value="v")
        recorder.answer(id, Outcome.ERROR, code="busy")
        recorder.answer(id, Outcome.ERROR, code="busy")
    with path.open("rb") as file:
        assert rules_broken(History.read([file])) == {Rule.ANSWERED_TWICE}


def test_threads_may_share_a_recorder(tmp_path: Path) -> None:
    path = tmp_path / "one"
    with path.open("ab", buffering=0) as file:
        recorder = Recorder(file, "one")

        def work() -> None:
            for _ in range(300):
                recorder.answer(recorder.call(Kind.RECV, "a", connection="c", timeout=0.0), Outcome.ERROR, code="busy")

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with path.open("rb") as file:
        history = History.read([file])
    assert len({call.id for call in history.calls}) == 8 * 300
    assert all(call.outcome is Outcome.ERROR for call in history.calls)


def test_histories_of_processes_merge_even_of_one_that_was_killed(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(3)]
    children = []
    for path in paths:
        child = os.fork()
        if not child:
            try:
                record(path, path.name, 200 if path != paths[0] else 10**9)
            finally:
                os._exit(0)
        children.append(child)
    eventually(lambda: paths[0].exists() and paths[0].stat().st_size > 50_000, within=20)
    os.kill(children[0], signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    with paths[0].open("ab", buffering=0) as file:
        file.write(b'["call", {"id": "half-writ')
    files = [path.open("rb") for path in paths]
    try:
        history = History.read(files)
    finally:
        for file in files:
            file.close()
    by_client = {client: [call for call in history.calls if call.client == client] for client in "012"}
    assert len(by_client["1"]) == len(by_client["2"]) == 400
    assert len(by_client["0"]) > 100
    open_calls = [call for call in by_client["0"] if call.outcome is Outcome.UNANSWERED]
    assert len(open_calls) <= 1
