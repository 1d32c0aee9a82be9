"""When a worker hears clients: once all others have said what they subscribe to, or do not for too long; and once."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from skywalker.members import Place
from skywalker.wire import values
from skywalker.wire.junction import TRUE
from tests.workers.one_worker import OneWorker
from tests.workers.turns import life
from tests.workers.wire_client import call
from workers.mesh.link import Link
from workers.mesh.messages import SEND, WITHDRAW
from workers.mesh.readiness import PATIENCE_S

TOPIC = b"\xa5topic"
HERE, THERE = Place("here", 0), Place("there", 0)


class Beginner:
    """A worker whose siblings are moved by hand, as it is itself."""

    def __init__(self) -> None:
        self.worker = OneWorker(opens=False)
        self.siblings = OneWorker(name="siblings")
        self._openings = 0
        self.barrier = self.worker.core.barrier
        self.worker.core.open(self._opened)

    def _opened(self) -> None:
        self._openings += 1

    def openings(self) -> int:
        """Return how often it has let clients in."""
        return self._openings

    def sibling(self) -> Link:
        """Return the other end of the link to another sibling."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for sock in (ours, theirs):
            sock.setblocking(False)
        known = set(self.siblings.core.siblings.all())
        self.worker.core.siblings.serve(ours, life())
        self.siblings.core.siblings.serve(theirs, life())
        [link] = set(self.siblings.core.siblings.all()) - known
        return link

    def end_of(self, link: Link) -> Link:
        """Return the worker's end of the link to a sibling."""
        return dict(zip(self.siblings.core.siblings.all(), self.worker.core.siblings.all(), strict=True))[link]

    def say_settled(self, link: Link) -> None:
        """Have a sibling say that this was all, and the worker read it if it reads."""
        link.outbound.settle()
        link.flush()
        self.turn()

    def subscribe(self, link: Link) -> None:
        """Have a sibling say that somebody subscribes there."""
        interest: Any = SimpleNamespace(topic=TOPIC, audience=1, lost=lambda forwarded: None)
        link.outbound.subscribe(interest)
        link.flush()
        self.turn()

    def subscribers(self) -> int:
        """Return how many subscribers the worker has heard of."""
        return self.worker.core.junction.census(TOPIC).subscribers

    def die(self, link: Link) -> None:
        """End a sibling."""
        link.close("it dies")
        self.turn()

    def turn(self, later: float = 0.0) -> None:
        """Have the worker do what there is to do."""
        self.worker.turn(later)


@pytest.fixture
def beginner() -> Iterator[Beginner]:
    made = Beginner()
    yield made
    for each in (made.worker, made.siblings):
        for link in each.core.siblings.all():
            with contextlib.suppress(OSError):
                link.close("the test is over")
        each.close()


def test_one_that_is_alone_opens_once_it_knows_that(beginner: Beginner) -> None:
    beginner.turn(2 * PATIENCE_S)
    assert not beginner.openings()
    beginner.barrier.has_all()
    assert beginner.openings() == 1
    beginner.turn(2 * PATIENCE_S)
    assert beginner.openings() == 1


def test_it_opens_when_the_last_of_its_siblings_has_said_all(beginner: Beginner) -> None:
    links = [beginner.sibling() for _ in range(3)]
    beginner.say_settled(links[0])
    beginner.barrier.has_all()
    beginner.say_settled(links[1])
    assert not beginner.openings()
    beginner.say_settled(links[2])
    assert beginner.openings() == 1


def test_what_is_asked_back_right_behind_the_word_that_opens_it_is_handed_to_nobody(beginner: Beginner) -> None:
    sibling = beginner.sibling()
    beginner.barrier.has_all()
    messages = sibling.inbound.messages
    sibling.outbound.settle()  # in one packet with the sends, of which the next takes them back
    for number in (7, 8):
        messages.tell(SEND, values.pack(number), values.pack(0.0), TOPIC, values.pack("value"))
    sibling.flush()
    for number in (7, 8):
        messages.tell(WITHDRAW, values.pack(number), TRUE)
    sibling.flush()
    client = beginner.worker.connect()
    client.call(":recv!", 1, 60_000, "topic")
    beginner.turn()
    assert beginner.openings() == 1
    assert beginner.worker.core.junction.census(TOPIC).senders == 0
    assert not client.has_input()
    client.close()


