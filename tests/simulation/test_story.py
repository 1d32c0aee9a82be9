"""What a run says of itself: who said what to whom, and nothing that changes it."""

from __future__ import annotations

from tests.simulation.failure import fails_as, failure_of
from tests.simulation.plan import ROOM, ClientPlan, Fault, Plan, Spurt, Word, plan
from tests.simulation.run import run
from tests.simulation.story import Story


def client(number: int, at: float, *words: Word) -> ClientPlan:
    return ClientPlan("caller", number, 0.0, 4, ROOM, False, False, (Spurt(at, words),))


def meeting(seed: int) -> Plan:
    """Return a plan in which one sends to another, who waits, and two call in vain on another topic."""
    return Plan(
        seed,
        nodes=3,
        workers=1,
        topics=2,
        clients=(
            client(0, 0.5, Word(":recv!", "topic0", 1000)),
            client(1, 0.6, Word(":send!", "topic0", 1000)),
            client(2, 0.5, Word(":recv!", "topic1", 50)),
        ),
        faults=(Fault(0.9, "kill", "node0"),),
    )


def test_it_says_where_a_value_went_and_what_came_of_that() -> None:
    went_over_links = 0
    for seed in range(4):
        story = Story()
        result = run(meeting(seed), story)
        told = "\n".join(story.about([":send! 1 of caller1 on topic0 was lost, say"]))
        assert result.met == 1
        assert "caller1 says :send! 1 of caller1 on topic0 'caller1.1', for 1000 ms" in told
        assert "-> caller0 answers :recv! 1: caller1.1" in told
        assert "-> caller1 answers :send! 1: True" in told
        assert "caller1 hears true of :send! 1" in told
        assert "caller2" not in told
        assert "has ended" in told, "the kill"
        went_over_links += "to hand out caller1.1 on topic0" in told
    assert went_over_links


def test_who_listens_changes_nothing() -> None:
    assert run(meeting(1), Story()).trace == run(meeting(1)).trace


def test_a_plan_fails_as_another_if_the_same_rule_is_broken() -> None:
    result, failure = failure_of(plan(1))
    assert result is not None
    assert failure is None
    _, failure = failure_of(Plan(1, 1, 1, 1, (), (Fault(0.1, "no such fault", "node0"),)))
    assert failure is not None
    assert failure.kinds == {"KeyError in happen"}
    assert fails_as(failure, Plan(2, 1, 1, 1, (), (Fault(0.2, "no such fault", "node0"),)))
    assert not fails_as(failure, meeting(1))
