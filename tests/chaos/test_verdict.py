"""The judges of a cluster's chaos, on runs that are made up: each breach is seen, and what excuses it is needed."""

from __future__ import annotations

import dataclasses

import pytest

from tests import history
from tests.chaos.agreement import Agreement, Calm, Event, undisturbed
from tests.chaos.client import Call, Connection
from tests.chaos.routed_pairs import RoutedVerdict
from tests.chaos.verdict import Verdict
from tests.history import Kind, Outcome

A, B = Connection("a", 0.0, "n1"), Connection("b", 0.0, "n2")
ALL = (frozenset({"n1", "n2", "n3"}),)
CALM = [Calm(0.0, 100.0, ALL)]


def send(start: float, end: float, outcome: str, at: Connection = A, timeout_s: float = 5.0, value: str = "v") -> Call:
    return Call(at, round(start * 1000), "send", "topic", start, timeout_s, value, end=end, outcome=outcome)


def recv(
    start: float, end: float, outcome: str, at: Connection = B, timeout_s: float = 5.0, value: str | None = None
) -> Call:
    return Call(at, round(start * 1000), "recv", "topic", start, timeout_s, value, end=end, outcome=outcome)


def broken(*calls: Call, events: list[Event] | None = None, calms: list[Calm] | None = None) -> list[str]:
    connections = [A, B]
    verdict = Verdict([*calls], connections, Agreement(events or [], CALM if calms is None else calms), 0.3)
    return [text.split("\n")[0] for text in verdict.broken()]


def test_a_pair_that_meets_breaks_nothing() -> None:
    assert broken(send(1, 2, "met"), recv(1.5, 2, "met", value="v")) == []


def test_a_true_for_nobody_is_never_excused() -> None:
    assert "true" in broken(send(1, 2, "met"), recv(1, 6, "timeout"))[0]
    frozen = [Event("frozen", ("n2",), 0, 0), Event("thawed", ("n2",), 50, 50)]
    assert "true" in broken(send(1, 2, "met"), recv(1, 6, "timeout"), events=frozen, calms=[])[0]


def test_a_listener_whose_connection_is_lost_may_have_had_the_value() -> None:
    assert broken(send(1, 2, "met"), recv(1, 3, "lost")) == []
    assert broken(send(4, 5, "met"), recv(1, 3, "lost")) != []


def test_a_frozen_node_may_take_a_value_for_a_client_that_has_hung_up() -> None:
    frozen = [Event("frozen", ("n2",), 2, 2), Event("thawed", ("n2",), 4.5, 4.5)]
    assert broken(send(4, 4.6, "met"), recv(1, 3, "lost"), events=frozen) == []
    assert broken(send(6, 7, "met"), recv(1, 3, "lost"), events=frozen) != []


def test_a_value_from_nowhere_is_seen() -> None:
    assert "nobody sent" in broken(recv(1, 2, "met", value="made up"), calms=[])[0]


def test_what_one_side_alone_knows_of_is_excused_only_while_nodes_disagree() -> None:
    calls = send(1, 6, "timeout"), recv(1, 2, "met", value="v")
    assert "told that nobody came" in broken(*calls)[0]
    assert broken(*calls, calms=[Calm(0, 1.5, ALL), Calm(3, 100, ALL)]) == []


def test_a_late_answer_is_excused_only_while_its_own_node_is_frozen() -> None:
    late = recv(1, 8, "timeout")
    assert "after its timeout" in broken(late)[0]
    frozen = [Event("frozen", ("n2",), 3, 3), Event("thawed", ("n2",), 8, 8)]
    assert broken(late, events=frozen) == []
    other = [Event("frozen", ("n1",), 3, 3), Event("thawed", ("n1",), 8, 8)]
    assert broken(late, events=other) != []


def test_a_call_that_was_not_answered_is_seen() -> None:
    assert any("reason" in text for text in broken(dataclasses.replace(recv(1, 2, "busy"))))
    assert broken(recv(1, 9, "cancelled")) != [], "nobody had asked for that"


