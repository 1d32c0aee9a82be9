"""Channels between the supervisor and its children, where the machine has no room for what is said."""

from __future__ import annotations

import contextlib
import errno
import socket
from array import array
from typing import Any

import pytest

from skywalker.config import Config
from tests.workers.one_worker import OneWorker
from workers.engine.machine import MACHINE
from workers.ipc.control import Channel, Heard, Idle, Ring
from workers.stats.hands import own_hand
from workers.stats.log import Log
from workers.worker.worker import SAY_AGAIN_S, Worker


class Refusing:
    """A socket by which nothing can be sent, for this reason."""

    def __init__(self, number: int) -> None:
        self._number = number

    def setblocking(self, _: bool) -> None: ...

    def sendmsg(self, *_: Any) -> int:
        raise OSError(self._number, "refused")


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.ETOOMANYREFS])
def test_what_there_is_no_room_for_is_not_sent_and_ends_nobody(number: int) -> None:
    channel = Channel(Refusing(number))  # type: ignore[arg-type]  # as far as it needs it
    assert not channel.send(Idle())
    with socket.socket() as passed:
        assert not channel.send(Ring(), passed)


def test_what_is_said_to_one_that_is_gone_is_no_trouble_and_any_other_is_told() -> None:
    ours, theirs = Channel.pair(MACHINE)
    theirs.close()
    assert ours.send(Idle())
    ours.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        ours.send(Idle())


def test_a_worker_says_again_what_its_supervisor_waits_for() -> None:
    ours, theirs = Channel.pair(MACHINE)
    with contextlib.closing(OneWorker()) as one, contextlib.closing(ours), contextlib.closing(theirs):
        cells, log = memoryview(array("q")), Log(MACHINE.monotonic)
        worker = Worker(
            one.hub.node, Config(), {}, theirs, log, cells, None, succeeds=False, machine=MACHINE, hand=own_hand()
        )
        worker._hub = one.hub
        joining = 0
        while theirs.send(Heard("node:3443")):
            joining += 1
        worker._say(Idle())
        for _ in range(joining):
            assert ours.receive() == (Heard("node:3443"), None)
        with pytest.raises(BlockingIOError):
            ours.receive()
        one.turn(1.5 * SAY_AGAIN_S)
        assert ours.receive() == (Idle(), None)
