"""A worker in which something that the core calls has raised: it ends, and has told nobody anything after that."""

from __future__ import annotations

import socket
from typing import Any, Final

import pytest

from skywalker.journal.record import PAGE_BYTES, PAGE_RECORDS
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.workers.turns import turn_of
from workers.engine.machine import MACHINE
from workers.stats import metrics

ID: Final = values.pack(1)
TOPIC: Final = values.pack("topic")
PATIENT: Final = values.pack(60_000)


class Bug(Exception):
    """Of whoever the core calls."""


class Buggy:
    """Owns a core, and cannot deal with what is unusual, nor with names."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.closed_too = 0

    def unusual(self, handle: int, body: bytes) -> None:
        raise Bug

    def named(self, token: int, topic: bytes) -> None:
        raise Bug

    def closed(self, handle: int, why: int, error: int) -> None:
        self.closed_too += 1
        raise Bug


def connected() -> tuple[Any, Buggy, int, socket.socket]:
    turn = turn_of(MACHINE)
    core: Any = turn.core
    core.rare = owner = Buggy(core)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return turn, owner, core.connect(ours.detach()), theirs


def test_nothing_is_written_or_counted_after_a_bug() -> None:
    turn, _, _, client = connected()
    before = turn.counters.memory[metrics.CALLS.at : metrics.CALLS.end].tolist()
    client.send(
        wire.frame(wire.RECV, ID, PATIENT, TOPIC)
        + wire.frame(wire.SEND, ID, PATIENT, TOPIC, values.pack("value"))
        + wire.frame(values.pack(":unusual"), ID)
        + wire.frame(wire.SEND, ID, values.pack(0), TOPIC, values.pack("value"))
    )
    with pytest.raises(Bug):
        turn.core.turn(0.0)
    with pytest.raises(BlockingIOError):
        client.recv(100)
    assert turn.counters.memory[metrics.CALLS.at : metrics.CALLS.end].tolist() == before, "they met, and nobody knows"
    client.close()


def test_whoever_asked_is_told_at_once_and_the_turn_ends_with_it() -> None:
    turn, owner, handle, client = connected()
    with pytest.raises(Bug):
        turn.core.close(handle)
    with pytest.raises(Bug):
        turn.core.turn(0.0)
    assert owner.closed_too == 1
    client.close()


def test_nothing_is_recorded_of_a_topic_that_cannot_be_named() -> None:
    turn, _, _, client = connected()
    page = bytearray(PAGE_BYTES)
    turn.core.tell_next(1000)
    turn.core.record(1, 0)
    turn.core.page(page, PAGE_RECORDS)
    client.send(
        wire.frame(wire.RECV, ID, PATIENT, TOPIC) + wire.frame(wire.SEND, ID, PATIENT, TOPIC, values.pack("value"))
    )
    with pytest.raises(Bug):
        turn.core.turn(0.0)
    assert not any(page)
    assert not turn.core.recorded
    client.close()
