"""Many handshakes at once: each has its turn, and who has shaken hands before hardly notices."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skywalker.limits import Limits
from skywalker.tls.contexts import GROUP, client_context
from skywalker.tls.records import Records
from tests.abuse.tls_attacks import LONG_RECORD, first_words
from tests.workers.outside import HOST, Outside, outside
from tests.workers.turns import turn_at
from tests.workers.wire_client import RST_ON_CLOSE
from workers.access.handshake_turns import CROWD, MOST_S, Handshakes
from workers.engine.secure_socket import SecureSocket
from workers.stats.metrics import HANDSHAKES, LIMITED

MANY = 60

STEP_S = 0.001
"""What one takes: more than a turn does before it is long."""

TURN_S = 0.005
"""What others take of each turn."""

SOME = 40
"""Handshakes that a fast machine may do before a turn is long."""


class Slow:
    """A handshake that takes a while."""

    def __init__(self, number: int, gone_on: list[int]) -> None:
        self.number = number
        self.is_paused = False
        self._gone_on = gone_on

    def pause(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def go_on(self) -> None:
        self._gone_on.append(self.number)
        time.sleep(STEP_S)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.one_of(st.integers(1, 4), st.just("turn"), st.integers(-9, -1)), max_size=12))
def test_they_go_on_in_the_order_in_which_they_came_and_who_is_gone_does_not(steps: list[int | str]) -> None:
    turn = turn_at(time.monotonic())
    handshakes = Handshakes(turn)
    gone_on: list[int] = []
    waiting: list[Slow] = []
    came = 0
    for step in [*steps, *["turn"] * 50]:
        if step == "turn":
            turn.begin(time.monotonic())
            expected = [each.number for each in waiting]
            before = len(gone_on)
            turn.go_on()
            now = gone_on[before:]
            assert now == expected[: len(now)]
            assert now or not expected
            waiting = waiting[len(now) :]
        elif isinstance(step, int) and step > 0:
            for _ in range(step):
                handshakes.come(each := Slow(came, gone_on))
                came += 1
                if each.is_paused:
                    waiting.append(each)
        elif waiting:
            handshakes.go(waiting.pop(int(step) % len(waiting)))
    assert not waiting
    assert gone_on == sorted(gone_on)
    assert not turn.has_more()


@pytest.mark.parametrize("others_s", [0.0, 0.004, 0.05])
def test_they_take_as_long_as_all_others_together_and_never_much(others_s: float) -> None:
    turn = turn_at(time.monotonic())
    handshakes = Handshakes(turn)
    gone_on: list[int] = []
    for number in range(100):
        handshakes.come(Slow(number, gone_on))
    left_off = turn.now
    for _ in range(5):
        time.sleep(others_s)
        turn.begin(time.monotonic())
        before = len(gone_on)
        took = time.monotonic() - left_off + STEP_S  # or more, where the machine has other work
        turn.go_on()
        left_off = turn.now
        assert 1 <= len(gone_on) - before <= min(took, MOST_S) / STEP_S + 1
        assert not turn.is_long()


@pytest.fixture
def around(tmp_path: Path) -> Iterator[Outside]:
    with outside(tmp_path, Limits(max_strangers=MANY, greeting_s=60.0)) as around:
        yield around


def a_turn(around: Outside) -> None:
    around.worker.loop.turn(patient=False)


def turns_until(around: Outside, is_so: Callable[[], object]) -> None:
    for _ in range(100 * MANY):
        if is_so():
            return
        a_turn(around)
    raise AssertionError("it was not so in time")


def test_whoever_calls_meanwhile_is_answered_in_the_same_turn(around: Outside) -> None:
    words = first_words(HOST)
    with around.inside() as client:
        foes = [around.raw() for _ in range(MANY)]
        for foe in foes:
            foe.sendall(words)
        answered = 0
        turns = 0
        while answered < MANY:
            client.call(":ping", turns)
            a_turn(around)
            assert client.reply(0.1)[1] == turns
            now = len(select.select(foes, [], [], 0)[0])
            assert now - answered <= SOME
            answered = now
            turns += 1
            assert turns < 3 * MANY
        for foe in foes:
            foe.close()
        around.turn()


def test_a_crowd_gets_in_beside_others_who_leave_little_time(tmp_path: Path) -> None:
    # Were all let in at once, most of them had to go again.
    with outside(tmp_path, Limits(max_strangers=MANY, greeting_s=60.0)) as around, around.inside() as client:
        foes = [around.raw() for _ in range(2 * MANY)]
        files = (str(tmp_path / file) for file in ("ca.pem", f"{HOST}.pem", f"{HOST}-key.pem"))
        context = client_context(*files)
        context.set_ecdh_curve(GROUP)  # so that each begins with what is signed at once
        crowd = [Records(context, server_hostname=HOST) for _ in foes]
        for foe, records in zip(foes, crowd, strict=True):
            records.shake_hands()
            foe.sendall(records.output())
        for number in range(100 * MANY):
            client.call(":ping", number)
            a_turn(around)
            assert client.reply(0.1)[1] == number
            time.sleep(TURN_S)
            for foe in select.select(foes, [], [], 0)[0]:
                records = crowd[foes.index(foe)]
                records.feed(foe.recv(1 << 16))
                records.shake_hands()
                foe.sendall(records.output())
            if len(around.core.connections) == 2 * MANY + 1:
                break
        assert len(around.core.connections) == 2 * MANY + 1
        assert around.worker.counted(LIMITED) == {}
        for foe in foes:
            foe.close()


@pytest.mark.parametrize("how", ["reset", "closed"])
def test_who_is_gone_while_it_waits_for_its_turn_has_none(
    around: Outside, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = first_words(HOST)
    strangers = around.core.admission.strangers
    foes = [around.raw() for _ in range(CROWD)]
    turns_until(around, lambda: len(strangers) == CROWD)
    for foe in foes:
        foe.sendall(words)
    shaken = SecureSocket.shake_hands
    signed: set[SecureSocket] = set()

    def slowly(self: SecureSocket) -> bool:
        signed.add(self)
        time.sleep(MOST_S)
        return shaken(self)

    monkeypatch.setattr(SecureSocket, "shake_hands", slowly)
    a_turn(around)
    assert len(signed) == 1
    waiting = [foe for foe in foes if not select.select([foe], [], [], 0)[0]]
    assert len(waiting) == CROWD - 1
    for foe in waiting:
        if how == "reset":
            foe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        foe.close()
    turns_until(around, lambda: len(strangers) == 1)
    assert len(signed) <= 2  # one had its turn before it was seen that it is gone
    assert around.worker.counted(HANDSHAKES) == {"": len(waiting)}
    for foe in foes:
        foe.close()
    around.turn()


def test_who_shakes_hands_byte_by_byte_keeps_nobody_out(around: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.access.handshake_turns.MOST_S", 0.0)  # as if everybody else took next to no time
    foes = [around.raw() for _ in range(3 * CROWD)]
    for foe in foes:
        foe.sendall(LONG_RECORD)
    turns_until(around, lambda: len(around.core.admission.strangers) >= CROWD)
    newcomer = around.raw()
    newcomer.sendall(first_words(HOST))

    def is_answered() -> bool:
        for foe in foes:
            with contextlib.suppress(ConnectionError):
                foe.send(b"\0")
        return bool(select.select([newcomer], [], [], 0)[0])

    turns_until(around, is_answered)
    for foe in (newcomer, *foes):
        foe.close()
    around.turn()
