"""A sibling that is being replaced, and is to go to a new worker of another node."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest

from skywalker.members import Place
from tests.workers.one_worker import OneWorker
from tests.workers.outside import outside
from workers.mesh.messages import SEND, SETTLED
from workers.mesh.siblings import ANSWER_S

NEW = Place("there", 1)


class Node:
    """A worker, and its predecessor, which is being replaced and goes somewhere when the test has it do so."""

    def __init__(self, worker: OneWorker | None = None) -> None:
        self.worker = OneWorker() if worker is None else worker
        self.old = OneWorker(name="old")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for sock in (ours, theirs):
            sock.setblocking(False)
        self.worker.core.siblings.serve(ours, self.old.core.turn.hand.life)
        self.old.core.siblings.connect(0, theirs, self.worker.core.turn.hand.life)
        self.asked: list[tuple[Place, str]] = []
        self.over = 0
        self.have_gone: list[Callable[[], None]] = []
        self.old.core.peers.visit = self._visit  # type: ignore[method-assign]  # there is no other node here

    def _visit(self, place: Place, life: str, done: Callable[[], None]) -> None:
        self.asked.append((place, life))
        self.have_gone.append(done)

    def have_visited(self) -> None:
        """Have it go there."""
        self.worker.core.siblings.have_visited(NEW, "its life", self._over)
        self.turn()

    def _over(self) -> None:
        self.over += 1

    def turn(self, later: float = 0.0) -> None:
        """Have both do what there is to do."""
        for _ in range(2):
            self.worker.turn(later)
            self.old.turn()

    def close(self) -> None:
        """End both."""
        for each in (self.worker, self.old):
            for link in each.core.siblings.all():
                with contextlib.suppress(OSError):
                    link.close("the test is over")
            each.close()


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()


def test_who_is_being_replaced_is_told_where_to_go_and_waited_for(node: Node) -> None:
    node.have_visited()
    assert node.asked == [(NEW, "its life")]
    assert not node.over
    node.have_gone[0]()
    node.turn()
    assert node.over == 1
    node.turn(2 * ANSWER_S)
    assert node.over == 1


def test_one_that_dies_is_not_waited_for(node: Node) -> None:
    node.have_visited()
    [link] = node.old.core.siblings.all()
    link.close("it dies")
    node.turn()
    assert node.over == 1
    node.have_gone[0]()


def test_one_that_does_not_get_there_is_not_waited_for_long(node: Node) -> None:
    node.have_visited()
    node.turn(0.5 * ANSWER_S)
    assert not node.over
    node.turn(1.1 * ANSWER_S)
    assert node.over == 1
    node.have_gone[0]()
    node.turn()
    assert node.over == 1


def test_there_is_nobody_to_wait_for_where_nobody_is_being_replaced(node: Node) -> None:
    node.old.core.siblings.have_visited(NEW, "its life", node._over)
    assert node.over == 1


def test_a_new_worker_elsewhere_is_told_that_this_was_all_once_those_that_are_being_replaced_have_been_there() -> None:
    with outside(None) as world, world.inside() as client:
        node = Node(world.worker)
        world.dial()
        client.call(":send!", "a", 600_000, "a", "value")
        new = world.owner(life="its life", waits=True)
        node.turn()
        assert [life for _, life in node.asked] == ["its life"]
        client.call(":send!", "b", 600_000, "a", "value")
        node.turn()
        assert new.is_silent(), "nothing is asked before, since it would be heard before"
        assert not world.is_dialled(), "there is one link, whoever wants it"
        node.have_gone[0]()
        node.turn()
        assert [new.told()[0] for _ in range(3)] == [SETTLED, SEND, SEND]
        new.close()
        world.alone()
        node.close()
