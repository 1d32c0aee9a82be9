"""Workers of a node ask each other for the values of a topic, which moves from one to another; each hears of that, and
of what the others ask, in its own time.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from workers.calls.inquiries import Interest
from workers.calls.interests import Interests
from workers.calls.worker_states import Standing
from workers.mesh.messages import SUBSCRIBE, SUBSCRIBED
from workers.mesh.remote_interests import RemoteInterests

TOPIC: Final = b"\xa5topic"
WORKERS: Final = 3
ENOUGH: Final = 200
"""Messages between each two workers until all is as it is to be."""

Lines = dict[tuple[int, int], deque[tuple[int, int]]]
"""What was said by whom to whom, and not yet heard."""


class Core:
    """Who is given the values that meet here, by row, and who those that come from elsewhere."""

    def __init__(self, number: int, lines: Lines) -> None:
        self.rows = itertools.count(1)
        self.here: set[int] = set()
        self.afar: set[int] = set()
        self._number = number
        self._lines = lines

    def interest(self, link: int, topic: bytes) -> int:
        return next(self.rows)

    def stand(self, row: int) -> None:
        self.here.add(row)

    def hear_afar(self, row: int) -> None:
        self.afar.add(row)

    def stand_no_more(self, row: int) -> None:
        self.here.discard(row)
        self.afar.discard(row)

    def resize(self, row: int, count: int) -> None:
        """It asks nobody how many they are."""

    def end_interest(self, row: int) -> None:
        assert row not in self.here | self.afar

    def say(self, link: int, kind: int, topic: bytes) -> None:
        self._lines[self._number, link].append((kind, 0))


class Way:
    """A link to another worker."""

    handle = 1

    def __init__(self, line: deque[tuple[int, int]]) -> None:
        self._line = line
        self.interest: Interest | None = None

    def subscribe(self, interest: Interest) -> None:
        self.interest = interest
        self._line.append((SUBSCRIBE, interest.audience))

    def unsubscribe(self, interest: Interest) -> None:
        self._line.append((SUBSCRIBE, 0))

    def forget_interest(self, interest: Interest) -> None:
        if self.interest is interest:
            self.interest = None


class Listener:
    """A subscriber of one worker."""

    topic = TOPIC

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.row = next(worker.core.rows)
        self.has_gone = False
        self.is_told = False

    def in_effect(self) -> None:
        self.is_told = True
        if not self.has_gone:
            self._worker.interests.stand(self)

    def cut_off(self) -> None:
        raise AssertionError("nothing is lost")


class Worker:
    """One of the node."""

    def __init__(self, number: int, lines: Lines) -> None:
        core: Any = Core(number, lines)
        self.core: Core = core
        self.owner = 0
        others = [each for each in range(WORKERS) if each != number]
        self._ways = {each: Way(lines[number, each]) for each in others}
        owners: list[Any] = [SimpleNamespace(carrier=self._ways.get(each)) for each in range(WORKERS)]
        self.interests = Interests(core, lambda _: owners[self.owner])
        log: Any = None
        self.asking = {
            each: RemoteInterests(core, each, False, True, Standing(), self.interests, log, {}) for each in others
        }
        self.listeners: list[Listener] = []

    def come(self) -> None:
        listener = Listener(self)
        self.listeners.append(listener)
        self.interests.change(TOPIC, 1, listener)

    def go(self) -> None:
        if self.listeners:
            listener = self.listeners.pop(0)
            listener.has_gone = True
            self.interests.leave(listener)
            self.interests.change(TOPIC, -1, None)

    def follow(self, owner: int) -> None:
        self.owner = owner
        for interest in self.interests.all():
            interest.ring_changed()

    def hear(self, whom: int, kind: int, count: int) -> None:
        way = self._ways[whom]
        if kind == SUBSCRIBE:
            self.asking[whom].ask(TOPIC, count)
        elif way.interest is not None:
            assert kind == SUBSCRIBED
            way.interest.answered(way)  # type: ignore[arg-type]  # as much of a link as an interest asks for


NUMBERS: Final = st.integers(0, WORKERS - 1)
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("come"), NUMBERS, NUMBERS),
        st.tuples(st.just("go"), NUMBERS, NUMBERS),
        st.tuples(st.just("follow"), NUMBERS, NUMBERS),
        st.tuples(st.just("hear"), NUMBERS, NUMBERS),
    ),
    max_size=60,
)


@given(STEPS, NUMBERS)
def test_all_who_subscribe_are_given_what_meets_at_the_owner_once_all_know_who_that_is(
    steps: list[tuple[str, int, int]], last: int
) -> None:
    lines: Lines = defaultdict(deque)
    workers = [Worker(number, lines) for number in range(WORKERS)]

    def hear(by: int, whom: int) -> bool:
        line = lines[whom, by]
        if line:
            workers[by].hear(whom, *line.popleft())
            return True
        return False

    for what, number, other in steps:
        if what == "come":
            workers[number].come()
        elif what == "go":
            workers[number].go()
        elif what == "follow":
            workers[number].follow(other)
        else:
            hear(number, other)
    for worker in workers:
        worker.follow(last)
    rounds = 0
    while sum(hear(*pair) for pair in itertools.permutations(range(WORKERS), 2)):
        rounds += 1
        assert rounds < ENOUGH, "they come to no end"
    owner = workers[last].core
    for worker in workers:
        assert all(listener.is_told for listener in worker.listeners)
        rows = {listener.row for listener in worker.listeners}
        assert rows <= (owner.here if worker.core is owner else worker.core.afar)
    theirs = sum(bool(worker.listeners) for worker in workers if worker.core is not owner)
    assert len(owner.here) == len(workers[last].listeners) + theirs, "each of the others asks the owner once"
    assert not owner.afar
    for worker in workers:
        if worker.core is not owner:
            assert not worker.core.here
            assert len(worker.core.afar) == len(worker.listeners), "nobody else stands between"
