"""What must hold of a run of Silk, as its documentation promises it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from skywalker.silk import pace
from tests.simulation.silk_cluster import FAILS, QUICK, SLOW, History, Life, Saying

PERIOD_S: Final = 1.0
"""Seconds between signs of life."""

GIVEN_UP_S: Final = (pace.SILENT + 1 + 1) * PERIOD_S
"""Seconds from the last word of one until it is out everywhere: silence, questions, and what others say of it."""

SLACK_S: Final = 0.2
"""Seconds that looks at the clock may be late, and words on their way."""

MEET_S: Final = 3.0
"""Seconds until two that nothing is between know each other and are connected in all ways."""

CUT_S: Final = 1.0
"""Seconds until a connection that was lost is there again, with what is wanted known at the other end."""

REQUEST_S: Final = {QUICK: 6 * 0.5, SLOW: 3 * 0.5, FAILS: 6 * 0.5}
"""Seconds for which somebody asks."""


def everybody_knows_everybody(history: History) -> Iterator[str]:
    """After a while in which nothing happens all who are there know each other, and nobody else."""
    for at, known in history.checks:
        here = {life.id: life for life in known}
        for life, others in known.items():
            for missing in here.keys() - others - {life.id}:
                yield f"{life} does not know {here[missing]} at {at:.3f}"
            for ghost in others - here.keys():
                yield f"{life} knows {ghost[:8]} at {at:.3f}, who is gone"


def the_dead_are_out_in_time(history: History) -> Iterator[str]:
    """Whoever knows one that dies knows it no more once it has been silent and was asked."""
    for dead in history.lives:
        for life in history.lives:
            if life is dead or not dead.id:
                continue
            until = dead.ended_at + GIVEN_UP_S + SLACK_S
            while spans := [
                end
                for begin, end in [*_halts(history, life, dead), *life.aways]
                if begin <= until < end + GIVEN_UP_S + SLACK_S
            ]:
                until = max(spans) + GIVEN_UP_S + SLACK_S
            if until < min(life.ended_at, history.checks[-1][0]) and _knows(life, dead, until):
                yield f"{life} knows {dead} at {until:.3f}, who died at {dead.ended_at:.3f}"


def _halts(history: History, life: Life, dead: Life) -> Iterator[tuple[float, float]]:
    """Yield when words of one to the other stood still: they come late then."""
    yield from life.stops
    yield from dead.stops
    for hosts, span in history.parts:
        if hosts == {life.host, dead.host}:
            yield span[0], span[1] + (span[1] - span[0])


def _knows(life: Life, other: Life, at: float) -> bool:
    back_at = max((end for begin, end in life.aways if begin <= at), default=0.0)  # it knew nobody before
    is_known = False
    for when, what, id in life.events:
        if id == other.id and back_at <= when <= at:
            is_known = what not in ("Left", "Failed")
    return is_known


def who_is_there_does_not_fail(history: History) -> Iterator[str]:
    """Nobody is given up between whom and who gives it up nothing was amiss, and who did not lose its connections."""
    by_id = {life.id: life for life in history.lives}
    for life in history.lives:
        for at, what, id in life.events:
            if what != "Failed" or id not in by_id:
                continue
            since = at - GIVEN_UP_S - MEET_S
            if history.is_calm(life, by_id[id], since, at) and not history.are_cut(life, by_id[id], since, at):
                yield f"{life} gave up {by_id[id]} at {at:.3f}"


def events_make_sense(history: History) -> Iterator[str]:
    """Who joins was not there, who goes was, and who recovers was suspected."""
    for life in history.lives:
        known: set[str] = set()
        doubted: set[str] = set()
        for at, what, id in life.events:
            if what == "Joined":
                is_right = id not in known
                known.add(id)
            elif what == "Suspected":
                is_right = id in known and id not in doubted
                doubted.add(id)
            elif what == "Recovered":
                is_right = id in doubted
                doubted.discard(id)
            else:
                is_right = id in known or any(begin <= at for begin, _ in life.aways)
                doubted.discard(id)
                if what != "Changed":
                    known.discard(id)
            if not is_right and not life.aways:  # who leaves is not told that it knows nobody any more
                yield f"{life} was told {what} of {id[:8]} at {at:.3f}"


def a_request_is_handled_once(history: History) -> Iterator[str]:
    """However often it is sent; so is what is told."""
    for life in history.lives:
        for data, times in life.ran.items():
            if times > 1:
                yield f"{life} handled {data!r} {times} times"


def answers_are_those_of_their_requests(history: History) -> Iterator[str]:
    """A reply is what the handler returned for that very request, on the node that was asked."""
    ran = {(life.id, data) for life in history.lives for data in life.ran}
    for saying in history.sayings:
        for id, reply in saying.replies:
            if not isinstance(reply, dict):
                continue  # an error
            if reply["got"] != saying.data or id not in ("", reply["by"]) or (reply["by"], saying.data) not in ran:
                yield f"{saying} was answered {reply}"
        if saying.error.startswith("HandlerFailed") and f": {saying.data} by " not in saying.error:
            yield f"{saying} failed with {saying.error}"
        if len({id for id, _ in saying.replies}) < len(saying.replies):
            yield f"{saying} was answered twice"


def requests_end_in_time(history: History) -> Iterator[str]:
    """Whatever becomes of it, a request ends once it was sent as often as is declared."""
    for saying in history.sayings:
        by, until = saying.by, saying.at + REQUEST_S[saying.type] + SLACK_S
        for begin, end in by.stops:  # each attempt is given its time, however late it is
            if begin <= until and saying.at <= end:
                until += end - max(begin, saying.at) + SLACK_S
        if until < min(saying.ended_at, by.ended_at, history.checks[-1][0]):
            yield f"{saying} has not ended by {until:.3f}"


def requests_are_answered(history: History) -> Iterator[str]:
    """One to somebody who is there, between whom nothing is amiss, is answered in the end."""
    by_id = {life.id: life for life in history.lives}
    for saying in history.sayings:
        if saying.how != "request" or saying.type == SLOW or saying.ended_at > history.checks[-1][0]:
            continue
        other = by_id[saying.to]
        if history.is_calm(saying.by, other, saying.at - MEET_S, saying.ended_at):
            is_answered = bool(saying.replies) if saying.type == QUICK else saying.error.startswith("HandlerFailed")
            if not is_answered and not _is_held_up(history, saying, other):
                yield f"{saying} to {other} ended with {saying.error} at {saying.ended_at:.3f}"


def _is_held_up(history: History, saying: Saying, other: Life) -> bool:
    """Whether it went by a connection from before a cut, on which TCP may wait once more as long as that lasted.

    Who gave the other up meanwhile has a new one, and so has who heard first from the other that it was given up; of
    several who gave it up only one says so.
    """
    return any(
        hosts == {saying.by.host, other.host}
        and begin <= saying.at <= end + (end - begin)
        and len({life.host for life in history.lives}) > 2
        and not any(
            what == "Failed" and id == other.id and begin <= at <= saying.at for at, what, id in saying.by.events
        )
        for hosts, (begin, end) in history.parts
    )


def what_is_told_arrives(history: History) -> Iterator[str]:
    """It does where nothing is amiss: at the one, or at all who know each other."""
    by_id = {life.id: life for life in history.lives}
    for saying in history.sayings:
        if saying.how != "broadcast" and (saying.how != "tell" or history.is_lossy):
            continue
        for id in [saying.to] if saying.to else saying.members:
            other = by_id[id]
            since, until = saying.at - MEET_S, saying.at + CUT_S
            is_calm = history.is_calm(saying.by, other, since, until) and until < history.checks[-1][0]
            if not is_calm or history.are_cut(saying.by, other, saying.at - CUT_S, until):
                continue
            if _has_long_known(saying, other) and not other.ran[saying.data]:
                yield f"{saying} did not come to {other}"


def _has_long_known(saying: Saying, other: Life) -> bool:
    """Whether both knew each other for long enough to be connected."""
    pairs = ((saying.by, other), (other, saying.by))
    return all(_knows(one, two, at) for one, two in pairs for at in (saying.at - MEET_S, saying.at)) and not any(
        saying.at - MEET_S <= at <= saying.at and id == two.id and what in ("Joined", "Failed", "Left")
        for one, two in pairs
        for at, what, id in one.events
    )


def nobody_speaks_while_away(history: History) -> Iterator[str]:
    """After a leave a node says nothing until it joins again."""
    for life in history.lives:
        for frame in life.said_while_away:
            yield f"{life} has left, and said {frame}"


def who_is_blamed_joins_again(history: History) -> Iterator[str]:
    """Whoever hears of its own failure says that it is there, unless it has just done so."""
    for life in history.lives:
        for at in life.blamed:
            is_away = any(begin <= at + SLACK_S and at <= end for begin, end in life.aways)
            if is_away or life.ended_at <= at + SLACK_S:
                continue
            if not any(at - PERIOD_S - SLACK_S <= said <= at + SLACK_S for said in life.introduced):
                yield f"{life} heard at {at:.3f} that it had failed, and did nothing about it"


def nothing_is_complained_of(history: History) -> Iterator[str]:
    """No bug shows as an error that nobody catches."""
    yield from history.complaints


RULES: Final[tuple[Callable[[History], Iterator[str]], ...]] = (
    everybody_knows_everybody,
    the_dead_are_out_in_time,
    who_is_there_does_not_fail,
    events_make_sense,
    a_request_is_handled_once,
    answers_are_those_of_their_requests,
    requests_end_in_time,
    requests_are_answered,
    what_is_told_arrives,
    nobody_speaks_while_away,
    who_is_blamed_joins_again,
    nothing_is_complained_of,
)


def broken(history: History) -> list[str]:
    """Return what does not hold, each with the name of its rule."""
    return [f"{rule.__name__}: {what}" for rule in RULES for what in rule(history)]
