"""Many handshakes at once: each has its turn, and who has shaken hands before hardly notices."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.limits import Limits
from skywalker.tls.contexts import GROUP, client_context
from skywalker.tls.records import Records
from tests.abuse.tls_attacks import LONG_RECORD, first_words
from tests.authority import Authority
from tests.workers.one_worker import OneWorker, credentials_by
from tests.workers.wire_client import RST_ON_CLOSE
from workers.access.handshake_turns import LONGEST_S, MOST_S, Handshakes
from workers.engine.loop import Turn
from workers.engine.secure_socket import SecureSocket
from workers.stats.metrics import HANDSHAKES, LIMITED

HOST = "127.0.0.1"

Foe = Callable[[], socket.socket]
"""Returns another connection on which nothing is said yet."""

MANY = 60

TURN_S = 0.005
"""What others take of each turn."""

SOME = 40
"""Handshakes that a fast machine may do in a turn."""

FEW = 8


@pytest.fixture
def worker(authority: Authority) -> Iterator[OneWorker]:
    limits = Limits(max_strangers=MANY, greeting_s=60.0)
    with contextlib.closing(OneWorker(limits, credentials=credentials_by(authority))) as worker:
        yield worker


@pytest.fixture
def foe(worker: OneWorker) -> Iterator[Foe]:
    address = worker.member.address.host, worker.member.address.port
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(socket.create_connection(address))
    worker.turn()


def a_turn(worker: OneWorker) -> None:
    worker.loop.turn(patient=False)


def turns_until(worker: OneWorker, is_so: Callable[[], object]) -> None:
    for _ in range(100 * MANY):
        if is_so():
            return
        a_turn(worker)
    raise AssertionError("it was not so in time")


class Step:
    """What goes on when it is its turn."""

    def __init__(self, does: Callable[[], None]) -> None:
        self.go_on = does
        self.is_paused = False

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False


class Day:
    """A worker as its handshakes see it, each of which takes `step_s`; its clock is theirs and that of others."""

    def __init__(self, step_s: float) -> None:
        self.now = self.began = self.took_s = self.rests_until = 0.0
        self.served_at = -1.0
        self.step_s = step_s
        self.resting: Any = None
        self.core = self
        self.handshakes = Handshakes(cast(Turn, self))
        self._time = 0.0

    def clock(self) -> float:
        return self._time

    def turn(self, others_s: float = 0.0, come: int = 0) -> None:
        """Have one, in which some come, and others are served if they take any time."""
        self.now = self.began = self._time
        if self.resting is not None and self.rests_until <= self.now:
            self.resting = None
            self.handshakes.rested()
        if others_s:
            self.served_at = self.now
        for _ in range(come):
            self.handshakes.come(Step(self._work))
        self._time += others_s

    def wait(self) -> None:
        """Let the time pass until somebody goes on."""
        self._time = max(self._time, self.rests_until)

    def _work(self) -> None:
        self._time += self.step_s
        self.took_s += self.step_s


TURNS = st.lists(st.tuples(st.floats(0.0001, 0.003), st.integers(0, 3)), min_size=1, max_size=200)


@given(TURNS, st.floats(0.00001, 0.005))
def test_beside_others_they_have_half_of_the_time_at_most_however_long_each_takes(
    turns: list[tuple[float, int]], step_s: float
) -> None:
    day = Day(step_s)
    for others_s, come in turns:
        day.turn(others_s, come)
        assert day.took_s <= day.clock() / 2 + MOST_S + step_s
    came = sum(come for _, come in turns)
    for _ in range(came + 1):  # and each has its turn
        day.wait()
        day.turn(0.0001)
    assert day.took_s == pytest.approx(step_s * came)
    assert day.resting is None


@given(st.floats(0.00001, 0.005))
def test_nobody_waits_for_others_who_are_not_there(step_s: float) -> None:
    day = Day(step_s)
    day.turn(come=20)
    assert day.took_s <= MOST_S + step_s, "one who comes now is served soon"
    while day.resting is not None:
        day.wait()
        day.turn()
    assert day.took_s == pytest.approx(20 * step_s)
    assert day.clock() == pytest.approx(day.took_s)


def test_one_alone_does_not_wait() -> None:
    day = Day(MOST_S / 4)
    for _ in range(3):
        day.turn(0.00001, come=1)
    assert day.took_s == 3 * day.step_s
    assert day.resting is None


def test_a_worker_that_stood_still_keeps_nobody_out_for_as_long_again() -> None:
    day = Day(3.0)
    day.turn(0.001, come=1)
    began = day.clock()
    day.step_s = 0.001
    day.turn(0.001, come=1)
    while day.resting is not None:
        day.wait()
        day.turn(0.0001)
    assert day.clock() - began < 2 * LONGEST_S


def test_whoever_calls_meanwhile_is_answered_in_the_same_turn(worker: OneWorker, foe: Foe) -> None:
    words = first_words(HOST)
    with worker.connect() as client:
        foes = [foe() for _ in range(MANY)]
        for each in foes:
            each.sendall(words)
        answered = 0
        turns = 0
        while answered < MANY:
            client.call(":ping", turns)
            a_turn(worker)
            assert client.reply(0.1)[1] == turns
            now = len(select.select(foes, [], [], 0)[0])
            assert now - answered <= SOME
            answered = now
            turns += 1


def test_a_crowd_gets_in_beside_others_who_leave_little_time(worker: OneWorker, foe: Foe, authority: Authority) -> None:
    # Were all let in at once, most of them had to go again.
    with worker.connect() as client:
        foes = [foe() for _ in range(2 * MANY)]
        context = client_context(authority.ca, *authority.sign(HOST))
        context.set_ecdh_curve(GROUP)  # so that each begins with what is signed at once
        crowd = [Records(context, server_hostname=HOST) for _ in foes]
        for each, records in zip(foes, crowd, strict=True):
            records.shake_hands()
            each.sendall(records.output())
        for number in range(100 * MANY):
            client.call(":ping", number)
            a_turn(worker)
            assert client.reply(0.1)[1] == number
            time.sleep(TURN_S)
            for each in select.select(foes, [], [], 0)[0]:
                records = crowd[foes.index(each)]
                records.feed(each.recv(1 << 16))
                records.shake_hands()
                each.sendall(records.output())
            if len(worker.hub.clients) == 2 * MANY + 1:
                break
        assert len(worker.hub.clients) == 2 * MANY + 1
        assert worker.counted(LIMITED) == {}


@pytest.mark.parametrize("how", ["reset", "closed"])
def test_who_is_gone_while_it_waits_for_its_turn_has_none(
    worker: OneWorker, foe: Foe, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = first_words(HOST)
    strangers = worker.hub.admission.strangers
    foes = [foe() for _ in range(FEW)]
    turns_until(worker, lambda: len(strangers) == FEW)
    for each in foes:
        each.sendall(words)
    shaken = SecureSocket.shake_hands
    signed: set[SecureSocket] = set()

    def slowly(self: SecureSocket) -> bool:
        signed.add(self)
        time.sleep(MOST_S)
        return shaken(self)

    monkeypatch.setattr(SecureSocket, "shake_hands", slowly)
    a_turn(worker)
    assert len(signed) == 1
    waiting = [each for each in foes if not select.select([each], [], [], 0)[0]]
    assert len(waiting) == FEW - 1
    for each in waiting:
        if how == "reset":
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        each.close()
    turns_until(worker, lambda: len(strangers) == 1)
    assert len(signed) <= 2  # one had its turn before it was seen that it is gone
    assert worker.counted(HANDSHAKES) == {"": len(waiting)}


def test_who_shakes_hands_byte_by_byte_keeps_nobody_out(
    worker: OneWorker, foe: Foe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.access.handshake_turns.MOST_S", 0.0)  # so that one goes on in a turn
    foes = [foe() for _ in range(3 * FEW)]
    for each in foes:
        each.sendall(LONG_RECORD)
    turns_until(worker, lambda: len(worker.hub.admission.strangers) >= FEW)
    newcomer = foe()
    newcomer.sendall(first_words(HOST))

    def is_answered() -> bool:
        for each in foes:
            with contextlib.suppress(ConnectionError):
                each.send(b"\0")
        return bool(select.select([newcomer], [], [], 0)[0])

    turns_until(worker, is_answered)
