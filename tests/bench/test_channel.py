"""One side of a pair, whose worker is leaving."""

from __future__ import annotations

import contextlib
import socket

import pytest

from bench.load.channel import Channel
from bench.load.dial import Contact
from bench.load.loop import Loop
from bench.load.pairs import pair_of
from bench.load.plan import Load
from skywalker.errors import Draining
from skywalker.wire import junction as wire
from skywalker.wire.frames import split
from tests.helpers import time_factor


def nothing_fails(channel: Channel, lane: int) -> None:
    raise AssertionError("nothing fails here")


@pytest.mark.parametrize("refused", [1, 3])
def test_a_connection_is_left_and_closed_once_nothing_waits_on_it(refused: int) -> None:
    script = pair_of(Load(in_flight=3), 0, None, None).receiver
    loop, homeless = Loop(strict=False), list[Channel]()
    with contextlib.ExitStack() as stack:
        stack.callback(loop.close)
        ours, theirs = (stack.enter_context(sock) for sock in socket.socketpair())
        other, fresh = (stack.enter_context(sock) for sock in socket.socketpair())
        theirs.settimeout(10 * time_factor())
        for sock in (ours, other):
            sock.setblocking(False)
        channel = Channel(script, None, loop, wanted=homeless.append, failed=nothing_fails)
        ready = channel.open(Contact(ours, None), None)
        calls, _ = split(theirs.recv(1000))
        theirs.sendall(b"".join(wire.error_frame(call[0], call[1], Draining("it leaves")) for call in calls[:refused]))
        ready()
        assert homeless == [channel]
        channel.open(Contact(other, None), None)
        assert [call[1] for call in split(fresh.recv(1000))[0]] == [call[1] for call in calls[:refused]]
        if refused < len(calls):
            theirs.sendall(b"".join(script.replies[refused:]))
            ready()
        assert theirs.recv(1000) == b"", "it hangs up, so that the worker need not wait for it"
        assert channel.in_flight == 3
        channel.close()
    assert (loop.counts.errors, loop.counts.moved, channel.answered) == ({}, 1, 3 - refused)