def a_sibling_hangs(beginner: Beginner, link: Link) -> None:
    beginner.turn(PATIENCE_S * 0.5)
    assert not beginner.openings()
    beginner.turn(PATIENCE_S * 1.1)


def a_sibling_dies(beginner: Beginner, link: Link) -> None:
    beginner.die(link)


@pytest.mark.parametrize("trouble", [a_sibling_hangs, a_sibling_dies])
def test_a_sibling_that_will_not_say_all_is_not_waited_for(
    beginner: Beginner, trouble: Callable[[Beginner, Link], None]
) -> None:
    well, bad = beginner.sibling(), beginner.sibling()
    beginner.barrier.has_all()
    beginner.say_settled(well)
    beginner.subscribe(well)
    assert (beginner.openings(), beginner.subscribers()) == (0, 0)
    trouble(beginner, bad)
    beginner.turn()
    assert (beginner.openings(), beginner.subscribers()) == (1, 1)


# Other nodes.


def test_workers_of_other_nodes_are_waited_for_as_siblings_are(beginner: Beginner) -> None:
    sibling, guest, other = beginner.sibling(), beginner.sibling(), beginner.sibling()
    beginner.barrier.has_all([HERE, THERE])
    beginner.say_settled(sibling)
    beginner.barrier.settled(beginner.end_of(guest), HERE)
    beginner.subscribe(guest)
    assert (beginner.openings(), beginner.subscribers()) == (0, 0), "what it says next is not read"
    beginner.barrier.settled(beginner.end_of(other), THERE)
    beginner.turn()
    assert (beginner.openings(), beginner.subscribers()) == (1, 1)


def test_a_node_that_leaves_the_ring_is_not_waited_for(beginner: Beginner) -> None:
    beginner.barrier.has_all([HERE, THERE])
    beginner.barrier.gone(HERE)
    assert not beginner.openings()
    beginner.barrier.gone(THERE)
    assert beginner.openings() == 1


def test_a_node_that_hangs_is_waited_for_no_longer_than_a_sibling_and_named(
    beginner: Beginner, capfd: pytest.CaptureFixture[str]
) -> None:
    beginner.barrier.has_all([HERE])
    beginner.turn(0.5 * PATIENCE_S)
    assert not beginner.openings()
    beginner.turn(1.1 * PATIENCE_S)
    assert beginner.openings() == 1
    [line] = capfd.readouterr().err.splitlines()
    assert "event=not-waited-for" in line
    assert "workers=1 elsewhere=here/0" in line


def test_clients_that_come_while_other_nodes_are_waited_for_are_heard_after_that(beginner: Beginner) -> None:
    beginner.barrier.has_all([HERE])
    with beginner.worker.connect() as client:
        client.write(call(":ping", 1) + call(":ping", 2))
        beginner.turn()
        assert not client.has_input()
        beginner.barrier.gone(HERE)
        beginner.turn()
        assert [client.reply()[1], client.reply()[1]] == [1, 2]


def test_a_client_may_say_early_who_it_is_and_asks_nothing_before(beginner: Beginner) -> None:
    beginner.barrier.has_all([HERE])
    with beginner.worker.connect() as client:
        client.write(call(":hello", 1, {"name": "x"}) + call(":ping", 2) + call(":hello", 3, {}))
        beginner.turn()
        assert client.reply()[1] == 1
        beginner.turn()
        assert not client.has_input()
        beginner.barrier.gone(HERE)
        beginner.turn()
        assert [client.reply()[1], client.reply()[1]] == [2, 3]


def test_patience_begins_when_it_knows_who_there_is(beginner: Beginner) -> None:
    beginner.sibling()
    beginner.turn(2 * PATIENCE_S)
    assert not beginner.openings()
    beginner.barrier.has_all()
    beginner.turn(0.5 * PATIENCE_S)
    assert not beginner.openings()
    beginner.turn(1.1 * PATIENCE_S)
    assert beginner.openings() == 1
