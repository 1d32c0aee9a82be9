"""The channel between the supervisor and a worker: whole messages, descriptors with them, and an end."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from workers.engine.machine import MACHINE
from workers.ipc.control import Channel, Connect, Drain, Idle, Message, Ready, Stop


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    a, b = Channel.pair(MACHINE)
    yield a, b
    a.close()
    b.close()


@pytest.mark.parametrize("message", [Connect(7, "cf01"), Drain(), Stop(), Ready(), Idle()])
def test_a_message_arrives_as_it_was_sent(ends: tuple[Channel, Channel], message: Message) -> None:
    ours, theirs = ends
    assert ours.send(message)
    assert theirs.receive() == (message, None)


def test_messages_arrive_one_by_one_in_order(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    for number in range(20):
        assert ours.send(Connect(number, "cf01"))
    assert [theirs.receive() for _ in range(20)] == [(Connect(number, "cf01"), None) for number in range(20)]


def test_a_socket_that_comes_with_a_message_is_the_one_that_was_sent(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    near, far = socket.socketpair()
    with near:
        with far:
            assert ours.send(Connect(1, "cf01"), far)
        received = theirs.receive()
        assert received is not None
        message, passed = received
        assert message == Connect(1, "cf01")
        assert passed is not None
        with socket.socket(fileno=passed) as copy:
            near.send(b"through the copy")
            assert copy.recv(100) == b"through the copy"
        # The sender's and the receiver's copies were all there are.
        assert near.recv(100) == b""


def test_nothing_there_is_not_the_end(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(BlockingIOError):
        ends[0].receive()


def test_what_was_said_before_the_end_is_heard_and_then_the_end(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    ours.send(Ready())
    ours.close()
    assert theirs.receive() == (Ready(), None)
    assert theirs.receive() is None
    assert theirs.receive() is None


def test_an_end_that_left_something_unread_is_an_end_too(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    theirs.send(Stop())
    ours.close()
    assert theirs.receive() is None


def test_one_that_is_gone_or_never_reads_is_told_nothing_and_nobody_waits_for_it(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    said = 0
    while ours.send(Drain()):
        said += 1
        assert said < 100_000
    assert said > 10
    theirs.close()
    assert ours.send(Drain()), "one that is gone is not deaf"


def test_the_last_words_of_an_end_that_left_something_unread_are_heard(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    theirs.send(Stop())
    ours.send(Ready())
    ours.send(Idle())
    ours.close()
    assert theirs.receive() == (Ready(), None)
    assert theirs.receive() == (Idle(), None)
    assert theirs.receive() is None