@pytest.mark.parametrize(
    ("calms", "missed"),
    [
        (CALM, True),
        ([Calm(4.0, 100.0, ALL)], True),
        ([Calm(5.0, 100.0, ALL)], False),
        ([Calm(0.0, 2.0, ALL), Calm(4.8, 100.0, ALL)], False),
        ([Calm(0.0, 100.0, (frozenset({"n1", "n3"}), frozenset({"n2"})))], False),
        ([Calm(0.0, 100.0, (frozenset({"n1", "n2"}), frozenset({"n3"})))], True),
    ],
)
def test_who_waited_side_by_side_in_agreement_has_missed_each_other(calms: list[Calm], missed: bool) -> None:
    calls = send(1, 6, "timeout"), recv(1, 6, "timeout")
    assert ["waited for each other" in text for text in broken(*calls, calms=calms)] == [True] * missed


def test_a_connection_that_is_lost_though_its_node_lives_is_seen() -> None:
    lost = dataclasses.replace(A, lost=5.0)
    assert "though the node lived" in Verdict([], [lost], Agreement([], CALM), 0.3).broken()[0]
    killed = [Event("killed", ("n1",), 4.9, 5.0)]
    assert Verdict([], [lost], Agreement(killed, CALM), 0.3).broken() == []


def test_nodes_that_take_too_long_to_agree_are_seen() -> None:
    killed = Event("killed", ("n3",), 10.0, 10.1)
    assert [*Agreement([killed], [Calm(0.0, 9.9, ALL), Calm(15.0, 20.0, ALL)]).quarrels(8.0)] == []
    assert [*Agreement([killed], [Calm(0.0, 9.9, ALL), Calm(19.0, 20.0, ALL)]).quarrels(8.0)] != []
    assert [*Agreement([killed], [Calm(0.0, 9.9, ALL)]).quarrels(8.0)] != []
    soon = Event("joined", ("n3",), 12.0, 12.5)
    assert [*Agreement([killed, soon], [Calm(0.0, 9.9, ALL), Calm(13.0, 20.0, ALL)]).quarrels(8.0)] == []


def test_a_cut_is_felt_for_a_while_after_it_has_ended() -> None:
    events = [Event("cut off", ("n3",), 10.0, 10.0), Event("healed", ("n3",), 12.0, 12.0)]
    calms = [Calm(0.0, 9.9, ALL), Calm(12.5, 30.0, ALL)]
    assert not Agreement(events, calms).held(13.0, 14.0)
    assert Agreement(events, calms).held(15.0, 16.0)


def test_who_may_be_connected_to_a_node_that_hangs_is_not_judged() -> None:
    events = [Event("frozen", ("n3",), 10.0, 10.0), Event("thawed", ("n3",), 20.0, 20.0)]
    without = (frozenset({"n1", "n2"}),)
    calms = [Calm(0.0, 9.9, ALL), Calm(15.0, 19.9, without), Calm(20.5, 30.0, ALL)]
    assert undisturbed(events, calms) == [calms[0], calms[2]]


@pytest.mark.parametrize(("topic", "excused"), [("plain-1", True), ("acknowledged-1", False)])
def test_what_is_acknowledged_is_true_for_somebody_even_while_nodes_disagree(topic: str, excused: bool) -> None:
    lost = history.Call("1", Kind.SEND, topic, "c", 1.0, 5.0, value="v", outcome=Outcome.TRUE, end=2.0)
    other = history.Call("2", Kind.RECV, topic, "d", 1.0, 5.0, outcome=Outcome.TIMEOUT, end=6.0)
    run = history.History([lost, other])
    assert RoutedVerdict(run, Agreement([], CALM), 0.3).broken() != []
    assert (RoutedVerdict(run, Agreement([], []), 0.3).broken() == []) is excused
